"""Budgets as a gate: when a call is counted, of whom, and what becomes of one that is over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pydantic import BaseModel

from toolcrib.approvals import MemoryApprovalStore
from toolcrib.budgets import Budgets, Cost, Limit, MemoryUsageStore
from toolcrib.calls import ApprovalRequest, Completed, Failed, Grant, Outcome, Reject, Rejected, Suspended, ToolCall
from toolcrib.pipeline import CallLimits, Channel, Pipeline, Run
from toolcrib.schema import RunContext
from toolcrib.testing import FakeClock
from toolcrib.tools import BaseTool, ez_tool, tool_input
from toolcrib.toolsets import ToolNames, Toolset


@ez_tool(cost=Cost(lambda arguments: arguments["euros"], "EUR"))
async def refund(euros: float = 1) -> str:
    """Refund an order."""
    return f"refunded {euros}"


@ez_tool(cost=Cost(1, "USD"))
async def pay() -> str:
    """Pay a dollar."""
    return "paid"


@ez_tool
async def free() -> str:
    """Look at an order."""
    return "seen"


def budgeted(*limits: Limit, approval: bool = False, **options: Any) -> Pipeline:
    options.setdefault("clock", FakeClock())
    tools = Toolset([refund, pay]).with_gates(Budgets(limits, **options))
    return Pipeline(tools.with_approval(names=["refund"]) if approval else tools)


class LaterTools:
    """A source, such as an MCP server."""

    @asynccontextmanager
    async def open_source(self, ctx: RunContext[Any]) -> AsyncGenerator[Toolset]:
        yield Toolset([refund, free])


async def called(pipeline: Pipeline, tool: str = "refund", run: Run | None = None, **arguments: Any) -> Outcome:
    return await pipeline.run(ToolCall(tool, arguments), run or Run(principal="ann"))


def kinds(outcomes: list[Outcome]) -> list[str]:
    return [outcome.kind for outcome in outcomes]


async def test_what_is_over_is_refused_until_it_is_free_again() -> None:
    clock = FakeClock()
    pipeline = budgeted(Limit(calls=2, per="minute", by="principal"), clock=clock)

    outcomes = [await called(pipeline) for _ in range(3)]
    clock.advance(61)
    later = await called(pipeline)

    assert kinds([*outcomes, later]) == ["completed", "completed", "rejected", "completed"]
    assert isinstance(outcomes[2], Rejected)
    assert outcomes[2].source == "limit"
    assert outcomes[2].reason == (
        "`refund` is over its limit: at most 2 calls a minute of one principal, of which 2 are used. "
        "It is free again at 1970-01-01T00:01:01+00:00, in 61 s."
    )


async def test_of_calls_at_once_no_more_begin_than_are_left() -> None:
    pipeline = budgeted(Limit(calls=3, per="minute"))

    outcomes = await asyncio.gather(*(called(pipeline) for _ in range(8)))

    assert sorted(kinds([*outcomes])) == ["completed"] * 3 + ["rejected"] * 5


@pytest.mark.parametrize(
    ("by", "runs", "expected"),
    [
        ("principal", [Run(principal="ann"), Run(principal="ann"), Run(principal="bob"), Run()], "crcc"),
        ("group", [Run(principal="ann"), Run(principal="bob"), Run(principal="eve"), Run(principal="kim")], "crcr"),
        ("run", [Run(id="r"), Run(id="r"), Run(id="s")], "crc"),
        (
            "conversation",
            [
                Run(channel=Channel(conversation_id="a")),
                Run(channel=Channel(conversation_id="a")),
                Run(channel=Channel(conversation_id="b")),
            ],
            "crc",
        ),
        ((), [Run(principal="ann"), Run(principal="bob")], "cr"),
    ],
)
async def test_calls_of_one_share_are_counted_together(by: Any, runs: list[Run], expected: str) -> None:
    pipeline = budgeted(Limit(calls=1, per="day", by=by), groups={"ann": "sales", "bob": "sales"})

    outcomes = [await called(pipeline, run=run) for run in runs]

    assert "".join(kind[0] for kind in kinds(outcomes)) == expected


async def test_tools_are_counted_together_or_each_by_itself_or_only_some() -> None:
    async def outcomes(**options: Any) -> str:
        pipeline = budgeted(Limit(calls=1, per="day", **options))
        return "".join([(await called(pipeline, tool)).kind[0] for tool in ("refund", "pay", "pay")])

    assert [await outcomes(), await outcomes(by="tool"), await outcomes(tools=["p*"])] == ["crr", "ccr", "ccr"]


async def test_groups_may_be_a_function_of_the_call() -> None:
    limit = Limit(calls=1, per="day", by="group")
    pipeline = budgeted(limit, groups=lambda call: call.run.deps["team"])

    outcomes = [await called(pipeline, run=Run(deps={"team": team})) for team in ("a", "a", "b")]

    assert kinds(outcomes) == ["completed", "rejected", "completed"]


class OfServer(BaseTool):
    """Ask a server."""

    def __init__(self, name: str, url: str) -> None:
        self.name, self.url = name, url  # type: ignore[misc]

    async def call(self, ctx: RunContext[Any]) -> str:
        return "done"

    def get_identity(self) -> Mapping[str, Any]:
        return {"url": self.url}


async def test_tools_of_one_server_are_counted_together() -> None:
    tools = [OfServer("one", "https://a.example"), OfServer("two", "https://a.example"), OfServer("three", "b"), pay]
    gate = Budgets([Limit(calls=1, by="server")], clock=FakeClock())
    pipeline = Pipeline(Toolset(tools).with_gates(gate))

    outcomes = [await called(pipeline, tool) for tool in ("one", "two", "three", "pay")]

    assert kinds(outcomes) == ["completed", "rejected", "completed", "completed"]


# --- money


async def test_costs_of_a_currency_are_added_up() -> None:
    pipeline = budgeted(Limit(spend=50, currency="EUR", per="day", by="principal"))

    outcomes = [await called(pipeline, euros=euros) for euros in (20, 20.5, 10, 9.5, 0)]

    assert kinds(outcomes) == ["completed", "completed", "rejected", "completed", "completed"]
    assert "of which 40.5 are used. It costs 10.0 EUR. It is free again at" in outcomes[2].text()
    assert kinds([await called(pipeline, "pay") for _ in range(2)]) == ["completed"] * 2


@pytest.mark.parametrize(
    ("limit", "names", "said"),
    [
        (Limit(spend=1, currency="cents", per="day"), None, "1 cents a day .* in cents .`refund` has one in EUR"),
        (
            Limit(spend=1, currency="EUR", tools=["free"]),
            None,
            r"1 EUR in all of free .* no tool here has a cost in EUR\.",
        ),
        (Limit(spend=1, currency="EUR"), ["free"], r"no tool here has a cost in EUR\."),
    ],
)
def test_a_limit_that_counts_no_tool_is_refused_where_it_is_made(
    limit: Limit, names: list[str] | None, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        Toolset([refund, free]).with_gates(Budgets([limit]), names=names)


@pytest.mark.parametrize("tools", [[refund], [refund, free], [pay, refund]])
def test_a_limit_that_counts_one_tool_is_taken_beside_others_without_a_cost(tools: list[Any]) -> None:
    Toolset(tools).with_gates(Budgets([Limit(spend=1, currency="EUR"), Limit(calls=1)]))


def test_a_limit_for_tools_that_are_named_later_is_taken() -> None:
    gate = Budgets([Limit(spend=1, currency="EUR", tools=["shop_*"])])
    listed = Budgets([Limit(spend=1, currency="EUR")], costs={"shop_*": Cost(1, "EUR")})

    for each in (gate, listed):
        assert Toolset([free]).with_gates(each).prefixed("shop").names


async def test_a_limit_that_counts_no_tool_of_a_source_is_refused_when_it_is_open() -> None:
    tools = Toolset([LaterTools()]).with_gates(Budgets([Limit(spend=1, currency="USD", per="day")]))

    with pytest.raises(ValueError, match="no tool here has a cost in USD"):
        async with tools.open():
            pass


async def test_a_limit_of_a_run_that_counts_nothing_is_in_the_log_once(caplog: pytest.LogCaptureFixture) -> None:
    run = Run(gates=[Budgets([Limit(spend=1, currency="USD", per="day")])])

    async with Toolset([LaterTools()]).open() as tools:
        outcomes = [await called(Pipeline(tools), name, run) for name in ("free", "refund")]

    assert kinds(outcomes) == ["completed", "completed"]
    (line,) = caplog.messages
    assert "1 USD a day counts nothing, as no tool here has a cost in USD (`refund` has one in EUR)" in line


async def test_a_limit_that_counts_a_later_tool_is_not_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    run = Run(gates=[Budgets([Limit(spend=1, currency="EUR")])])

    await called(Pipeline([refund, free]), "free", run)

    assert not caplog.messages


async def test_a_price_list_is_in_the_place_of_the_tools_own_costs() -> None:
    costs = {"re*": Cost(1, "EUR"), "*": Cost(2, "EUR")}
    pipeline = budgeted(Limit(spend=4, currency="EUR"), costs=costs)

    outcomes = [await called(pipeline, tool, **{}) for tool in ("refund", "pay", "pay", "refund")]

    assert kinds(outcomes) == ["completed", "completed", "rejected", "completed"]


async def test_a_cost_that_is_none_fails_the_call() -> None:
    pipeline = budgeted(Limit(spend=4, currency="EUR"))

    outcome = await called(pipeline, euros=-5)

    assert isinstance(outcome, Failed), outcome
    assert outcome.error_type == "HookError"


# --- when a call is counted


async def test_what_did_not_begin_is_not_counted() -> None:
    def refuse(call: Any) -> Reject | None:
        return Reject("no") if call.arguments["euros"] == 2 else None

    clock, limit = FakeClock(), Limit(calls=1, per="day")
    tools = Toolset([refund]).with_gates(Budgets([limit], clock=clock))
    pipeline = Pipeline(tools.with_gates(refuse).with_approval(lambda arguments, ctx: arguments["euros"] > 2))

    refused, waiting = await called(pipeline, euros=2), await called(pipeline, euros=3)
    denied = await pipeline.run(waiting, Run(principal="ann"), grant=waiting.request.deny(message="no"))  # type: ignore[arg-type]

    assert kinds([refused, waiting, denied]) == ["rejected", "suspended", "rejected"]
    assert kinds([await called(pipeline), await called(pipeline)]) == ["completed", "rejected"]


async def test_calls_that_waited_for_a_person_are_counted_when_they_begin() -> None:
    clock, run = FakeClock(), Run(principal="ann", approvals=MemoryApprovalStore())
    pipeline = budgeted(Limit(calls=2, per="minute"), approval=True, clock=clock)
    waiting = [await called(pipeline, run=run) for _ in range(3)]
    clock.advance(1_000)

    outcomes = [await pipeline.run(one, run, grant=one.request.grant("bob")) for one in waiting]  # type: ignore[arg-type]

    assert kinds(outcomes) == ["completed", "completed", "rejected"]


async def test_arguments_that_an_approver_gives_are_what_is_counted() -> None:
    pipeline, run = budgeted(Limit(spend=50, currency="EUR"), approval=True), Run(principal="ann")
    outcomes = list[Outcome]()

    for euros in (45, 6):
        waiting = await called(pipeline, run=run, euros=1)
        grant = waiting.request.grant("bob", override_args={"euros": euros})
        outcomes.append(await pipeline.run(waiting, run, grant=grant))  # type: ignore[arg-type]

    assert kinds(outcomes) == ["completed", "rejected"]


async def test_a_call_that_the_host_executes_is_counted_when_it_is_admitted() -> None:
    @tool_input(name="ask")
    class Question(BaseModel):
        """Ask."""

        text: str = ""

    pipeline = Pipeline(Toolset([Question]).with_gates(Budgets([Limit(calls=1)], clock=FakeClock())))

    admitted = [await pipeline.admit(ToolCall("ask", {"text": "x"})) for _ in range(2)]

    assert [isinstance(one, Rejected) for one in admitted] == [False, True]


# --- asking a person


async def test_what_is_over_may_be_asked_about_and_is_counted_when_it_is_approved() -> None:
    limit, store, clock = Limit(spend=50, currency="EUR", per="day", over="ask"), MemoryUsageStore(), FakeClock()
    pipeline, run = budgeted(limit, store=store, clock=clock), Run(principal="ann")
    await called(pipeline, run=run, euros=40)
    waiting = [await called(pipeline, run=run, euros=euros) for euros in (20, 30)]
    assert all(isinstance(one, Suspended) for one in waiting), waiting

    answers = [waiting[0].request.deny(message="no"), waiting[1].request.grant("bob")]
    outcomes = [await pipeline.run(one, run, grant=answer) for one, answer in zip(waiting, answers, strict=True)]  # type: ignore[arg-type]
    after = await called(pipeline, run=run, euros=1)

    assert waiting[0].request.reason.startswith("`refund` is over its limit: at most 50 EUR a day, of which 40.0")
    assert kinds([*outcomes, after]) == ["rejected", "completed", "suspended"]
    assert "of which 70.0 are used" in after.request.reason


async def test_calls_at_once_that_are_over_are_asked_about() -> None:
    asked = list[ApprovalRequest]()

    async def approver(request: ApprovalRequest) -> Grant:
        asked.append(request)
        return request.grant("bob")

    pipeline, run = budgeted(Limit(calls=2, per="day", over="ask")), Run(approver=approver)

    outcomes = await asyncio.gather(*(called(pipeline, run=run) for _ in range(5)))

    assert all(isinstance(outcome, Completed) for outcome in outcomes)
    assert len(asked) == 3


async def test_a_limit_that_refuses_is_before_one_that_asks() -> None:
    pipeline = budgeted(Limit(calls=1, over="ask"), Limit(calls=2))
    run = Run(approver=lambda request: request.grant("bob"))

    outcomes = [await called(pipeline, run=run) for _ in range(3)]

    assert kinds(outcomes) == ["completed", "completed", "rejected"]
    assert "at most 2 calls in all" in outcomes[2].text()


async def test_a_call_that_goes_wrong_is_counted_once() -> None:
    @ez_tool
    async def broken() -> None:
        """Fail."""
        raise RuntimeError("no")

    gate = Budgets([Limit(calls=1)], clock=FakeClock())
    pipeline, run = Pipeline(Toolset([broken]).with_gates(gate)), Run(gates=[gate], limits=CallLimits(total=9))

    outcomes = [await pipeline.run(ToolCall("broken"), run) for _ in range(2)]

    assert kinds(outcomes) == ["failed", "rejected"]


@pytest.mark.parametrize("priced", ["shop_pay", "shop_*"])
@pytest.mark.parametrize("counted", [(), ("shop_pay", "free"), ("shop_*", "free")], ids=["all", "names", "pattern"])
async def test_a_limit_that_counts_a_tool_of_a_part_beside_is_not_in_the_log(
    priced: str, counted: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    gate = Budgets([Limit(spend=1, currency="EUR", tools=counted)], costs={priced: Cost(1, "EUR")})
    part = Toolset([free]).beside(ToolNames(["free", "shop_pay"]))

    await called(Pipeline(part), "free", Run(gates=[gate]))

    assert not caplog.messages


async def test_a_limit_that_counts_none_of_the_priced_tools_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    gate = Budgets([Limit(spend=1, currency="EUR", tools=["free"])], costs={"shop_pay": Cost(1, "EUR")})
    part = Toolset([free]).beside(ToolNames(["free", "shop_pay"]))

    await called(Pipeline(part), "free", Run(gates=[gate]))

    assert "1 EUR in all of free counts nothing" in caplog.text


@pytest.mark.parametrize(
    ("tool", "line"),
    [
        ("refund", "10 calls a minute of one principal; 50 EUR a day, or asked"),
        ("pay", "10 calls a minute of one principal; 3 calls in all of pay; 7.5 USD in all (1 USD a call)"),
    ],
)
def test_a_pipeline_explains_the_limits_that_count_a_tool(tool: str, line: str) -> None:
    pipeline = budgeted(
        Limit(calls=10, per="minute", by="principal"),
        Limit(calls=3, tools=["pay"]),
        Limit(spend=50, currency="EUR", per="day", over="ask"),
        Limit(spend=7.5, currency="USD"),
    )

    assert f"budgets: {line}\n" in pipeline.explain(tool)


def test_a_tool_that_no_limit_counts_is_explained_so() -> None:
    assert "budgets: no limit counts it\n" in budgeted(Limit(calls=3, tools=["pay"])).explain("refund")
