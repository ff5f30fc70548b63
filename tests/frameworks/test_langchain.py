"""LangChain and LangGraph: what their way in does not show."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware, ToolRetryMiddleware
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, ToolException
from langchain_core.tools import tool as lc_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, InjectedStore, ToolNode, ToolRuntime
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, interrupt

from tests.frameworks.booking import booking
from tests.frameworks.scripted import Scripted
from toolcrib.adapters.langchain import (
    GuardMiddleware,
    UsageMiddleware,
    answers,
    approval_requests,
    as_tools,
    from_tools,
    guard,
    member_of,
)
from toolcrib.adapters.langchain._members import value_of
from toolcrib.approvals import MemoryApprovalStore, MemorySuspendedCalls
from toolcrib.calls import Completed, Failed, Media, Suspended, ToolCall
from toolcrib.errors import ApprovalError, RemoteToolError, ToolConstraintError, ToolcribError
from toolcrib.pipeline import CallLimits, Durability, Pipeline, Run
from toolcrib.provenance import Provenance
from toolcrib.record import ListSink
from toolcrib.schema import RunContext
from toolcrib.serving import GuardPolicy
from toolcrib.testing import RecordingSink
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset

_IDS = itertools.count()


def config() -> Any:
    """Return the configuration of a thread of its own."""
    return {"configurable": {"thread_id": f"thread {next(_IDS)}"}}


def calling(*calls: tuple[str, dict[str, Any]]) -> AIMessage:
    """Return a message that makes these calls."""
    made: list[Any] = [
        {"name": name, "args": arguments, "id": f"call_{next(_IDS)}", "type": "tool_call"} for name, arguments in calls
    ]
    return AIMessage("", tool_calls=made)


def agent_of(tools: Any, *turns: Any, **options: Any) -> Any:
    """Return an agent whose model makes these calls, turn by turn, and then says that it is done."""
    script = [*(turn if isinstance(turn, AIMessage) else calling(*turn) for turn in turns), AIMessage("done")]
    return create_agent(Scripted(responses=script), tools=tools, checkpointer=InMemorySaver(), **options)


def went() -> tuple[Any, Any]:
    """Return what an agent begins with, in a thread of its own."""
    return {"messages": "go"}, config()


def outputs(result: Any) -> list[Any]:
    """Return what the model was given for each call."""
    return [message.content for message in result["messages"] if isinstance(message, ToolMessage)]


def deleting(ran: list[str]) -> Any:
    """Return a tool of LangChain that notes what it was called with."""

    @lc_tool
    def delete(path: str) -> str:
        """Delete a file."""
        ran.append(path)
        return f"deleted {path}"

    return delete


# --- our tools in their agents


async def test_two_calls_of_one_message_wait_and_are_answered_one_by_one() -> None:
    ran: list[str] = []
    agent, where = (
        agent_of(
            as_tools([booking(ran, requires_approval=True)]), [("book", {"city": "Oslo"}), ("book", {"city": "Rome"})]
        ),
        config(),
    )

    first = await agent.ainvoke({"messages": "go"}, where)
    oslo, rome = approval_requests(first["__interrupt__"])
    second = await agent.ainvoke(
        Command(resume=answers(first["__interrupt__"], rome.grant("ann", override_args={"city": "Nice"}))), where
    )
    [left] = approval_requests(second["__interrupt__"])
    last = await agent.ainvoke(
        Command(resume=answers(second["__interrupt__"], left.deny(message="too far", by="ann"))), where
    )

    assert (left.id, ran) == (oslo.id, ["Nice"])
    assert outputs(last) == ["Rejected: too far", "booked Nice"]


@pytest.mark.parametrize(
    ("said", "made"),
    [
        (True, "booked Oslo"),
        ({"type": "approve"}, "booked Oslo"),
        ({"decisions": [{"type": "approve"}]}, "booked Oslo"),
        ({"type": "edit", "edited_action": {"name": "book", "args": {"city": "Rome"}}}, "booked Rome"),
        (False, "Rejected: `book` was denied"),
        ({"type": "reject", "message": "no"}, "Rejected: no"),
    ],
)
async def test_decisions_of_langchains_own_front_ends_are_answers(said: Any, made: str) -> None:
    agent, where = agent_of(as_tools([booking([], requires_approval=True)]), [("book", {"city": "Oslo"})]), config()

    asked = await agent.ainvoke({"messages": "go"}, where)
    done = await agent.ainvoke(Command(resume=said), where)

    value = asked["__interrupt__"][0].value
    assert (value["type"], value["name"], value["args"]) == ("tool_approval", "book", {"city": "Oslo"})
    assert outputs(done) == [made]


@pytest.mark.parametrize("by_id", [False, True], ids=["plain", "by id"])
async def test_what_is_no_answer_is_an_error_and_the_call_waits_on(by_id: bool) -> None:
    ran: list[str] = []
    agent, where = agent_of(as_tools([booking(ran, requires_approval=True)]), [("book", {"city": "Oslo"})]), config()
    [asked] = (await agent.ainvoke({"messages": "go"}, where))["__interrupt__"]

    def resume(said: Any) -> Any:
        return Command(resume={asked.id: said} if by_id else said)

    other = {"type": "edit", "edited_action": {"name": "cancel", "args": {"city": "Rome"}}}
    bad = ({"type": "edit", "edited_action": {"args": "Rome"}}, {"kind": "grant"}, "well")
    problems = [
        *((each, "is not an answer") for each in bad),
        (other, "another tool"),
        ({"type": "respond"}, "respond"),
    ]
    for said, problem in problems:
        with pytest.raises(ApprovalError, match=problem):
            await agent.ainvoke(resume(said), where)
        assert ((await agent.aget_state(where)).interrupts[0].id, ran) == (asked.id, [])

    assert outputs(await agent.ainvoke(resume({"type": "approve"}), where)) == ["booked Oslo"]


def test_a_graph_without_an_event_loop_does_the_same() -> None:
    ran: list[str] = []
    agent, where = agent_of(as_tools([booking(ran, requires_approval=True)]), [("book", {"city": "Oslo"})]), config()

    asked = agent.invoke({"messages": "go"}, where)
    [request] = approval_requests(asked["__interrupt__"])
    done = agent.invoke(Command(resume=answers(asked["__interrupt__"], request.grant("ann"))), where)

    assert (outputs(done), ran) == (["booked Oslo"], ["Oslo"])


async def test_a_node_that_is_replayed_makes_no_call_twice() -> None:
    ran: list[str] = []
    asks = booking(ran, requires_approval=lambda args, ctx: args["city"] == "Rome")
    graph: Any = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode(as_tools([asks])))
    graph.add_edge(START, "tools")
    compiled, where = graph.compile(checkpointer=InMemorySaver()), config()
    made = calling(("book", {"city": "Oslo"}), ("book", {"city": "Rome"}))

    asked = await compiled.ainvoke({"messages": [made]}, where)
    done = await compiled.ainvoke(Command(resume={"type": "approve"}), where)

    assert len(asked["__interrupt__"]) == 1
    assert (outputs(done), ran) == (["booked Oslo", "booked Rome"], ["Oslo", "Rome"])


async def test_an_approval_in_a_process_that_lost_the_call_is_none_of_edited_arguments() -> None:
    ran: list[str] = []
    names = iter(["Oslo", "Paris", "Paris"])

    async def move(ctx: RunContext, args: dict[str, Any], metadata: dict[str, Any]) -> dict[str, Any]:
        return {"city": next(names)}

    def tools() -> Any:
        return as_tools(Toolset([booking(ran, requires_approval=True)], pre_hooks={"book": move}))

    saver, where = InMemorySaver(), config()
    script = [calling(("book", {"city": "Bergen"})), AIMessage("done")]
    first: Any = create_agent(Scripted(responses=script), tools=tools(), checkpointer=saver)
    await first.ainvoke({"messages": "go"}, where)
    second: Any = create_agent(Scripted(responses=[AIMessage("done")]), tools=tools(), checkpointer=saver)

    asked = await second.ainvoke(Command(resume={"type": "approve"}), where)

    [request] = approval_requests(asked["__interrupt__"])
    assert (request.arguments, ran) == ({"city": "Paris"}, [])


@pytest.mark.parametrize("plain", [False, True], ids=["named", "plain"])
async def test_a_graph_asks_one_question_about_a_call_in_doubt_and_its_answer_counts(plain: bool) -> None:
    ran: list[str] = []
    store, where = MemoryApprovalStore(), config()
    tools = as_tools([booking(ran, requires_approval=True)], run=lambda runtime: Run(approvals=store))
    script = [calling(("book", {"city": "Oslo"})), AIMessage("done")]
    agent: Any = create_agent(Scripted(responses=script), tools=tools, checkpointer=InMemorySaver())
    asked = (await agent.ainvoke({"messages": "go"}, where))["__interrupt__"]
    [before] = approval_requests(asked)
    grant = before.grant("ann")
    await store.use(before, grant)
    await store.begin(before, grant)
    await store.break_off(before, grant)

    yes = {"type": "approve"} if plain else answers(asked, grant)
    doubt = (await agent.ainvoke(Command(resume=yes), where))["__interrupt__"]
    [request] = approval_requests(doubt)
    done = await agent.ainvoke(Command(resume=answers(doubt, request.done("booked by hand", "ann"))), where)

    assert (request.in_doubt, request.follows) == (True, before.id)
    assert (done["messages"][-2].content, ran) == ("booked by hand", [])
    assert await store.list(pending=True) == ()


@pytest.mark.parametrize("stored", [False, True], ids=["in memory", "in a store"])
async def test_a_plain_yes_is_no_answer_about_a_tool_that_has_changed_since(stored: bool) -> None:
    ran: list[Any] = []
    saver, where, calls = InMemorySaver(), config(), MemorySuspendedCalls()
    run = Run(approvals=MemoryApprovalStore()) if stored else Run()

    @ez_tool(name="book", requires_approval=True)
    async def book_for(city: str, nights: int = 7) -> str:
        """Book a room."""
        ran.append((city, nights))
        return f"booked {city}"

    def agent(tool: Any, *script: AIMessage) -> Any:
        tools = as_tools([tool], run=lambda runtime: run, suspended=calls)
        return create_agent(Scripted(responses=[*script, AIMessage("done")]), tools=tools, checkpointer=saver)

    await agent(booking([], requires_approval=True), calling(("book", {"city": "Oslo"}))).ainvoke(
        {"messages": "go"}, where
    )
    asked = await agent(book_for).ainvoke(Command(resume={"type": "approve"}), where)
    [request] = approval_requests(asked["__interrupt__"])
    for again in (None, Command(resume={"type": "approve"})):
        asked = await agent(book_for).ainvoke(again, where)
    before = [*ran]
    await agent(book_for).ainvoke(Command(resume=answers(asked["__interrupt__"], request.grant("ann"))), where)

    assert (before, request.arguments) == ([], {"city": "Oslo", "nights": 7})
    assert ran == [("Oslo", 7)]


async def test_outside_a_graph_nobody_can_be_asked() -> None:
    ran: list[str] = []
    [book] = as_tools([booking(ran, requires_approval=True)])
    made = calling(("book", {"city": "Oslo"})).tool_calls[0]

    message = await book.ainvoke(made)

    assert (message.status, ran) == ("error", [])
    assert "suspended until a person answers" in message.content


async def test_a_trace_of_a_call_holds_its_arguments_alone() -> None:
    class Trace(AsyncCallbackHandler):
        async def on_tool_start(self, serialized: Any, input_str: str, **kwargs: Any) -> None:
            seen.append((input_str, kwargs["inputs"]))

    seen: list[Any] = []
    agent = agent_of(as_tools([booking([])]), [("book", {"city": "Oslo"})])

    done = await agent.ainvoke({"messages": "go"}, {**config(), "callbacks": [Trace()]})

    assert seen == [("{'city': 'Oslo'}", {"city": "Oslo"})]
    assert outputs(done) == ["booked Oslo"]


async def test_the_context_is_the_deps_and_the_thread_is_the_conversation() -> None:
    @ez_tool
    async def whose(ctx: RunContext) -> str:
        """Say whose."""
        return f"{ctx.deps.name} in {ctx.run.channel.conversation_id} by {ctx.provided[ToolRuntime].tool_call_id}"  # type: ignore[index]

    agent, where = agent_of(as_tools([whose]), [("whose", {})], context_schema=User), config()

    done = await agent.ainvoke({"messages": "go"}, where, context=User("Ann"))

    call_id = done["messages"][1].tool_calls[0]["id"]
    assert outputs(done) == [f"Ann in {where['configurable']['thread_id']} by {call_id}"]


@dataclass
class User:
    """A user of the application."""

    name: str


async def test_limits_hold_for_what_a_user_says() -> None:
    ran: list[str] = []
    tools = as_tools([booking(ran)], run=lambda runtime: Run(limits=CallLimits(total=1)))
    oslo, rome = ("book", {"city": "Oslo"}), ("book", {"city": "Rome"})
    agent, where = agent_of(tools, [oslo, rome], AIMessage("one"), [rome]), config()

    first = await agent.ainvoke({"messages": "go"}, where)
    again = await agent.ainvoke({"messages": "and again"}, where)

    assert len(ran) == 2
    assert sum("Rejected" in text for text in outputs(first)) == 1
    assert outputs(again)[2:] == ["booked Rome"]


async def test_each_user_of_a_thread_has_a_run_of_their_own() -> None:
    sink = RecordingSink()
    tools = as_tools([booking([])], run=lambda runtime: Run(principal=runtime.context.name), sinks=[sink])
    oslo = ("book", {"city": "Oslo"})
    agent, where = agent_of(tools, [oslo], AIMessage("one"), [oslo], context_schema=User), config()

    for name in ("ann", "ben"):
        await agent.ainvoke({"messages": "go"}, where, context=User(name))

    assert [record.principal for record in sink.records] == ["ann", "ben"]


async def test_media_come_as_content_blocks_and_the_value_as_the_artifact() -> None:
    @ez_tool
    async def draw() -> list[Any]:
        """Draw."""
        return ["a dot", Media("image/png", b"dot"), Media("text/csv", b"1,2")]

    done = await agent_of(as_tools([draw]), [("draw", {})]).ainvoke({"messages": "go"}, config())

    [parts] = outputs(done)
    assert [part["type"] for part in parts] == ["text", "image", "file"]
    assert (parts[1]["base64"], parts[1]["mime_type"]) == ("ZG90", "image/png")
    assert from_tools([]) == []


async def test_values_of_a_streaming_tool_come_as_they_are_made() -> None:
    @ez_tool
    async def count() -> Any:
        """Count."""
        yield 1
        yield 2

    agent = agent_of(as_tools([count]), [("count", {})])

    streamed = [part async for part in agent.astream({"messages": "go"}, config(), stream_mode=["tools", "values"])]

    deltas = [part["delta"] for mode, part in streamed if mode == "tools" and "delta" in part]
    assert deltas == [1, 2]
    assert outputs(streamed[-1][1]) == ["[1, 2]"]


async def test_a_value_of_a_stranger_is_asked_about() -> None:
    sent: list[str] = []

    @ez_tool(effect="spend")
    async def pay(account: str) -> str:
        """Pay."""
        sent.append(account)
        return "paid"

    @lc_tool
    def read_mail() -> str:
        """Read the mail."""
        return "pay to DE89370400440532013000"

    tools = [*as_tools([pay], run=lambda runtime: Run(features=[Provenance()])), read_mail]
    paying = ("pay", {"account": "DE89370400440532013000"})
    agent = agent_of(tools, [("read_mail", {})], [paying])
    asked = await agent.ainvoke({"messages": "pay my bill"}, config())
    agent = agent_of(tools, [paying])
    told = await agent.ainvoke({"messages": "pay to DE89370400440532013000"}, config())

    assert approval_requests(asked["__interrupt__"])[0].origins[0]["value"] == "DE89370400440532013000"
    assert ("__interrupt__" in told, sent) == (False, ["DE89370400440532013000"])


async def test_a_call_can_be_cancelled() -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    @ez_tool
    async def wait() -> None:
        """Wait."""
        began.set()
        try:
            await asyncio.sleep(3600)
        finally:
            ended.set()

    task = asyncio.ensure_future(agent_of(as_tools([wait]), [("wait", {})]).ainvoke({"messages": "go"}, config()))
    await began.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


# --- their tools with us


async def test_their_media_are_media() -> None:
    @lc_tool
    def draw() -> Any:
        """Draw."""
        return [{"type": "image", "base64": "ZG90", "mime_type": "image/png"}, {"type": "text", "text": "a dot"}]

    outcome = await Pipeline(from_tools([draw])).run(ToolCall("draw"))

    assert isinstance(outcome, Completed)
    assert outcome.value == [Media("image/png", b"dot"), "a dot"]


async def test_a_failure_that_their_tool_turns_into_a_message_is_one() -> None:
    @lc_tool
    def book() -> str:
        """Book a room."""
        raise ToolException("there is no room")

    book.handle_tool_error = True

    outcome = await Pipeline(from_tools([book])).run(ToolCall("book"))

    assert isinstance(outcome, Failed)
    assert isinstance(outcome.exception, RemoteToolError)


# --- gates around what is there


@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
async def test_a_guard_asks_about_the_tools_that_an_agent_has(sync: bool) -> None:
    ran: list[str] = []
    sink = RecordingSink()
    policy = GuardPolicy(approve=["delete"], sinks=(sink,))
    agent, where = (
        agent_of([deleting(ran)], [("delete", {"path": "x"})], middleware=[GuardMiddleware(policy)]),
        config(),
    )

    async def invoke(given: Any) -> Any:
        return await (asyncio.to_thread(agent.invoke, given, where) if sync else agent.ainvoke(given, where))

    asked = await invoke({"messages": "go"})
    [request] = approval_requests(asked["__interrupt__"])
    assert ran == []
    done = await invoke(Command(resume=answers(asked["__interrupt__"], request.grant("ann"))))

    assert (outputs(done), ran) == (["deleted x"], ["x"])
    assert sink.records[-1].approval["approver"] == "ann"  # type: ignore[index]


@pytest.mark.parametrize("of_guard", [True, False])
async def test_answers_in_the_place_of_a_command_are_told_in_the_log(
    of_guard: bool, caplog: pytest.LogCaptureFixture
) -> None:
    ran: list[str] = []
    ours = [deleting(ran)] if of_guard else as_tools([booking(ran, requires_approval=True)])
    middleware = GuardMiddleware(GuardPolicy(approve=["delete"])) if of_guard else UsageMiddleware(ours)
    called = ("delete", {"path": "x"}) if of_guard else ("book", {"city": "Oslo"})
    agent, where = agent_of(ours, [called], middleware=[middleware]), config()
    asked = await agent.ainvoke({"messages": "go"}, where)
    [request] = approval_requests(asked["__interrupt__"])
    assert caplog.messages == []

    await agent.ainvoke(answers(asked["__interrupt__"], request.grant("ann")), where)

    (line,) = caplog.messages
    assert f"of `{called[0]}` has no result" in line
    assert "agent.invoke(Command(resume=answers(...)), config)" in line
    assert ran == []


class _Editing(AgentMiddleware[Any, Any, Any]):
    """Changes the path that a tool is called with."""

    @staticmethod
    def _edited(request: Any) -> Any:
        return request.override(tool_call={**request.tool_call, "args": {"path": "/etc/shadow"}})

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        return handler(self._edited(request))

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        return await handler(self._edited(request))


@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
@pytest.mark.parametrize("behind", [_Editing, lambda: ToolRetryMiddleware(max_retries=2)], ids=["edits", "tries again"])
async def test_a_guard_has_no_middleware_behind_it_that_could_make_another_call(
    sync: bool, behind: Callable[[], AgentMiddleware[Any, Any, Any]]
) -> None:
    ran: list[str] = []
    guard = GuardMiddleware(GuardPolicy(approve=["delete"]))
    agent = agent_of([deleting(ran)], [("delete", {"path": "x"})], middleware=[guard, behind()])

    with pytest.raises(TypeError, match="Put the guard last"):
        await (
            asyncio.to_thread(agent.invoke, {"messages": "go"}, config())
            if sync
            else agent.ainvoke({"messages": "go"}, config())
        )

    assert ran == []


@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
async def test_a_name_in_a_policy_that_no_tool_of_the_agent_has_is_an_error_before_a_call(sync: bool) -> None:
    ran: list[str] = []
    policy = GuardPolicy(approve=["wipe"])
    agent = agent_of([deleting(ran)], [("delete", {"path": "x"})], middleware=[GuardMiddleware(policy)])

    with pytest.raises(ToolConstraintError, match=r"`wipe`: GuardPolicy\(approve=...\) is about it, .* `delete`"):
        await (asyncio.to_thread(agent.invoke, *went()) if sync else agent.ainvoke(*went()))
    with pytest.raises(ToolConstraintError, match=r"`wipe`: GuardPolicy\(approve=...\) is about it, .* `delete`"):
        GuardMiddleware(policy, tools=[deleting(ran)])

    assert ran == []


async def test_a_guard_that_is_told_of_tools_that_come_later_takes_their_names() -> None:
    def wipe() -> None: ...

    web = {"type": "web_search"}
    policy = GuardPolicy(approve=["wipe"], leave=["web_search"])
    around = GuardMiddleware(policy, tools=[deleting([]), wipe, web])
    agent = agent_of([deleting([]), web], [("delete", {"path": "x"})], middleware=[around])

    assert outputs(await agent.ainvoke(*went())) == ["deleted x"]


@pytest.mark.parametrize("place", ["agent", "alone", "toolset"])
async def test_an_error_that_a_tool_means_for_the_model_leaves_no_traceback(
    place: str, caplog: pytest.LogCaptureFixture
) -> None:
    @lc_tool
    def delete(path: str) -> str:
        """Delete a file."""
        raise ToolException(f"{path} is locked")

    if place == "toolset":
        said = (await Pipeline(from_tools([delete])).run(ToolCall("delete", {"path": "x"}))).text()
    else:
        around = [GuardMiddleware(GuardPolicy())] if place == "agent" else []
        tools = [delete] if place == "agent" else guard([delete], GuardPolicy())
        said = outputs(await agent_of(tools, [("delete", {"path": "x"})], middleware=around).ainvoke(*went()))[0]

    assert "x is locked" in said
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.parametrize("mode", ["batched", "per_call"])
async def test_what_langchains_own_middleware_asks_is_no_empty_list_of_requests(mode: Any) -> None:
    own = HumanInTheLoopMiddleware({"delete": True}, interrupt_mode=mode)
    around = [own, GuardMiddleware(GuardPolicy(approve=["delete"]))]
    asked = await agent_of([deleting([])], [("delete", {"path": "x"})], middleware=around).ainvoke(*went())

    for read in (approval_requests, answers):
        with pytest.raises(ApprovalError, match=r"HumanInTheLoopMiddleware .* GuardPolicy\(approve=\['delete'\]\)"):
            read(asked["__interrupt__"])


def test_a_plain_function_is_to_be_made_a_tool() -> None:
    with pytest.raises(TypeError, match=r"function.* wrap it with the `tool\(...\)` of langchain"):
        guard([deleting([]), deleting([]).func], GuardPolicy())


@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
@pytest.mark.parametrize("several", [False, True], ids=["one", "list"])
async def test_a_command_that_our_tool_returns_is_the_graphs(several: bool, sync: bool) -> None:
    @ez_tool
    async def note(ctx: RunContext) -> Any:
        """Note."""
        command: Any = Command(update={"messages": [ToolMessage("noted", tool_call_id=ctx.call_id)]})
        return [command] if several else command

    async def said(**options: Any) -> list[Any]:
        agent, (given, where) = agent_of(as_tools([note], **options), [("note", {})]), went()
        return outputs(await (asyncio.to_thread(agent.invoke, given, where) if sync else agent.ainvoke(given, where)))

    assert await said() == ["noted"]
    with pytest.raises(ToolcribError, match="a Command, which no delivery can read"):
        await said(run=Run(deliveries=[lambda call, value: value]))


async def test_a_tool_has_the_gates_of_one_guard() -> None:
    guarded = guard([deleting([])], GuardPolicy(approve=["delete"]))
    agent = agent_of(
        guarded, [("delete", {"path": "x"})], middleware=[GuardMiddleware(GuardPolicy(approve=["delete"]))]
    )
    left = agent_of(guarded, [("delete", {"path": "x"})], middleware=[GuardMiddleware(GuardPolicy(leave=["delete"]))])

    with pytest.raises(TypeError, match="`delete` has the gates of a guard already: one GuardPolicy has them all"):
        await agent.ainvoke({"messages": "go"}, config())
    with pytest.raises(TypeError, match="`delete` has the gates of a guard already"):
        guard(guarded, GuardPolicy(approve=["delete"]))
    assert len(approval_requests((await left.ainvoke({"messages": "go"}, config()))["__interrupt__"])) == 1


async def test_a_guard_asks_about_what_a_middleware_before_it_made_of_a_call() -> None:
    ran: list[str] = []
    guard = GuardMiddleware(GuardPolicy(approve=["delete"]))
    agent = agent_of([deleting(ran)], [("delete", {"path": "x"})], middleware=[_Editing(), guard])

    asked = await agent.ainvoke({"messages": "go"}, config())

    assert [dict(one.arguments) for one in approval_requests(asked["__interrupt__"])] == [{"path": "/etc/shadow"}]
    assert ran == []


async def test_a_guarded_tool_has_the_state_of_the_graph_and_its_own_message() -> None:
    @lc_tool(response_format="content_and_artifact")
    def count(word: str, state: Annotated[dict[str, Any], InjectedState]) -> Any:
        """Count messages."""
        return f"{word}: {len(state['messages'])}", {"made": "by the tool"}

    agent = agent_of([count], [("count", {"word": "n"})], middleware=[GuardMiddleware(GuardPolicy())])

    done = await agent.ainvoke({"messages": "go"}, config())

    assert outputs(done) == ["n: 2"]
    assert done["messages"][2].artifact == {"made": "by the tool"}


@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
async def test_what_a_guarded_tool_gives_beside_its_value_does_not_go_round_a_delivery(sync: bool) -> None:
    @lc_tool(response_format="content_and_artifact")
    def find(name: str) -> Any:
        """Find a customer."""
        return "found", {"mail": f"{name}@example.org"}

    policy = GuardPolicy(run=Run(deliveries=[lambda call, value: value]))
    agent = agent_of([find], [("find", {"name": "ann"})], middleware=[GuardMiddleware(policy)])

    given, where = {"messages": "go"}, config()
    done = await (asyncio.to_thread(agent.invoke, given, where) if sync else agent.ainvoke(given, where))

    assert outputs(done) == ["found"]
    assert "ann@" not in repr(done["messages"][2])


@pytest.mark.parametrize("run", [None, Run(approvals=MemoryApprovalStore())], ids=["alone", "store"])
@pytest.mark.parametrize("sync", [True, False])
async def test_a_guarded_tool_that_interrupts_the_graph_itself_does_so(sync: bool, run: Run | None) -> None:
    @lc_tool
    def ask(question: str) -> str:
        """Ask."""
        return f"they said {interrupt(question)}"

    sink, where = ListSink(), config()
    guard = GuardMiddleware(GuardPolicy(sinks=(sink,), run=run))
    agent = agent_of([ask], [("ask", {"question": "why"})], middleware=[guard])

    async def invoke(given: Any) -> Any:
        return await (asyncio.to_thread(agent.invoke, given, where) if sync else agent.ainvoke(given, where))

    asked, done = await invoke({"messages": "go"}), await invoke(Command(resume="so"))

    assert asked["__interrupt__"][0].value == "why"
    assert outputs(done) == ["they said so"]
    assert [event.data["outcome"]["kind"] for event in sink.events if event.kind == "ended"] == [
        "cancelled",
        "completed",
    ]


def asking(asked: list[str], **options: Any) -> Any:
    """Return a tool of ours that interrupts its graph itself."""

    @ez_tool(**options)
    def ask(question: str) -> str:
        """Ask."""
        asked.append(question)
        return f"they said {interrupt(question)}"

    return ask


def kept_in(kind: str) -> dict[str, Any]:
    """Return the options of a run that keeps its calls nowhere, with approvals, or as durable ones."""
    store = MemoryApprovalStore()
    return {"": {}, "approvals": {"approvals": store}, "durable": {"durability": Durability(store=store)}}[kind]


@pytest.mark.parametrize("kept", ["", "approvals", "durable"])
@pytest.mark.parametrize("guarded", [False, True], ids=["ours", "guarded"])
async def test_a_call_whose_tool_interrupts_the_graph_is_counted_once(
    guarded: bool, kept: str, caplog: pytest.LogCaptureFixture
) -> None:
    tool, run = asking([]), Run(id=f"run {next(_IDS)}", limits=CallLimits(total=1), **kept_in(kept))
    tools, around = as_tools([tool], run=run), [GuardMiddleware(GuardPolicy(run=run))]
    if guarded:
        agent = agent_of([lc_tool(tool.fn)], [("ask", {"question": "why"})], middleware=around)
    else:
        agent = agent_of(tools, [("ask", {"question": "why"})])
    given, where = went()

    asked = await agent.ainvoke(given, where)
    done = await agent.ainvoke(Command(resume="so"), where)

    assert [one.value for one in asked["__interrupt__"]] == ["why"]
    assert outputs(done) == ["they said so"]
    assert not caplog.records


@pytest.mark.parametrize("kept", ["", "approvals"])
async def test_a_tool_that_needs_approval_and_interrupts_the_graph_is_an_error_for_the_host(kept: str) -> None:
    ran: list[str] = []
    tools = as_tools([asking(ran, requires_approval=True)], run=Run(**kept_in(kept)))
    agent, where = agent_of(tools, [("ask", {"question": "why"})]), config()
    asked = (await agent.ainvoke({"messages": "go"}, where))["__interrupt__"]
    [request] = approval_requests(asked)

    with pytest.raises(ApprovalError, match="leave out the approval or the tool's interrupt"):
        await agent.ainvoke(Command(resume=answers(asked, request.grant("ann"))), where)

    assert ran == ["why"]


async def test_a_call_of_a_tool_that_the_agent_does_not_know_is_answered_by_it() -> None:
    agent = agent_of([deleting([])], [("wipe", {})], middleware=[GuardMiddleware(GuardPolicy())])

    done = await agent.ainvoke({"messages": "go"}, config())

    assert "wipe is not a valid tool" in outputs(done)[0]


async def test_a_tool_that_a_provider_runs_is_refused_until_it_is_left() -> None:
    tools = [{"type": "web_search"}]
    agent = agent_of(tools, middleware=[GuardMiddleware(GuardPolicy())])
    left = agent_of(tools, middleware=[GuardMiddleware(GuardPolicy(leave=["web_search"]))])

    with pytest.raises(ValueError, match=r"leave=\['web_search'\]"):
        await agent.ainvoke({"messages": "go"}, config())

    assert (await left.ainvoke({"messages": "go"}, config()))["messages"][-1].content == "done"


async def test_tools_alone_are_guarded() -> None:
    ran: list[str] = []
    [delete] = guard([deleting(ran)], GuardPolicy(approve=True))

    asked = await agent_of([delete], [("delete", {"path": "x"})]).ainvoke({"messages": "go"}, config())

    assert (len(approval_requests(asked["__interrupt__"])), ran) == (1, [])


def injected_tools(seen: list[Any]) -> list[Any]:
    """Return tools with each thing that a graph injects."""

    @lc_tool
    def state_of(word: str, state: Annotated[dict[str, Any], InjectedState]) -> str:
        """Count messages."""
        seen.append(len(state["messages"]))
        return word

    @lc_tool
    def field_of(word: str, messages: Annotated[list[Any], InjectedState("messages")]) -> str:
        """Count messages."""
        seen.append(len(messages))
        return word

    @lc_tool
    async def runtime_of(word: str, runtime: ToolRuntime) -> str:
        """Count messages."""
        seen.append(len(runtime.state["messages"]))
        return word

    @lc_tool
    def store_of(word: str, store: Annotated[BaseStore, InjectedStore()]) -> str:
        """Write to the store."""
        store.put(("words",), word, {"word": word})
        seen.append(2)
        return word

    @lc_tool
    def command_of(word: str, call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Go on by a command."""
        seen.append(2)
        return Command(update={"messages": [ToolMessage(word, tool_call_id=call_id)]})

    return [state_of, field_of, runtime_of, store_of, command_of]


