"""Names of tools that gates are about: one that fits no tool is not passed over in silence."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from toolcrib import CallLimits, Failed, Pipeline, Run, ToolCall, Toolset, ez_tool
from toolcrib.adapters.mcp_server import ServerOptions, build_server
from toolcrib.approvals import AgentContext
from toolcrib.approvers import ApproverRule, ApproverRules
from toolcrib.budgets import Budgets, Cost, Limit
from toolcrib.code import Toolkit
from toolcrib.errors import ToolConstraintError, closest
from toolcrib.hooks import Gate
from toolcrib.pipeline import must_call
from toolcrib.provenance import Provenance, Rule
from toolcrib.rounds import Session, decode
from toolcrib.serving import GuardPolicy
from toolcrib.serving.frameworks import FrameworkRuns, FrameworkTools, GuardedTools
from toolcrib.testing import FakeSandbox, ScriptedModel, wire_reply
from toolcrib.toolsets import LiveTools
from toolcrib.turns import Agent


@ez_tool(tags={"money"})
def refund(euros: int = 1) -> str:
    """Pay money back."""
    return f"{euros} back"


@ez_tool
def look(order: int = 1) -> str:
    """Look at an order."""
    return f"order {order}"


class Own:
    """A gate of a user's own."""

    stage = "authorize"

    def __init__(self, *names: str) -> None:
        self.tool_names = names

    def check(self, call: Any) -> None:
        """Let every call pass."""


GATES: list[Callable[[str], Gate]] = [
    lambda name: Budgets([Limit(calls=1, tools=["look", name])]),
    lambda name: Budgets([Limit(calls=1)], costs={name: Cost(1, "EUR")}),
    lambda name: ApproverRules([ApproverRule(name="money", tools=[name])]),
    lambda name: Own(name),
]
each_gate = pytest.mark.parametrize("gate_of", GATES, ids=["limit", "cost", "rule", "own"])


class Later:
    """A source of tools that are known when it is open; a fault is why it has none yet."""

    def __init__(self, *tools: Any, fault: Exception | None = None) -> None:
        self.tools = LiveTools(tools, fault=fault, may_be_empty=True)

    def open_source(self, ctx: Any) -> AbstractAsyncContextManager[Iterable[Any]]:
        """Give the tools."""
        return self._opened()

    @asynccontextmanager
    async def _opened(self) -> Any:
        yield self.tools


# --- gates of a toolset


@each_gate
def test_a_gate_about_no_tool_is_refused_where_all_tools_are_known(gate_of: Callable[[str], Gate]) -> None:
    with pytest.raises(ToolConstraintError, match=r"`refnd`: the gate `.*` is about it, .* Did you mean `refund`"):
        Toolset([refund, look]).with_gates(gate_of("refnd"))


@each_gate
async def test_a_gate_about_no_tool_of_a_source_is_refused_when_it_is_open(gate_of: Callable[[str], Gate]) -> None:
    tools = Toolset([look, Later(refund)]).with_gates(gate_of("refnd"))

    with pytest.raises(ToolConstraintError, match="Did you mean `refund`"):
        async with tools.open():
            pass


@each_gate
async def test_a_gate_about_tools_of_a_source_is_taken(gate_of: Callable[[str], Gate]) -> None:
    async with Toolset([look, Later(refund)]).with_gates(gate_of("refund"), gate_of("ref*")).open() as tools:
        assert {*tools.names()} == {"look", "refund"}


@each_gate
def test_a_pattern_that_fits_no_tool_is_in_the_log(
    gate_of: Callable[[str], Gate], caplog: pytest.LogCaptureFixture
) -> None:
    Toolset([refund, look]).with_gates(gate_of("shop_*"))

    (line,) = caplog.messages
    assert "is about `shop_*`, which fits no tool here. There are: `look`, `refund`" in line


@each_gate
@pytest.mark.parametrize("view", ["prefixed", "renamed"])
def test_a_gate_is_not_lost_by_a_new_name(gate_of: Callable[[str], Gate], view: str) -> None:
    tools = Toolset([refund, look]).with_gates(gate_of("refund"))

    with pytest.raises(ValueError, match=r"is about `refund`, which would be `shop_refund`: put the gate on after"):
        tools.prefixed("shop_") if view == "prefixed" else tools.renamed({"refund": "shop_refund"})


