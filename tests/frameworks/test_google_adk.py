"""Google ADK: what its way in does not show."""

from __future__ import annotations

from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.plugins import BasePlugin
from google.adk.runners import InMemoryRunner
from google.adk.tools import AgentTool, BaseTool, FunctionTool, ToolContext, google_search
from google.genai import types

from tests.frameworks.booking import booking
from tests.frameworks.scripted_adk import ScriptedLlm, calling, saying
from toolcrib.adapters.google_adk import GuardPlugin, answers, approval_requests, as_tools, from_tools, guard
from toolcrib.approvals import MemoryApprovalStore
from toolcrib.calls import Media, Suspended, ToolCall
from toolcrib.code import Toolkit
from toolcrib.errors import ApprovalError
from toolcrib.pipeline import CallLimits, Pipeline, Run
from toolcrib.provenance import Provenance
from toolcrib.schema import RunContext
from toolcrib.serving import GuardPolicy
from toolcrib.testing import RecordingSink
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset

DONE = types.Content(role="model", parts=[types.Part(text="one thing is done")])


class Chat:
    """A session of one user with an agent whose model makes these calls, turn by turn."""

    def __init__(self, tools: Any, *turns: Any, plugins: Any = (), user: str = "ann") -> None:
        steps = [calling(*turn) if turn else DONE for turn in turns]
        agent = LlmAgent(name="agent", model=ScriptedLlm(steps=steps), tools=[*tools])
        self._runner = InMemoryRunner(app=App(name="app", root_agent=agent, plugins=[*plugins]))
        self._user, self._session = user, ""

    async def say(self, said: str | types.Content) -> list[Any]:
        """Say something, and return the events."""
        if not self._session:
            session = await self._runner.session_service.create_session(app_name="app", user_id=self._user)
            self._session = session.id
        message = saying(said) if isinstance(said, str) else said
        run = self._runner.run_async(user_id=self._user, session_id=self._session, new_message=message)
        return [event async for event in run]

    async def events(self) -> list[Any]:
        """Return all events of the session."""
        found = await self._runner.session_service.get_session(
            app_name="app", user_id=self._user, session_id=self._session
        )
        return [] if found is None else found.events


def outputs(events: list[Any]) -> list[Any]:
    """Return what the model was given for each call."""
    return [reply.response for event in events for reply in event.get_function_responses()]


def deleting(ran: list[str]) -> Any:
    """Return a function as ADK takes it, which notes what it was called with."""

    def delete(path: str) -> str:
        """Delete a file."""
        ran.append(path)
        return f"deleted {path}"

    return delete


# --- our tools in their agents


@pytest.mark.parametrize(("confirmed", "made"), [(True, {"result": "booked Oslo"}), (False, {"error": "Rejected"})])
async def test_their_own_confirmation_does_as_well(confirmed: bool, made: dict[str, str]) -> None:
    chat = Chat(as_tools([booking([], requires_approval=True)]), [("book", {"city": "Oslo"})])
    asked = await chat.say("go")
    [call] = [call for event in asked for call in event.get_function_calls() if "confirmation" in call.name]

    response = types.FunctionResponse(id=call.id, name=call.name, response={"confirmed": confirmed})
    done = await chat.say(types.Content(role="user", parts=[types.Part(function_response=response)]))

    [output] = outputs(done)
    assert output.keys() == made.keys()
    assert all(str(output[key]).startswith(text) for key, text in made.items())


async def test_a_grant_that_is_not_confirmed_is_none() -> None:
    ran: list[str] = []
    chat = Chat(as_tools([booking(ran, requires_approval=True)]), [("book", {"city": "Oslo"})])
    asked = await chat.say("go")
    said = answers(asked, approval_requests(asked)[0].grant("ben"))
    assert said.parts is not None
    assert said.parts[0].function_response is not None
    assert said.parts[0].function_response.response is not None
    said.parts[0].function_response.response["confirmed"] = False

    done = await chat.say(said)

    assert (ran, "Rejected" in str(outputs(done))) == ([], True)


async def test_a_session_asks_one_question_about_a_call_in_doubt_and_its_answer_counts() -> None:
    ran: list[str] = []
    store = MemoryApprovalStore()
    tools = as_tools([booking(ran, requires_approval=True)], run=lambda context: Run(approvals=store))
    chat = Chat(tools, [("book", {"city": "Oslo"})])
    asked = await chat.say("go")
    [before] = approval_requests(asked)
    grant = before.grant("ann")
    await store.use(before, grant)
    await store.begin(before, grant)
    await store.break_off(before, grant)

    doubt = await chat.say(answers(asked, grant))
    [request] = approval_requests(doubt)
    done = await chat.say(answers(doubt, request.done("booked by hand", "ann")))

    assert (request.in_doubt, request.follows) == (True, before.id)
    assert (outputs(done), ran) == ([{"result": "booked by hand"}], [])
    assert (approval_requests(await chat.events()), await store.list(pending=True)) == ([], ())


