"""Gates around the tools that an agent of Pydantic AI already has."""

from typing import Any

import pytest
from pydantic_ai import Agent, ModelRetry, RunContext
from pydantic_ai.agent import WrapperAgent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.durable_exec.dbos import DBOSDurability
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelMessage
from pydantic_ai.tools import DeferredToolRequests, ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, CombinedToolset, ExternalToolset, FunctionToolset
from pydantic_ai.toolsets._dynamic import DynamicToolset

from tests.adapters.pydantic_ai.scripted import agent, results, scripted
from toolcrib.adapters.pydantic_ai import answers, approval_requests, as_tools, from_tools, guard
from toolcrib.calls import Reject, RunNormally
from toolcrib.errors import ToolConstraintError
from toolcrib.hooks import HookSet
from toolcrib.pipeline import CallLimits, Channel, Run
from toolcrib.record import ListSink
from toolcrib.serving import GuardPolicy

CALL = ("delete", {"path": "x"}, "c1")


def deleting(ran: list[str]) -> Any:
    """Return a function that notes what it was called with."""

    def delete(path: str) -> str:
        """Delete a file."""
        ran.append(path)
        return f"deleted {path}"

    return delete


class _Adding(AbstractCapability[Any]):
    """A capability that brings a tool."""

    def __init__(self, tool: Any) -> None:
        self._tool = tool

    def get_toolset(self) -> AbstractToolset[Any]:
        return FunctionToolset([self._tool])


def guarded_agents(ran: list[str], policy: GuardPolicy, *steps: Any) -> dict[str, Any]:
    """Return an agent for each place that a tool may have in one, with gates around it."""
    tool, model = deleting(ran), scripted(*steps)
    return {
        "tools": guard(Agent(model, tools=[tool]), policy),
        "toolset": guard(Agent(model, toolsets=[FunctionToolset([tool])]), policy),
        "capability": guard(Agent(model, capabilities=[_Adding(tool)]), policy),
        "toolset alone": agent(model, guard(FunctionToolset([tool]), policy)),
        "several": agent(model, guard(CombinedToolset([FunctionToolset([tool]), FunctionToolset([])]), policy)),
    }


PLACES = [*guarded_agents([], GuardPolicy())]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("says_yes", [True, False], ids=["yes", "no"])
async def test_a_guard_asks_about_a_tool_wherever_the_agent_has_it(place: str, says_yes: bool) -> None:
    ran: list[str] = []
    sink = ListSink()
    made = guarded_agents(ran, GuardPolicy(approve=["delete"], sinks=(sink,)), [CALL])[place]

    asked = await made.run("go")
    assert isinstance(asked.output, DeferredToolRequests)
    [request] = approval_requests(asked.output)
    assert (request.tool, request.arguments, ran) == ("delete", {"path": "x"}, [])
    if says_yes:
        given = await answers(asked.output, request.grant("ann"))
    else:
        where = made if hasattr(made, "guarded") else made.toolsets[-1]
        given = await answers(asked.output, request.deny(message="not that one", by="ann"), toolset=where)
    done = await made.run(message_history=asked.all_messages(), deferred_tool_results=given)

    assert ran == (["x"] if says_yes else [])
    assert done.output == "done"
    assert sink.records[-1].approval is not None
    assert sink.records[-1].approval["approver"] == "ann"


@pytest.mark.parametrize("place", PLACES)
async def test_every_gate_of_a_policy_is_around_the_tool(place: str) -> None:
    ran: list[str] = []
    hooks = HookSet()

    @hooks.on("delete")
    async def no_roots(call: Any, given: Any) -> Any:
        return Reject("not the root") if given.path == "/" else RunNormally(given)

    policy = GuardPolicy(run=lambda ctx: Run(limits=CallLimits(total=2)), hooks=hooks)
    calls = [("delete", {"path": path}, path) for path in ("/", "a", "b")]
    made = guarded_agents(ran, policy, *[[call] for call in calls])[place]

    done = await made.run("go")

    told: dict[str, Any] = {id: content for id, _, content in results(done.all_messages())}
    assert ran == ["a"]
    assert "not the root" in told["/"]
    assert "used up" in str(told["b"])