def test_a_view_with_fewer_tools_keeps_a_gate_about_the_others() -> None:
    tools = Toolset([refund, look]).with_gates(Own("refund"))

    assert tools.subset(["look"]).names() == ["look"]


def test_a_gate_on_named_tools_is_about_these() -> None:
    with pytest.raises(ToolConstraintError, match="`refund`: the gate"):
        Toolset([refund, look]).with_gates(Own("refund"), names=["look"])


async def test_names_of_a_source_that_comes_late_are_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    late = Later(fault=RuntimeError("it is down"))

    async with Toolset([look, late]).with_gates(Own("refnd", "look")).with_approval(names=["refundd"]).open():
        assert not caplog.messages
        late.tools.renew([refund])

    assert [line.partition(", which")[0] for line in caplog.messages] == [
        "the gate `Own` is about `refnd`",
        "a hook, an approval or another name is about `refundd`",
    ]


def test_names_are_a_list() -> None:
    gate = Own()
    gate.tool_names = "refund"  # pyright: ignore[reportAttributeAccessIssue] -- the mistake

    with pytest.raises(TypeError, match=r"tool_names of the gate Own is a list of names, as in \['refund'\]"):
        Toolset([refund]).with_gates(gate)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"tags": ["mony"]}, "`mony`: .* no such tag. Did you mean `money`"),
        ({"over": {"euro": 5}}, "`euro`: .* no such argument. Did you mean `euros`"),
        ({"tools": ["look"], "up_to": {"euros": 5}}, "`euros`: .* no such argument"),
    ],
)
def test_a_rule_about_a_tag_or_an_argument_of_no_tool_is_refused(rule: dict[str, Any], said: str) -> None:
    with pytest.raises(ToolConstraintError, match=said):
        Toolset([refund, look]).with_gates(ApproverRules([ApproverRule(name="money", **rule)]))


def test_a_rule_about_a_server_of_no_tool_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    Toolset([refund]).with_gates(ApproverRules([ApproverRule(name="money", servers=["https://shop.*"])]))

    assert "is about `https://shop.*`, which fits no server here. There are none" in caplog.text


# --- gates of a run

RUNS: list[Callable[[str], Run]] = [
    lambda name: Run(limits=CallLimits(per_tool={name: 1})),
    lambda name: Run(limits=CallLimits(requirements=[must_call(name)])),
    lambda name: Run(gates=[Budgets([Limit(calls=1, tools=[name])])]),
    lambda name: Run(features=[Provenance(rules=(Rule(tool=name, untrusted="deny"),))]),
    lambda name: Run(deps=AgentContext(need_user_approve_tools=[name])),
]
each_run = pytest.mark.parametrize("run_of", RUNS, ids=["per_tool", "required", "gate", "feature", "deps"])


@each_run
def test_a_run_about_nearly_a_tool_refuses_its_calls(run_of: Callable[[str], Run]) -> None:
    pipeline, run = Pipeline([refund, look]), run_of("refnd")

    outcomes = [pipeline.run_sync(ToolCall(name), run) for name in ("look", "refund", "refund")]

    assert [one.code for one in outcomes if isinstance(one, Failed)] == ["tool_constraint"] * 3
    assert all("`refnd`: the gate" in one.text() and "Did you mean `refund`" in one.text() for one in outcomes)


HOSTS: dict[str, Callable[[Run], Any]] = {
    "session": lambda run: Session(ScriptedModel(), tools=[refund, look], run=run),
    "step": lambda run: Session(ScriptedModel("Hi."), run=run).say("Hi.").run_sync(tools=[refund, look]),
    "decode": lambda run: decode([refund, look], wire_reply("openai", text="Hi."), run=run),
    "agent": lambda run: Agent("shop", "Sells.", [refund, look], register=False).run(run=run),
    "toolkit": lambda run: Toolkit([refund, look], sandbox=FakeSandbox()).execute("1", run=run),
    "frameworks": lambda run: FrameworkTools([refund, look], FrameworkRuns("other", run, None)),
    "a function of frameworks": lambda run: FrameworkTools(
        [refund, look], FrameworkRuns("other", lambda context: run, None)
    ).runs.find("1", None),
    "server": lambda run: asyncio.run(call_server(ServerOptions(run=lambda principal: run))),
}