class Twice(BasePlugin):
    """Calls each tool itself, before the agent makes the same call."""

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> None:
        await tool.run_async(args=tool_args, tool_context=tool_context)


async def test_a_call_that_is_made_again_without_a_confirmation_waits_on() -> None:
    ran: list[str] = []
    chat = Chat(
        as_tools([booking(ran, requires_approval=True)]), [("book", {"city": "Oslo"})], plugins=[Twice("twice")]
    )

    asked = await chat.say("go")

    assert ([request.tool for request in approval_requests(asked)], ran) == (["book"], [])


async def test_a_confirmation_where_the_call_is_lost_is_none_of_edited_arguments() -> None:
    ran: list[str] = []
    names = iter(["Oslo", "Paris"])

    async def move(ctx: RunContext, args: dict[str, Any], metadata: dict[str, Any]) -> dict[str, Any]:
        return {"city": next(names)}

    class Forgetful:
        """Keeps no call."""

        async def keep(self, call: Any) -> None: ...
        async def find(self, key: str) -> None: ...

    tools = Toolset([booking(ran, requires_approval=True)], pre_hooks={"book": move})
    chat = Chat(as_tools(tools, suspended=Forgetful()), [("book", {"city": "Bergen"})])  # type: ignore[arg-type]
    asked = await chat.say("go")
    [call] = [call for event in asked for call in event.get_function_calls() if "confirmation" in call.name]

    response = types.FunctionResponse(id=call.id, name=call.name, response={"confirmed": True})
    again = await chat.say(types.Content(role="user", parts=[types.Part(function_response=response)]))

    assert ran == []
    assert "suspended until a person answers" in str(outputs(again))


async def test_the_user_is_the_principal_and_the_session_the_conversation() -> None:
    sink = RecordingSink()

    @ez_tool
    async def whose(ctx: RunContext) -> bool:
        """Say whose."""
        theirs = ctx.provided[ToolContext]  # type: ignore[index]
        return (theirs.user_id, theirs.session.id) == (ctx.run.principal, ctx.run.channel.conversation_id)

    done = await Chat(as_tools([whose], sinks=[sink]), [("whose", {})], user="ben").say("go")

    assert outputs(done) == [{"result": True}]
    assert (sink.record.principal, sink.record.run_id) == ("ben", done[0].invocation_id)


async def test_limits_hold_in_one_invocation() -> None:
    ran: list[str] = []
    tools = as_tools([booking(ran)], run=lambda context: Run(limits=CallLimits(total=1)))
    chat = Chat(tools, [("book", {"city": "Oslo"}), ("book", {"city": "Rome"})], [], [("book", {"city": "Nice"})])

    first = await chat.say("go")
    again = await chat.say("again")

    assert len(ran) == 2
    assert sum("Rejected" in str(output) for output in outputs(first)) == 1
    assert outputs(again) == [{"result": "booked Nice"}]


async def test_media_are_named() -> None:
    @ez_tool
    async def draw() -> Any:
        """Draw."""
        return Media("image/png", b"dot", name="dot.png")

    done = await Chat(as_tools([draw]), [("draw", {})]).say("go")

    assert outputs(done) == [{"result": "[image/png: dot.png, 3 bytes]"}]


async def test_a_value_of_a_stranger_is_asked_about() -> None:
    sent: list[str] = []

    @ez_tool(effect="spend")
    async def pay(account: str) -> str:
        """Pay."""
        sent.append(account)
        return "paid"

    def read_mail() -> str:
        """Read the mail."""
        return "pay to DE89370400440532013000"

    tools = [*as_tools([pay], run=lambda context: Run(features=[Provenance()])), FunctionTool(read_mail)]
    paying = ("pay", {"account": "DE89370400440532013000"})
    asked = await Chat(tools, [("read_mail", {})], [paying]).say("pay my bill")
    told = await Chat(tools, [paying]).say("pay to DE89370400440532013000")

    assert approval_requests(asked)[0].origins[0]["value"] == "DE89370400440532013000"
    assert (outputs(told), sent) == ([{"result": "paid"}], ["DE89370400440532013000"])


# --- their tools with us


async def test_a_tool_that_asks_for_a_confirmation_needs_approval_which_is_its_confirmation() -> None:
    def pay(cents: int) -> str:
        """Pay."""
        return f"paid {cents}"

    pipeline = Pipeline(from_tools([FunctionTool(pay, require_confirmation=lambda cents: cents > 10)]))

    small = await pipeline.run(ToolCall("pay", {"cents": 1}))
    large = await pipeline.run(ToolCall("pay", {"cents": 100}))
    assert isinstance(large, Suspended)
    done = await pipeline.run(large, grant=large.request.grant())

    assert [outcome.text() for outcome in (small, done)] == ["paid 1", "paid 100"]


async def test_programs_call_their_tools_which_see_a_session_of_our_principal() -> None:
    def whose(tool_context: ToolContext) -> str:
        """Say whose."""
        return tool_context.user_id

    result = await Toolkit(from_tools([whose])).execute_async("whose()", run=Run(principal="ben"))

    assert result.return_value == "ben"