async def test_a_guarded_tool_keeps_its_context_its_retries_and_its_definition() -> None:
    seen: list[Any] = []
    made: FunctionToolset[Any] = FunctionToolset()

    @made.tool(strict=True, metadata={"kind": "files"})
    async def look(ctx: RunContext[str], path: str) -> str:
        """Look at a file."""
        seen.append((ctx.deps, ctx.tool_call_id, path))
        if len(seen) == 1:
            raise ModelRetry("look again")
        return f"{ctx.deps} sees {path}"

    infos: list[Any] = []
    model = scripted([("look", {"path": "x"}, "c1")], [("look", {"path": "y"}, "c2")], seen=infos)
    found = await guard(Agent(model, toolsets=[made], deps_type=str), GuardPolicy()).run("go", deps="ann")

    [definition] = infos[0].function_tools
    assert (definition.strict, definition.metadata) == (True, {"kind": "files"})
    assert seen == [("ann", "c1", "x"), ("ann", "c2", "y")]
    assert results(found.all_messages()) == [("c1", "retried", "look again"), ("c2", "success", "ann sees y")]


async def test_a_tool_that_comes_in_a_later_step_is_guarded() -> None:
    ran: list[str] = []
    made: FunctionToolset[Any] = FunctionToolset()

    async def later(ctx: RunContext[Any], definition: ToolDefinition) -> ToolDefinition | None:
        return definition if ctx.run_step > 1 else None

    made.tool_plain(lambda: "here", name="look")
    made.tool_plain(deleting(ran), prepare=later)
    model = scripted([("look", {}, "c0")], [CALL])

    asked = await guard(Agent(model, toolsets=[made]), GuardPolicy(approve=["delete"])).run("go")

    assert isinstance(asked.output, DeferredToolRequests)
    assert ran == []


async def test_a_tool_that_is_executed_elsewhere_is_refused_until_it_is_left() -> None:
    elsewhere: ExternalToolset[Any] = ExternalToolset([ToolDefinition(name="show")])
    model = scripted([("show", {}, "c1")])

    with pytest.raises(ValueError, match=r"leave=\['show'\]"):
        await guard(Agent(model, toolsets=[elsewhere]), GuardPolicy()).run("go")
    left = await guard(Agent(model, toolsets=[elsewhere]), GuardPolicy(leave=["show"])).run("go")

    assert [call.tool_name for call in left.output.calls] == ["show"]


async def test_a_guarded_agent_streams() -> None:
    ran: list[str] = []
    made = guarded_agents(ran, GuardPolicy(), [CALL])["tools"]

    async with made.run_stream("go") as streamed:
        said = [text async for text in streamed.stream_text()]
    messages: list[ModelMessage] = streamed.all_messages()

    assert (said[-1], ran) == ("done", ["x"])
    assert results(messages) == [("c1", "success", "deleted x")]


@pytest.mark.parametrize("wrapped", [False, True], ids=["agent", "wrapped agent"])
async def test_an_agent_with_output_validators_is_guarded_and_its_validators_are_asked(wrapped: bool) -> None:
    ran: list[str] = []
    seen: list[Any] = []
    inner: Agent[Any, Any] = Agent(scripted([CALL]), tools=[deleting(ran)])

    @inner.output_validator
    def checked(output: str) -> str:
        seen.append(output)
        return output.upper()

    guarded = guard(WrapperAgent(inner) if wrapped else inner, GuardPolicy(approve=True))
    waiting = await guarded.run("go")
    given = await answers(waiting.output, approval_requests(waiting.output)[0].grant("ann"))
    done = await guarded.run(message_history=waiting.all_messages(), deferred_tool_results=given)

    assert (ran, seen, done.output) == (["x"], ["done"], "DONE")
    assert inner.output_type is str


# --- names of tools


class Listing(AbstractToolset[Any]):
    """A toolset whose tools a run alone lists."""

    def __init__(self, *tools: Any) -> None:
        self._tools = FunctionToolset([*tools])

    @property
    def id(self) -> str | None:
        return None

    async def get_tools(self, ctx: RunContext[Any]) -> Any:
        return await self._tools.get_tools(ctx)

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: Any) -> Any:
        return await self._tools.call_tool(name, tool_args, ctx, tool)


class ListingOfTheirs(Listing):
    """One that lists all of them at once, as those of their MCP servers."""


ListingOfTheirs.__module__ = "pydantic_ai.mcp"

