"""Microsoft Agent Framework: what its way in does not show."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agent_framework import (
    Agent,
    AgentSession,
    Content,
    ContextProvider,
    FunctionInvocationContext,
    FunctionTool,
    Message,
    MiddlewareTermination,
    function_middleware,
    tool,
)

from tests.frameworks.booking import booking
from tests.frameworks.scripted_agent_framework import ScriptedClient, calling, outputs
from toolcrib.adapters.agent_framework import GuardProvider, answers, approval_requests, as_tools, from_tools, guard
from toolcrib.calls import Completed, Failed, Media, RunNormally, Suspended, ToolCall
from toolcrib.code import Toolkit
from toolcrib.errors import ApprovalError
from toolcrib.hooks import HookSet
from toolcrib.pipeline import CallLimits, Pipeline, Run
from toolcrib.provenance import Provenance
from toolcrib.schema import RunContext
from toolcrib.serving import GuardPolicy
from toolcrib.testing import RecordingSink
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset

BOOKING = ("book", {"city": "Oslo"})


class Chat:
    """A session with an agent whose model says one message after the other."""

    def __init__(self, provider: Any, *steps: list[Content], tools: Any = (), middleware: Any = ()) -> None:
        self.client = ScriptedClient(*steps)
        options: dict[str, Any] = {"context_providers": [provider], "middleware": [*middleware]}
        self._agent, self.session = Agent(self.client, tools=[*tools], **options), AgentSession()
        self.response: Any = None

    async def say(self, said: str | Message, **options: Any) -> Any:
        """Say something, and return the response."""
        self.response = await self._agent.run(said, session=self.session, **options)
        return self.response

    async def stream(self, said: str) -> Any:
        """Say something, and return the response after its stream."""
        stream = self._agent.run(said, session=self.session, stream=True)
        async for _ in stream:
            pass
        self.response = await stream.get_final_response()
        return self.response

    @property
    def asked(self) -> list[Any]:
        """What a person is asked."""
        return approval_requests(self.response.user_input_requests)

    async def answer(self, *given: Any) -> Any:
        """Answer, and return the response."""
        asked = self.response.user_input_requests
        return await self.say(await answers(asked, *given, agent=self._agent, session=self.session))

    async def answer_their_way(self, approved: bool) -> Any:
        """Answer the only request as a client that does not know ours."""
        [asked] = self.response.user_input_requests
        return await self.say(
            Message("user", [Content.from_function_approval_response(approved, asked.id, asked.function_call)])
        )


def deleting(ran: list[str], **options: Any) -> FunctionTool:
    """Return a tool of the framework that notes what it was called with."""

    @tool(**options)
    def delete(path: str) -> str:
        """Delete a file."""
        ran.append(path)
        return f"deleted {path}"

    return delete


# --- our tools in their agents


@pytest.mark.parametrize("way", ["say", "stream"])
async def test_two_calls_wait_beside_one_that_runs_and_are_answered_at_once(way: str) -> None:
    ran: list[str] = []

    @ez_tool
    async def look(city: str) -> str:
        """Look."""
        return f"saw {city}"

    provider = as_tools([booking(ran, requires_approval=True), look])
    chat = Chat(provider, calling(BOOKING, ("look", {"city": "Rome"}), ("book", {"city": "Rome"})))
    asked = await getattr(chat, way)("go")
    oslo, rome = chat.asked
    assert (outputs(asked), ran) == (["saw Rome"], [])

    done = await chat.answer(oslo.deny(message="too far"), rome.grant("ben", override_args={"city": "Nice"}))

    assert (outputs(done), ran) == (["Rejected: too far", "booked Nice"], ["Nice"])
    told = [content.result for message in chat.client.asked[-1] for content in message.contents]
    assert "Rejected: too far" in told


@pytest.mark.parametrize(("approved", "said"), [(True, "booked Oslo"), (False, "Error: Tool call invocation")])
async def test_their_own_approval_does_as_well(approved: bool, said: str) -> None:
    chat = Chat(as_tools([booking([], requires_approval=True)]), calling(BOOKING))
    await chat.say("go")

    [output] = outputs(await chat.answer_their_way(approved))

    assert output.startswith(said)


async def test_a_call_that_is_made_again_without_an_answer_is_asked_about_again() -> None:
    ran: list[str] = []
    step = calling(BOOKING)
    chat = Chat(as_tools([booking(ran, requires_approval=True)]), step, [Content.from_dict(step[0].to_dict())])
    await chat.say("go")
    [first] = chat.asked

    await chat.say("well?")

    assert ([request.id for request in chat.asked], ran) == ([first.id], [])


async def test_a_call_of_another_session_with_the_same_id_is_another_one() -> None:
    provider, step = as_tools([booking([], requires_approval=True)]), calling(BOOKING)
    chats = [Chat(provider, [Content.from_dict(step[0].to_dict())]) for _ in range(2)]
    for chat in chats:
        await chat.say("go")
    first, second = [chat.asked[0] for chat in chats]

    denied = await chats[0].answer(first.deny(message="too far"))
    other = await chats[1].answer(second.deny(message="too dear"))

    assert first.id != second.id
    assert (outputs(denied), outputs(other)) == (["Rejected: too far"], ["Rejected: too dear"])


@pytest.mark.parametrize("kept", [True, False])
async def test_their_own_approval_is_none_of_arguments_that_they_do_not_show(kept: bool) -> None:
    ran: list[str] = []

    async def move(ctx: RunContext, args: dict[str, Any], metadata: dict[str, Any]) -> dict[str, Any]:
        return {"city": "Paris"}

    class Forgetful:
        """Keeps no call."""

        async def keep(self, call: Any) -> None: ...
        async def find(self, key: str) -> None: ...

    tools = Toolset([booking(ran, requires_approval=True)], pre_hooks={"book": move})
    options: Any = {} if kept else {"suspended": Forgetful()}
    chat = Chat(as_tools(tools, **options), calling(BOOKING))
    await chat.say("go")

    await chat.answer_their_way(True)

    assert ([request.arguments for request in chat.asked], ran) == ([{"city": "Paris"}], [])


async def test_the_session_is_the_conversation_and_the_callers_words_are_deps() -> None:
    sink = RecordingSink()

    @ez_tool
    async def whose(ctx: RunContext) -> str:
        """Say whose."""
        theirs, session = ctx.provided[FunctionInvocationContext], ctx.provided[AgentSession]  # type: ignore[index]
        assert theirs.session is session
        return f"{ctx.deps['user']} {ctx.run.principal} {ctx.run.channel.conversation_id == session.session_id}"

    def open_run(session: AgentSession) -> Run:
        return Run(principal=session.state["user"])

    chat = Chat(as_tools([whose], run=open_run, sinks=[sink]), calling(("whose", {})))
    chat.session.state["user"] = "ben"
    done = await chat.say("go", function_invocation_kwargs={"user": "ann"})

    assert outputs(done) == ["ann ben True"]
    assert sink.record.principal == "ben"


async def test_limits_hold_in_one_run_of_the_agent() -> None:
    ran: list[str] = []
    provider = as_tools([booking(ran)], run=lambda session: Run(limits=CallLimits(total=1)))
    chat = Chat(provider, calling(BOOKING, BOOKING), [Content.from_text("one")], calling(BOOKING))

    first = await chat.say("go")
    again = await chat.say("again")

    assert sum("Rejected" in output for output in outputs(first)) == 1
    assert (outputs(again), len(ran)) == (["booked Oslo"], 2)


async def test_a_tool_that_is_not_available_is_not_shown() -> None:
    tools = Toolset([booking([]), ez_tool(lambda: "x", name="hidden", description="Hidden.")])
    provider = as_tools(tools, run=lambda session: Run(available=frozenset({"book"})))
    chat = Chat(provider, calling(("hidden", {})))

    done = await chat.say("go")

    assert chat.client.offered[0] == ["book"]
    assert "not available" in outputs(done)[0]


async def test_media_are_contents_of_the_framework() -> None:
    @ez_tool
    async def draw() -> Any:
        """Draw."""
        return ["a dot", Media("image/png", b"dot"), Media("audio/wav", url="https://example.org/a.wav")]

    done = await Chat(as_tools([draw]), calling(("draw", {}))).say("go")

    [items] = [content.items for m in done.messages for content in m.contents if content.type == "function_result"]
    assert [(item.type, item.text or item.media_type) for item in items] == [
        ("text", "a dot"),
        ("data", "image/png"),
        ("uri", "audio/wav"),
    ]


async def test_a_value_of_a_stranger_is_asked_about() -> None:
    sent: list[str] = []

    @ez_tool(effect="spend")
    async def pay(account: str) -> str:
        """Pay."""
        sent.append(account)
        return "paid"

    @tool
    def read_mail() -> str:
        """Read the mail."""
        return "pay to DE89370400440532013000"

    paying = calling(("pay", {"account": "DE89370400440532013000"}))
    provider = as_tools([pay], run=lambda session: Run(features=[Provenance()]))
    asked = Chat(provider, calling(("read_mail", {})), paying, tools=[read_mail])
    await asked.say("pay my bill")
    told = await Chat(provider, paying).say("pay to DE89370400440532013000")

    assert asked.asked[0].origins[0]["value"] == "DE89370400440532013000"
    assert (outputs(told), sent) == (["paid"], ["DE89370400440532013000"])


async def test_a_cancelled_agent_stops_the_tool() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    @ez_tool
    async def wait() -> None:
        """Wait."""
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    task = asyncio.create_task(Chat(as_tools([wait]), calling(("wait", {}))).say("go"))
    await begun.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


async def test_a_tool_does_not_run_past_its_gates() -> None:
    ran: list[str] = []
    made: list[Any] = []

    class Taking(ContextProvider):
        async def before_run(self, *, context: Any, **options: Any) -> None:
            made.extend(context.tools)

    providers = [as_tools([booking(ran, requires_approval=True)]), Taking("taking")]
    await Agent(ScriptedClient(), context_providers=providers).run("go")

    with pytest.raises(Exception, match="past its gates"):
        await made[0].invoke(arguments={"city": "Oslo"})
    assert ran == []


# --- their tools with us


async def test_their_tools_are_members_of_a_toolset() -> None:
    ran: list[str] = []
    pipeline = Pipeline(Toolset(from_tools([deleting(ran, approval_mode="always_require")])))

    waiting = await pipeline.run(ToolCall("delete", {"path": "x"}))
    assert isinstance(waiting, Suspended)
    done = await pipeline.run(waiting, grant=waiting.request.grant())
    wrong = await pipeline.run(ToolCall("delete", {"file": "x"}))

    assert isinstance(done, Completed)
    assert isinstance(wrong, Failed)
    assert (done.value, wrong.code, ran) == ("deleted x", "invalid_arguments", ["x"])


async def test_programs_call_their_tools_and_functions() -> None:
    def twice(number: int) -> int:
        """Double a number."""
        return 2 * number

    result = await Toolkit(from_tools([twice])).execute_async("twice(number=4)")

    assert result.return_value == 8


async def test_their_media_are_ours() -> None:
    @tool
    def draw() -> Any:
        """Draw."""
        return [Content.from_text("a dot"), Content.from_data(b"dot", "image/png")]

    done = await Pipeline(from_tools([draw])).run(ToolCall("draw", {}))

    assert isinstance(done, Completed)
    assert done.value == ["a dot", Media("image/png", b"dot")]


def test_a_tool_without_a_function_is_no_member() -> None:
    with pytest.raises(TypeError, match="'elsewhere' has no function here"):
        from_tools([FunctionTool(name="elsewhere", description="Runs elsewhere.")])


# --- gates around what is there


async def test_an_agent_is_guarded_and_the_one_that_was_given_is_not() -> None:
    ran: list[str] = []
    steps = [calling(("delete", {"path": "x"})), calling(("delete", {"path": "y"}))]
    given = Agent(ScriptedClient(*steps), tools=[deleting(ran)])
    session = AgentSession()

    asked = await guard(given, GuardPolicy(approve=True)).run("go", session=session)
    assert (len(approval_requests(asked.user_input_requests)), ran) == (1, [])
    await given.run("go", session=AgentSession())

    assert ran == ["y"]


async def test_a_guard_runs_the_arguments_that_were_approved() -> None:
    ran: list[str] = []
    chat = Chat(GuardProvider(GuardPolicy(approve=True)), calling(("delete", {"path": "x"})), tools=[deleting(ran)])
    await chat.say("go")

    done = await chat.answer(chat.asked[0].grant("ben", override_args={"path": "y"}))

    assert (outputs(done), ran) == (["deleted y"], ["y"])


async def test_a_guard_runs_the_arguments_that_a_hook_made() -> None:
    ran: list[str] = []
    hooks = HookSet()

    @hooks.on("delete")
    async def move(call: Any, input: Any) -> Any:
        return RunNormally(input.model_copy(update={"path": "y"}))

    provider = GuardProvider(GuardPolicy(hooks=hooks))
    done = await Chat(provider, calling(("delete", {"path": "x"})), tools=[deleting(ran)]).say("go")

    assert (outputs(done), ran) == (["deleted y"], ["y"])


async def test_what_a_delivery_edits_in_place_is_what_a_guarded_tool_gives() -> None:
    def hide(call: Any, value: Any) -> Any:
        value[1] = "<name>"
        return value

    def find(name: str) -> list[Content]:
        """Find a customer."""
        return [Content.from_text("found"), Content.from_text(name)]

    provider = GuardProvider(GuardPolicy(run=lambda session: Run(deliveries=[hide])))
    done = await Chat(provider, calling(("find", {"name": "ann"})), tools=[FunctionTool(name="find", func=find)]).say(
        "go"
    )

    assert "<name>" in str(outputs(done))
    assert "ann" not in str(outputs(done))


async def test_a_guarded_tool_that_asks_by_itself_is_approved_once() -> None:
    ran: list[str] = []
    theirs = deleting(ran, approval_mode="always_require")
    chat = Chat(GuardProvider(GuardPolicy(approve=True)), calling(("delete", {"path": "x"})), tools=[theirs])
    await chat.say("go")

    done = await chat.answer_their_way(True)

    assert (outputs(done), ran) == (["deleted x"], ["x"])


@pytest.mark.parametrize("gates", ["guard", "tools"])
@pytest.mark.parametrize("says_yes", [True, False], ids=["yes", "no"])
async def test_what_the_framework_itself_asks_is_asked_and_answered_as_ours_is(gates: str, says_yes: bool) -> None:
    ran: list[str] = []
    sink = RecordingSink()
    theirs = deleting(ran, approval_mode="always_require")
    provider = GuardProvider(GuardPolicy(sinks=(sink,))) if gates == "guard" else as_tools([booking([])])
    chat = Chat(provider, calling(("delete", {"path": "x"})), tools=[theirs])
    await chat.say("go")

    [request] = chat.asked
    assert (request.tool, request.arguments, ran) == ("delete", {"path": "x"}, [])
    done = await chat.answer(request.grant("ann") if says_yes else request.deny(message="no", by="ann"))

    assert ran == (["x"] if says_yes else [])
    assert (outputs(done) == ["deleted x"]) is says_yes
    told = [content.result for message in chat.client.asked[-1] for content in message.contents if content.result]
    assert told == (["deleted x"] if says_yes else ["Rejected: no"])
    if gates == "guard" and says_yes:
        assert sink.records[-1].approval["approver"] == "ann"  # type: ignore[index]


@pytest.mark.parametrize("gates", ["guard", "tools"])
@pytest.mark.parametrize("how", ["yes", "no", "their way"])
async def test_a_call_beside_one_that_the_framework_asks_about_is_asked_about_too(gates: str, how: str) -> None:
    ran: list[str] = []
    theirs, ours = deleting(ran, approval_mode="always_require"), booking(ran, requires_approval=gates == "tools")
    round_ = calling(("delete", {"path": "x"}), ("book", {"city": "Rome"}))
    if gates == "guard":
        policy = GuardPolicy(approve=["book"])
        chat = Chat(GuardProvider(policy), round_, tools=[theirs, tool(ours.fn, name="book")])
    else:
        chat = Chat(as_tools([ours]), round_, tools=[theirs])
    await chat.say("go")

    [request] = chat.asked
    if how == "their way":
        await chat.answer_their_way(True)
    else:
        await chat.answer(request.grant("ann") if how == "yes" else request.deny(message="no", by="ann"))
    [further] = chat.asked
    assert (further.tool, ran) == ("book", [] if how == "no" else ["x"])
    done = await chat.answer(further.grant("ann"))

    assert ran[-1] == "Rome"
    assert outputs(done)[-1] == "booked Rome"


async def test_an_answer_that_the_framework_cannot_take_is_refused_with_the_mend() -> None:
    theirs = deleting([], approval_mode="always_require")
    chat = Chat(GuardProvider(GuardPolicy()), calling(("delete", {"path": "x"})), tools=[theirs])
    await chat.say("go")
    [request] = chat.asked

    for answer in (request.grant("ann", scope="tool"), request.grant("ann", override_args={"path": "y"})):
        with pytest.raises(ApprovalError, match="GuardPolicy"):
            await chat.answer(answer)


async def test_a_guarded_tool_fails_in_words_of_its_own() -> None:
    sink = RecordingSink()

    @tool
    def broken() -> str:
        """Break."""
        raise RuntimeError("no disk")

    chat = Chat(GuardProvider(GuardPolicy(sinks=(sink,))), calling(("broken", {})), tools=[broken])

    assert outputs(await chat.say("go")) == ["RuntimeError: no disk"]
    assert sink.record.outcome["kind"] == "failed"


async def test_a_guard_lets_another_middleware_end_the_run() -> None:
    @function_middleware
    async def stop(context: FunctionInvocationContext, call_next: Any) -> None:
        raise MiddlewareTermination(result="stopped")

    class Stopping(GuardProvider):
        async def before_run(self, *, context: Any, **options: Any) -> None:
            await super().before_run(context=context, **options)
            context.extend_middleware("stop", [stop])

    ran: list[str] = []
    chat = Chat(Stopping(GuardPolicy()), calling(("delete", {"path": "x"})), tools=[deleting(ran)])

    assert (outputs(await chat.say("go")), len(chat.client.asked), ran) == (["stopped"], 1, [])


async def test_a_tool_that_a_provider_runs_is_refused_until_it_is_left() -> None:
    search = {"type": "web_search"}
    with pytest.raises(ValueError, match=r"leave=\['web_search'\]"):
        await Chat(GuardProvider(GuardPolicy()), tools=[search]).say("go")

    left = Chat(GuardProvider(GuardPolicy(leave=["web_search"])), tools=[search])

    assert (await left.say("go")).text == "done"