@pytest.mark.parametrize("asks", [False, True], ids=["runs", "asks"])
@pytest.mark.parametrize("name", [tool.name for tool in injected_tools([])])
async def test_a_tool_that_is_guarded_alone_has_what_its_graph_injects(name: str, asks: bool) -> None:
    seen: list[Any] = []
    tools = guard(injected_tools(seen), GuardPolicy(approve=asks))
    agent, where = agent_of(tools, [(name, {"word": "so"})], store=InMemoryStore()), config()

    done = await agent.ainvoke({"messages": "go"}, where)
    if asks:
        assert seen == []
        [request] = approval_requests(done["__interrupt__"])
        assert request.arguments == {"word": "so"}
        done = await agent.ainvoke(Command(resume=answers(done["__interrupt__"], request.grant("ann"))), where)

    assert (seen, outputs(done)) == ([2], ["so"])


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("asks", [False, True], ids=["runs", "asks"])
async def test_all_that_a_guarded_tool_gives_its_graph_arrives(asks: bool, is_first: bool) -> None:
    @lc_tool
    def commands_of(word: str, call_id: Annotated[str, InjectedToolCallId]) -> list[Any]:
        """Give a message and a command."""
        both = [Command(update={"messages": [HumanMessage("more")]}), ToolMessage(word, tool_call_id=call_id)]
        return both if is_first else both[::-1]

    sink, where = ListSink(), config()
    agent = agent_of(guard([commands_of], GuardPolicy(approve=asks, sinks=(sink,))), [("commands_of", {"word": "so"})])

    done = await agent.ainvoke({"messages": "go"}, where)
    if asks:
        [request] = approval_requests(done["__interrupt__"])
        done = await agent.ainvoke(Command(resume=answers(done["__interrupt__"], request.grant("ann"))), where)

    assert outputs(done) == ["so"]
    assert "more" in [message.content for message in done["messages"]]
    assert sink.records[-1].outcome["value"] == "so"