def test_a_tool_that_a_provider_runs_is_no_member() -> None:
    with pytest.raises(TypeError, match="google_search"):
        from_tools([google_search])


# --- gates around what is there


async def test_a_guarded_tool_that_asks_by_itself_is_confirmed_once() -> None:
    ran: list[str] = []
    tool = FunctionTool(deleting(ran), require_confirmation=True)
    chat = Chat([tool], [("delete", {"path": "x"})], plugins=[GuardPlugin(GuardPolicy())])

    asked = await chat.say("go")
    [call] = [call for event in asked for call in event.get_function_calls() if "confirmation" in call.name]
    response = types.FunctionResponse(id=call.id, name=call.name, response={"confirmed": True})
    done = await chat.say(types.Content(role="user", parts=[types.Part(function_response=response)]))

    assert (outputs(done), ran) == ([{"result": "deleted x"}], ["x"])


def self_asking(ran: list[str]) -> Any:
    """Return a function that asks for a confirmation itself, with a payload of its own."""

    def delete(path: str, tool_context: ToolContext) -> str:
        """Delete a file."""
        if tool_context.tool_confirmation is None:
            tool_context.request_confirmation(hint="sure?", payload={"seats": 1})
            return "waits"
        ran.append(f"{path} {tool_context.tool_confirmation.payload}")
        return f"{tool_context.tool_confirmation.confirmed}"

    return delete


@pytest.mark.parametrize("says_yes", [True, False], ids=["yes", "no"])
@pytest.mark.parametrize("gates", ["guard", "none"])
async def test_what_adk_itself_asks_is_asked_and_answered_as_ours_is(gates: str, says_yes: bool) -> None:
    ran: list[str] = []
    plugins = [GuardPlugin(GuardPolicy())] if gates == "guard" else []
    tools = [FunctionTool(deleting(ran), require_confirmation=True)]
    chat = Chat(tools, [("delete", {"path": "x"})], plugins=plugins)
    asked = await chat.say("go")

    [request] = approval_requests(asked)
    assert (request.tool, request.arguments, ran) == ("delete", {"path": "x"}, [])
    given = request.grant("ann") if says_yes else request.deny(message="no", by="ann")
    done = await chat.say(answers(asked, given))

    assert ran == (["x"] if says_yes else [])
    assert (outputs(done) == [{"result": "deleted x"}]) is says_yes
    assert approval_requests(await chat.events()) == []


async def test_a_tool_that_asks_by_itself_gets_its_payload_back() -> None:
    ran: list[str] = []
    chat = Chat([self_asking(ran)], [("delete", {"path": "x"})], plugins=[GuardPlugin(GuardPolicy())])
    asked = await chat.say("go")

    [request] = approval_requests(asked)
    assert request.reason == "sure?"
    await chat.say(answers(asked, request.grant("ann")))

    assert ran == ["x {'seats': 1}"]


async def test_an_answer_that_adk_cannot_take_is_refused_with_the_mend() -> None:
    chat = Chat([FunctionTool(deleting([]), require_confirmation=True)], [("delete", {"path": "x"})])
    asked = await chat.say("go")
    [request] = approval_requests(asked)

    for answer in (request.grant("ann", scope="tool"), request.grant("ann", override_args={"path": "y"})):
        with pytest.raises(ApprovalError, match="GuardPolicy"):
            answers(asked, answer)


async def test_a_tool_that_a_provider_runs_is_refused_until_it_is_left() -> None:
    with pytest.raises(Exception, match=r"leave=\['google_search'\]"):
        await guarded_search(GuardPolicy())

    assert (await guarded_search(GuardPolicy(leave=["google_search"])))[-1].content.parts[0].text == "done"


async def guarded_search(policy: GuardPolicy) -> list[Any]:
    """Return the events of an agent with a tool that the provider runs."""
    agent = LlmAgent(name="agent", model=ScriptedLlm(model="gemini-2.5-flash"), tools=[google_search])
    runner = InMemoryRunner(app=guard(App(name="app", root_agent=agent), policy))
    session = await runner.session_service.create_session(app_name="app", user_id="ann")
    return [e async for e in runner.run_async(user_id="ann", session_id=session.id, new_message=saying("go"))]


@pytest.mark.parametrize("is_late", [False, True], ids=["given", "later"])
async def test_an_agent_that_is_a_tool_and_runs_without_plugins_is_refused_or_left(is_late: bool) -> None:
    apart: Any = AgentTool(LlmAgent(name="inner"), include_plugins=False)
    agent = LlmAgent(name="outer", model=ScriptedLlm(), tools=[] if is_late else [apart])

    async def run() -> None:
        app = guard(agent, GuardPolicy())
        agent.tools.append(apart)
        await InMemoryRunner(app=app).run_debug("go", quiet=True)

    with pytest.raises(Exception, match=r"`inner` cannot be guarded: .*include_plugins=False.*leave=\['inner'\]"):
        await run()
    assert guard(agent, GuardPolicy(leave=["inner"]))