async def call_server(options: ServerOptions) -> None:
    server = build_server([refund, look], options)
    async with server.lifespan(server):
        server.principals.current()


@pytest.mark.parametrize("host", HOSTS.values(), ids=HOSTS)
@each_run
def test_a_host_that_gives_such_a_run_to_a_way_in_is_told(
    run_of: Callable[[str], Run], host: Callable[[Run], Any]
) -> None:
    with pytest.raises(ToolConstraintError, match=r"`refnd`: the gate .* Did you mean `refund`"):
        host(run_of("refnd"))

    host(run_of("refund"))


@pytest.mark.parametrize(("name", "said"), [("refnd", "Did you mean `refund`"), ("pay", "The closest|`refund`")])
@pytest.mark.parametrize(
    "options_of",
    [
        lambda name: ServerOptions(limits=CallLimits(per_tool={name: 1})),
        lambda name: ServerOptions(limits=CallLimits(requirements=[must_call(name)])),
        lambda name: ServerOptions(deps=AgentContext(need_user_approve_tools=[name])),
    ],
    ids=["per_tool", "required", "deps"],
)
def test_limits_and_deps_of_a_server_are_about_its_tools(
    options_of: Callable[[str], ServerOptions], name: str, said: str
) -> None:
    with pytest.raises(ToolConstraintError, match=rf"`{name}`: .* is about it, .*({said})"):
        build_server([refund, look], options_of(name))

    build_server([refund, look], options_of("refund"))


async def test_limits_of_a_server_are_about_the_tools_of_its_sources() -> None:
    server = build_server(Toolset([look, Later(refund)]), ServerOptions(limits=CallLimits(per_tool={"pay": 1})))

    with pytest.raises(ToolConstraintError, match=r"`pay`: .* is about it"):
        async with server.lifespan(server):
            pass


def test_a_run_of_a_guard_is_not_compared_with_no_tools(caplog: pytest.LogCaptureFixture) -> None:
    GuardedTools("other", GuardPolicy(run=Run(limits=CallLimits(per_tool={"refund": 1}))), None)

    assert caplog.messages == []


@each_run
def test_a_run_about_a_tool_of_another_toolset_is_in_the_log_once(
    run_of: Callable[[str], Run], caplog: pytest.LogCaptureFixture
) -> None:
    pipeline = Pipeline([refund, look])

    outcomes = [pipeline.run_sync(ToolCall(name), run_of("archive")) for name in ("look", "refund", "refund")]

    assert [one.kind for one in outcomes] == ["completed"] * 3
    (line,) = [line for line in caplog.messages if "archive" in line]
    assert "is about `archive`, which fits no tool here. There are: `look`, `refund`" in line


def test_a_run_that_names_both_of_two_near_names_means_both(caplog: pytest.LogCaptureFixture) -> None:
    run = Run(limits=CallLimits(per_tool={"refund": 1, "refunds": 1}))

    assert Pipeline([refund]).run_sync(ToolCall("refund"), run).kind == "completed"
    assert "`refunds`" in caplog.text


@each_run
def test_a_run_about_a_tool_is_not_in_the_log(run_of: Callable[[str], Run], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)

    Pipeline([refund, look]).run_sync(ToolCall("look"), run_of("refund"))

    assert not caplog.messages


def test_limits_of_calls_have_no_patterns() -> None:
    with pytest.raises(ValueError, match=r"'shop_.' is a pattern, .*Budgets"):
        CallLimits(per_tool={"shop_*": 1})


def test_a_name_is_near_to_those_that_end_with_it() -> None:
    assert closest("add", ["maths_add", "files_delete", "readd"]) == "Did you mean `maths_add`?"