@pytest.mark.parametrize(
    ("update", "value"),
    [
        ({"messages": [ToolMessage("so", tool_call_id="c")]}, "so"),
        ([ToolMessage("so", tool_call_id="c")], "so"),
        ({"n": 1}, "the graph goes on by a command of the tool"),
        (None, "the graph goes on by a command of the tool"),
    ],
)
def test_the_value_of_a_command_is_what_the_model_reads_of_it(update: Any, value: str) -> None:
    assert value_of(Command(update=update)) == value_of([Command(update=update)]) == value


@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
async def test_a_tool_that_is_guarded_alone_gives_a_chain_its_value(sync: bool) -> None:
    ran: list[str] = []
    [delete] = guard([deleting(ran)], GuardPolicy())

    given = await (asyncio.to_thread(delete.invoke, {"path": "x"}) if sync else delete.ainvoke({"path": "x"}))

    assert (given, ran) == ("deleted x", ["x"])


async def test_a_tool_that_is_guarded_alone_keeps_its_gates_in_a_toolset() -> None:
    ran: list[str] = []
    member = member_of(guard([deleting(ran)], GuardPolicy(approve=True))[0])
    assert isinstance(member, Toolset)

    outcome = await Pipeline(member).run(ToolCall("delete", {"path": "x"}))
    granted = await Pipeline(member).run(outcome, grant=outcome.request.grant("ann"))  # type: ignore[union-attr]

    assert isinstance(outcome, Suspended)
    assert (granted.value, ran) == ("deleted x", ["x"])  # type: ignore[union-attr]