KNOWN: list[Any] = [
    lambda tool: FunctionToolset([tool]),
    lambda tool: FunctionToolset([tool]).filtered(lambda ctx, definition: False),
    lambda tool: FunctionToolset([tool]).renamed({"remove": "delete"}).renamed({"delete": "remove"}),
    lambda tool: CombinedToolset([FunctionToolset([tool]), FunctionToolset([])]),
    lambda tool: as_tools([tool]),
]


@pytest.mark.parametrize("name", ["Delete", "dleete", "refund"])
@pytest.mark.parametrize("toolset_of", KNOWN)
def test_a_policy_about_no_tool_is_refused_by_the_guard(toolset_of: Any, name: str) -> None:
    toolset = toolset_of(deleting([]))

    for guarded in (toolset, Agent(toolsets=[toolset])):
        with pytest.raises(ToolConstraintError, match=f"`{name}`: GuardPolicy"):
            guard(guarded, GuardPolicy(approve=[name]))
        guard(guarded, GuardPolicy(approve=["delete"]))


@pytest.mark.parametrize(
    ("listing", "name"),
    [
        (ListingOfTheirs, "refund"),
        (Listing, "Delete"),
        (Listing, "file_delete"),
        (lambda tool: Listing(tool).prefixed("files"), "delete"),
        (lambda tool: DynamicToolset(lambda ctx: FunctionToolset([tool])), "dleete"),
    ],
)
async def test_a_policy_about_no_tool_is_refused_in_a_run_before_the_model_is_asked(listing: Any, name: str) -> None:
    seen: list[Any] = []
    given = Agent(scripted([CALL], seen=seen), toolsets=[listing(deleting([]))])

    with pytest.raises(ToolConstraintError, match=f"`{name}`: GuardPolicy"):
        await guard(given, GuardPolicy(approve=[name])).run("go")

    assert seen == []


@pytest.mark.parametrize("listing", [Listing, lambda tool: DynamicToolset(lambda ctx: FunctionToolset([tool]))])
async def test_a_tool_that_may_come_later_may_have_a_name_of_the_policy(listing: Any) -> None:
    ran: list[str] = []
    given = Agent(scripted([CALL]), toolsets=[listing(deleting(ran))])

    await guard(given, GuardPolicy(approve=["refund"])).run("go")

    assert ran == ["x"]


# --- workflows and conversations


class InWorkflow(DBOSDurability):
    """Their durability, as it is in a workflow."""

    @property
    def in_durable_context(self) -> bool:
        return True


async def test_an_agent_that_is_durable_itself_says_where_its_gates_go() -> None:
    given = Agent(scripted([CALL]), name="shop", tools=[deleting([])], capabilities=[InWorkflow()])

    with pytest.raises(UserError, match=r"toolsets=\[guard\(FunctionToolset"):
        await guard(given, GuardPolicy(approve=["delete"])).run("go")


async def test_a_request_is_of_their_conversation_unless_the_run_names_another() -> None:
    said: list[str | None] = []
    for channel in (None, Channel(conversation_id="ours")):
        policy = GuardPolicy(approve=True, run=lambda ctx, channel=channel: Run(channel=channel or Channel()))
        result = await guard(Agent(scripted([CALL]), tools=[deleting([])]), policy).run("go", conversation_id="theirs")
        said += [request.conversation_id for request in approval_requests(result.output)]

    assert said == ["theirs", "ours"]


# --- mistakes


async def test_what_is_no_output_of_a_run_is_no_requests() -> None:
    result: Any = await guard(Agent(scripted([CALL]), tools=[deleting([])]), GuardPolicy(approve=True)).run("go")

    with pytest.raises(TypeError, match=r"`output` of a run that stopped, .* not a AgentRunResult"):
        approval_requests(result)


async def test_answers_have_to_be_awaited() -> None:
    given = guard(Agent(scripted([CALL]), tools=[deleting([])]), GuardPolicy(approve=True))
    results: Any = answers((await given.run("go")).output)

    with pytest.raises(TypeError, match="`await answers"):
        await given.run(deferred_tool_results=results)
    await results


def test_decorators_are_those_of_the_agent_itself() -> None:
    given: Any = guard(Agent(scripted([CALL])), GuardPolicy(approve=True))

    with pytest.raises(AttributeError, match="before `guard"):
        given.tool_plain(deleting([]))


def test_the_tools_of_an_agent_are_a_member() -> None:
    given: Any = Agent(scripted([CALL]), tools=[deleting([])])

    with pytest.raises(TypeError, match=r"Toolset\(\[agent\]\)"):
        from_tools(given)
