"""The OpenAI Agents SDK: what its way in does not show."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, replace
from typing import Any

import pytest
from agents import (
    Agent,
    RunConfig,
    RunContextWrapper,
    Runner,
    ToolGuardrailFunctionOutput,
    ToolOutputImage,
    WebSearchTool,
    function_tool,
    handoff,
    tool_input_guardrail,
    tool_output_guardrail,
    trace,
)
from agents.mcp import MCPServer
from agents.testing import ScriptedModel, assistant_message, function_call
from mcp.types import CallToolResult, TextContent
from mcp.types import Tool as McpTool

from tests.frameworks.booking import booking
from toolcrib.adapters.openai_agents import answers, approval_requests, as_tools, from_tools, guard
from toolcrib.approvals import MemoryApprovalStore, MemorySuspendedCalls
from toolcrib.calls import ApprovalRequest, Completed, Media, Suspended, ToolCall
from toolcrib.errors import ApprovalError
from toolcrib.pipeline import CallLimits, Pipeline, Run
from toolcrib.provenance import Provenance
from toolcrib.schema import RunContext
from toolcrib.serving import GuardPolicy
from toolcrib.testing import RecordingSink
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset

_IDS = itertools.count()
UNTRACED = RunConfig(tracing_disabled=True)


def saying(*turns: Any) -> ScriptedModel:
    """Return a model that makes these calls, one turn after the other, and then says that it is done."""
    made = [
        [function_call(name, arguments, call_id=f"call_{next(_IDS)}") for name, arguments in calls] for calls in turns
    ]
    return ScriptedModel([*made, [assistant_message("done")]])


def outputs(result: Any) -> list[Any]:
    """Return what the model was given for each call."""
    return [item.output for item in result.new_items if item.type == "tool_call_output_item"]


def deleting(ran: list[str]) -> Any:
    """Return a tool of the SDK that notes what it was called with."""

    @function_tool
    def delete(path: str) -> str:
        """Delete a file."""
        ran.append(path)
        return f"deleted {path}"

    return delete


async def leave_in_doubt(store: MemoryApprovalStore, request: ApprovalRequest) -> None:
    """Leave a call as a process does that dies while the tool runs."""
    grant = request.grant("ann")
    await store.use(request, grant)
    await store.begin(request, grant)
    await store.break_off(request, grant)


# --- our tools in their agents


async def weather() -> dict[str, int]:
    """Say how cold it is."""
    return {"temp": 3}


async def test_their_own_yes_and_no_do_as_well() -> None:
    ran: list[str] = []
    model = saying([("book", {"city": "Oslo"}), ("book", {"city": "Rome"})])
    agent = Agent(name="trips", tools=[*as_tools([booking(ran, requires_approval=True)])], model=model)

    state = (await Runner.run(agent, "go", run_config=UNTRACED)).to_state()
    first, second = state.get_interruptions()
    state.approve(first)
    state.reject(second, rejection_message="not there")
    done = await Runner.run(agent, state, run_config=UNTRACED)

    assert (ran, outputs(done)) == (["Oslo"], ["booked Oslo", "not there"])


async def test_a_state_asks_anew_about_a_tool_that_has_changed_and_an_old_no_is_still_one() -> None:
    ran: list[Any] = []
    run, calls = Run(approvals=MemoryApprovalStore()), MemorySuspendedCalls()

    @ez_tool(name="book", requires_approval=True)
    async def book_for(city: str, nights: int = 7) -> None:
        """Book a room."""
        ran.append((city, nights))

    def agent(tool: Any, *turns: Any) -> Agent[Any]:
        tools = as_tools([tool], run=lambda ctx: run, suspended=calls)
        return Agent(name="trips", tools=[*tools], model=saying(*turns))

    first = agent(booking([], requires_approval=True), [("book", {"city": "Oslo"})])
    state = (await Runner.run(first, "go", run_config=UNTRACED)).to_state()
    [before] = await approval_requests(state)
    state = await type(state).from_json(agent(book_for), json.loads(json.dumps(state.to_json())))
    [request] = await approval_requests(state)
    await answers(state, before.grant("ann"))
    still = await Runner.run(state._current_agent, state, run_config=UNTRACED)
    state = still.to_state()
    await answers(state, before.deny(message="too far", by="ann"))
    done = await Runner.run(state._current_agent, state, run_config=UNTRACED)

    assert (request.replaces, request.arguments) == (before.id, {"city": "Oslo", "nights": 7})
    assert len(still.interruptions) == 1
    assert (outputs(done), ran) == (["Rejected: too far"], [])


async def test_always_approve_holds_for_later_calls_of_the_tool() -> None:
    ran: list[str] = []
    model = saying([("book", {"city": "Oslo"})], [("book", {"city": "Rome"})])
    agent = Agent(name="trips", tools=[*as_tools([booking(ran, requires_approval=True)])], model=model)

    state = (await Runner.run(agent, "go", run_config=UNTRACED)).to_state()
    state.approve(state.get_interruptions()[0], always_approve=True)
    done = await Runner.run(agent, state, run_config=UNTRACED)

    assert (done.interruptions, ran) == ([], ["Oslo", "Rome"])


async def test_always_approve_is_no_answer_to_arguments_that_a_hook_edited() -> None:
    ran: list[str] = []

    async def move(ctx: RunContext, args: dict[str, Any], metadata: dict[str, Any]) -> dict[str, Any]:
        return {"city": args["city"] if len(ran) == 0 else "Paris"}

    tools = Toolset([booking(ran, requires_approval=True)], pre_hooks={"book": move})
    model = saying([("book", {"city": "Oslo"})], [("book", {"city": "Rome"})])
    agent = Agent(name="trips", tools=[*as_tools(tools)], model=model)

    state = (await Runner.run(agent, "go", run_config=UNTRACED)).to_state()
    state.approve(state.get_interruptions()[0], always_approve=True)
    done = await Runner.run(agent, state, run_config=UNTRACED)

    assert ran == ["Oslo"]
    assert "suspended until a person answers" in outputs(done)[-1]


async def test_an_answer_to_nothing_that_waits_is_an_error() -> None:
    agent = Agent(
        name="trips",
        tools=[*as_tools([booking([], requires_approval=True)])],
        model=saying([("book", {"city": "Oslo"})]),
    )
    state = (await Runner.run(agent, "go", run_config=UNTRACED)).to_state()
    [request] = await approval_requests(state)
    other = ToolCall("book", {"city": "Oslo"})
    pipeline = Pipeline([booking([], requires_approval=True)])
    suspended = await pipeline.run(other)
    assert isinstance(suspended, Suspended)

    with pytest.raises(ApprovalError, match="no call that waits"):
        await answers(state, suspended.request.grant())

    await answers(state, request.grant())


async def test_a_denial_is_in_the_record_with_the_name_of_who_said_it() -> None:
    sink = RecordingSink()
    tools = as_tools([booking([], requires_approval=True)], sinks=[sink])
    agent = Agent(name="trips", tools=[*tools], model=saying([("book", {"city": "Oslo"})]))

    state = (await Runner.run(agent, "go", run_config=UNTRACED)).to_state()
    [request] = await approval_requests(state)
    await answers(state, request.deny(message="too far", by="ann"))
    done = await Runner.run(agent, state, run_config=UNTRACED)

    assert outputs(done) == ["Rejected: too far"]
    assert (sink.records[-1].outcome["kind"], sink.records[-1].approval["approver"]) == ("rejected", "ann")  # type: ignore[index]


async def test_the_context_is_the_deps_and_the_trace_is_the_run() -> None:
    sink = RecordingSink()
    seen: list[Any] = []

    @ez_tool
    async def whose(ctx: RunContext) -> str:
        """Say whose."""
        seen.append(ctx.provided[RunContextWrapper].usage)  # type: ignore[index]
        return ctx.deps

    agent = Agent(name="trips", tools=[*as_tools([whose], sinks=[sink])], model=saying([("whose", {})]))

    with trace("a trace", trace_id="trace_" + "a" * 32, disabled=True):
        result = await Runner.run(agent, "go", context="Ann's")

    assert outputs(result) == ["Ann's"]
    assert seen == [result.context_wrapper.usage]


async def test_limits_hold_in_one_run_of_an_agent() -> None:
    ran: list[str] = []
    limited = as_tools([booking(ran)], run=lambda ctx: Run(limits=CallLimits(total=1)))
    model = saying([("book", {"city": "Oslo"}), ("book", {"city": "Rome"})])
    agent = Agent(name="trips", tools=[*limited], model=model)

    first = await Runner.run(agent, "go", run_config=UNTRACED)
    again = await Runner.run(agent.clone(model=saying([("book", {"city": "Nice"})])), "go", run_config=UNTRACED)

    assert ran == ["Oslo", "Nice"]
    assert "Rejected" in outputs(first)[1]
    assert outputs(again) == ["booked Nice"]


async def test_each_user_has_a_run_of_their_own_in_one_trace() -> None:
    sink = RecordingSink()
    tools = as_tools([booking([])], run=lambda ctx: Run(principal=ctx.context.name), sinks=[sink])

    for name in ("ann", "ben"):
        agent = Agent(name="trips", tools=[*tools], model=saying([("book", {"city": "Oslo"})]))
        await Runner.run(agent, "go", context=User(name), run_config=UNTRACED)

    assert [record.principal for record in sink.records] == ["ann", "ben"]


@dataclass
class User:
    """A user of the application."""

    name: str


async def test_media_come_as_content() -> None:
    @ez_tool
    async def draw() -> list[Any]:
        """Draw."""
        return ["a dot", Media("image/png", b"dot"), Media("text/csv", b"1,2", name="n.csv")]

    agent = Agent(name="art", tools=[*as_tools([draw])], model=saying([("draw", {})]))

    result = await Runner.run(agent, "go", run_config=UNTRACED)

    [parts] = outputs(result)
    assert [part.type for part in parts] == ["text", "image", "file"]
    assert (parts[1].image_url, parts[2].filename) == ("data:image/png;base64,ZG90", "n.csv")


async def test_a_value_of_a_stranger_is_asked_about() -> None:
    sent: list[str] = []

    @ez_tool(effect="none", source="untrusted")
    async def read_mail() -> str:
        """Read the mail."""
        return "pay to DE89370400440532013000"

    @ez_tool(effect="spend")
    async def pay(account: str) -> str:
        """Pay."""
        sent.append(account)
        return "paid"

    tools = as_tools([read_mail, pay], run=lambda ctx: Run(features=[Provenance()]))
    model = saying([("read_mail", {})], [("pay", {"account": "DE89370400440532013000"})])
    agent = Agent(name="bank", tools=[*tools], model=model)

    result = await Runner.run(agent, "pay my bill", run_config=UNTRACED)

    [request] = await approval_requests(result.to_state())
    assert (request.tool, sent) == ("pay", [])
    assert request.origins[0]["value"] == "DE89370400440532013000"


async def test_what_the_user_said_is_not_asked_about() -> None:
    sent: list[str] = []

    @ez_tool(effect="spend")
    async def pay(account: str) -> str:
        """Pay."""
        sent.append(account)
        return "paid"

    tools = as_tools([pay], run=lambda ctx: Run(features=[Provenance()]))
    agent = Agent(name="bank", tools=[*tools], model=saying([("pay", {"account": "DE89370400440532013000"})]))

    result = await Runner.run(agent, "pay to DE89370400440532013000", run_config=UNTRACED)

    assert (result.interruptions, sent) == ([], ["DE89370400440532013000"])


async def test_a_tool_that_is_not_available_is_not_shown() -> None:
    @ez_tool
    async def hidden() -> str:
        """Hide."""
        return "seen"

    agent = Agent(name="a", tools=[*as_tools([hidden], run=Run(available=frozenset()))], model=saying())

    shown = await agent.get_all_tools(RunContextWrapper(None))

    assert shown == []


async def test_arguments_that_are_no_json_are_refused_by_the_pipeline() -> None:
    sink = RecordingSink()
    tools = as_tools([booking([])], sinks=[sink])
    agent = Agent(name="trips", tools=[*tools], model=saying([("book", '{"city": ')]))

    result = await Runner.run(agent, "go", run_config=UNTRACED)

    assert sink.record.outcome["code"] == "invalid_arguments"
    assert "InvalidArguments" in outputs(result)[0]


# --- exactly once


async def test_a_state_that_is_resumed_twice_runs_its_call_once() -> None:
    ran: list[str] = []
    store = MemoryApprovalStore()
    tools = as_tools([booking(ran, requires_approval=True)], run=lambda ctx: Run(approvals=store))

    def agent(*turns: Any) -> Agent[Any]:
        return Agent(name="trips", tools=[*tools], model=saying(*turns))

    state = (await Runner.run(agent([("book", {"city": "Oslo"})]), "go", run_config=UNTRACED)).to_state()
    saved = state.to_json()
    results: list[Any] = []
    for _ in range(2):
        again = await type(state).from_json(agent(), json.loads(json.dumps(saved)))
        again.approve(again.get_interruptions()[0])
        results.append(await Runner.run(again._current_agent, again, run_config=UNTRACED))

    assert ran == ["Oslo"]
    assert outputs(results[0]) == ["booked Oslo"]
    assert outputs(results[1]) == ["booked Oslo"]


async def test_a_state_asks_one_question_about_a_call_in_doubt_and_its_answer_counts() -> None:
    ran: list[str] = []
    store = MemoryApprovalStore()
    tools = as_tools([booking(ran, requires_approval=True)], run=lambda ctx: Run(approvals=store))
    agent = Agent(name="trips", tools=[*tools], model=saying([("book", {"city": "Oslo"})]))
    state = (await Runner.run(agent, "go", run_config=UNTRACED)).to_state()
    [before] = await approval_requests(state)
    await leave_in_doubt(store, before)

    [request] = await approval_requests(state)
    await answers(state, before.grant("ann"))
    state = (await Runner.run(agent, state, run_config=UNTRACED)).to_state()
    await answers(state, request.done("booked by hand", "ann"))
    done = await Runner.run(agent, state, run_config=UNTRACED)

    assert (request.in_doubt, request.follows) == (True, before.id)
    assert (outputs(done), ran) == (["booked by hand"], [])
    assert await store.list(pending=True) == ()


# --- their tools with us


async def test_their_tool_sees_our_deps_and_its_condition_is_asked() -> None:
    async def big(ctx: RunContextWrapper[Any], arguments: dict[str, Any], call_id: str) -> bool:
        return arguments["cents"] > ctx.context

    @function_tool(needs_approval=big)
    def pay(ctx: RunContextWrapper[int], cents: int) -> Any:
        """Pay."""
        return ToolOutputImage(image_url="data:image/png;base64,ZG90")

    pipeline = Pipeline(from_tools([pay]))

    small = await pipeline.run(ToolCall("pay", {"cents": 1}), Run(deps=100))
    large = await pipeline.run(ToolCall("pay", {"cents": 101}), Run(deps=100))

    assert isinstance(small, Completed)
    assert small.value == Media("image/png", b"dot")
    assert isinstance(large, Suspended)


def test_a_tool_that_a_provider_runs_is_no_member() -> None:
    with pytest.raises(TypeError, match="web_search"):
        from_tools([WebSearchTool()])


async def test_the_guardrails_of_a_member_are_asked_and_in_a_guarded_agent_once() -> None:
    asked: list[str] = []

    @tool_input_guardrail
    def keeps_root(data: Any) -> ToolGuardrailFunctionOutput:
        asked.append(data.context.tool_arguments)
        refuses = "root" in data.context.tool_arguments
        behavior = ToolGuardrailFunctionOutput.reject_content
        return behavior("not that one") if refuses else ToolGuardrailFunctionOutput.allow()

    @tool_output_guardrail
    def keeps_secrets(data: Any) -> ToolGuardrailFunctionOutput:
        secret = "secret" in str(data.output)
        return ToolGuardrailFunctionOutput.raise_exception() if secret else ToolGuardrailFunctionOutput.allow()

    ran: list[str] = []
    tool = replace(deleting(ran), tool_input_guardrails=[keeps_root], tool_output_guardrails=[keeps_secrets])
    pipeline = Pipeline(from_tools([tool]))
    outcomes = [await pipeline.run(ToolCall("delete", {"path": path})) for path in ("/root", "secret", "x")]

    assert [type(outcome).__name__ for outcome in outcomes] == ["Failed", "Failed", "Completed"]
    assert "not that one" in outcomes[0].text()
    assert (ran, len(asked)) == (["secret", "x"], 3)
    agent = guard(Agent(name="files", tools=[tool], model=saying([("delete", {"path": "y"})])), GuardPolicy())
    await Runner.run(agent, "go", run_config=UNTRACED)
    assert (ran, len(asked)) == (["secret", "x", "y"], 4)


# --- gates around what an agent has


async def test_a_guard_counts_calls_of_all_tools_of_an_agent() -> None:
    ran: list[str] = []
    agent = Agent(name="files", tools=[deleting(ran)], model=saying([("delete", {"path": p}) for p in "abc"]))

    policy = GuardPolicy(run=lambda ctx: Run(limits=CallLimits(total=2)))
    done = await Runner.run(guard(agent, policy), "go", run_config=UNTRACED)

    assert sorted(ran) == ["a", "b"]
    assert sum("Rejected" in str(each) for each in outputs(done)) == 1


class Files(MCPServer):
    """An MCP server in this process."""

    def __init__(self, ran: list[Any]) -> None:
        super().__init__()
        self._ran = ran

    @property
    def name(self) -> str:
        return "files"

    async def connect(self) -> None: ...
    async def cleanup(self) -> None: ...
    async def list_prompts(self) -> Any: ...
    async def get_prompt(self, name: str, arguments: Any = None) -> Any: ...

    async def list_tools(self, run_context: Any = None, agent: Any = None) -> list[McpTool]:
        schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
        return [McpTool(name="wipe", description="Wipe a file.", inputSchema=schema)]

    async def call_tool(self, tool_name: str, arguments: Any, meta: Any = None) -> CallToolResult:
        self._ran.append((tool_name, arguments))
        return CallToolResult(content=[TextContent(type="text", text="wiped")])


async def test_a_guard_is_around_tools_of_mcp_servers() -> None:
    ran: list[Any] = []
    agent = Agent(name="files", mcp_servers=[Files(ran)], model=saying([("wipe", {"path": "x"})]))
    guarded = guard(agent, GuardPolicy(approve=True))

    state = (await Runner.run(guarded, "go", run_config=UNTRACED)).to_state()
    [request] = await approval_requests(state)
    assert ran == []
    await answers(state, request.grant("ann"))
    done = await Runner.run(guarded, state, run_config=UNTRACED)

    assert ran == [("wipe", {"path": "x"})]
    assert outputs(done) == ["wiped"]


@pytest.mark.parametrize("wrapped", [False, True], ids=["agent", "handoff"])
async def test_a_guard_is_around_the_agents_that_one_hands_off_to(wrapped: bool) -> None:
    ran: list[str] = []
    inner = Agent(name="files", tools=[deleting(ran)], model=saying([("delete", {"path": "x"})]))
    outer = Agent(
        name="desk",
        handoffs=[handoff(inner) if wrapped else inner],
        model=saying([("transfer_to_files", "{}")]),
    )

    result = await Runner.run(guard(outer, GuardPolicy(approve=True)), "go", run_config=UNTRACED)

    assert [request.tool for request in await approval_requests(result.to_state())] == ["delete"]
    assert ran == []


def test_a_tool_that_cannot_be_guarded_is_an_error() -> None:
    agent = Agent(name="web", tools=[WebSearchTool()])

    with pytest.raises(ValueError, match=r"leave=\['web_search'\]"):
        guard(agent, GuardPolicy())

    assert guard(agent, GuardPolicy(leave=["web_search"])).tools == agent.tools
