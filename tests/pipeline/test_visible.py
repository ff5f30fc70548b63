"""Names in errors for unknown tools: those that the caller may use, and no others."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import pytest

from toolcrib.calls import ToolCall
from toolcrib.code import Toolkit
from toolcrib.formats import ProviderOptions
from toolcrib.pipeline import Access, Channel, Pipeline, Run, visible_names
from toolcrib.schema import RunContext
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset


@ez_tool
async def pay(cents: int = 5) -> str:
    """Pay."""
    return f"paid {cents}"


@ez_tool(name="pay_all")
async def withheld(cents: int = 5) -> str:
    """Pay everybody."""
    return "paid all"


def of_the_boss(ctx: RunContext[Any], entry: Any) -> bool:
    return ctx.run is not None and ctx.run.principal == "boss"


async def of_the_boss_later(ctx: RunContext[Any], entry: Any) -> bool:
    return of_the_boss(ctx, entry)


def broken(ctx: RunContext[Any], entry: Any) -> NoReturn:
    sys.exit(2)


PAY, ALL = Toolset([pay]), Toolset([withheld])


@pytest.mark.parametrize(
    ("tools", "run"),
    [
        (ALL.filtered(of_the_boss), Run(principal="ann")),
        (ALL.filtered(of_the_boss_later), Run(principal="ann")),
        (ALL.filtered(broken), Run()),
        (ALL.with_scopes({"pay_all": "pay:all"}), Run(channel=Channel(access=Access()))),
        (ALL, Run(available=frozenset({"pay"}))),
        (ALL.hiding(["pay_all"]), Run()),
    ],
    ids=["filter", "async filter", "broken filter", "scope", "available", "off"],
)
@pytest.mark.parametrize("step", ["run", "receive", "restore", "recover"])
async def test_a_withheld_tool_is_not_named(tools: Toolset, run: Run, step: str) -> None:
    pipeline, call = Pipeline(Toolset.combined(PAY, tools)), ToolCall("pay_al", {})
    state = {"name": "pay_al", "arguments": {}, "id": "c1"}
    outcome: Any
    match step:
        case "run":
            outcome = await pipeline.run(call, run)
        case "receive":
            outcome = pipeline.receive(call, run)
        case "restore":
            outcome = pipeline.restore(state, run)
        case _:
            outcome = await pipeline.recover(call, run)

    assert (outcome.code, "`pay`" in outcome.message, "pay_all" in outcome.message) == ("unknown_tool", True, False)


async def test_a_tool_that_the_caller_may_not_call_is_not_named() -> None:
    options = ProviderOptions(allowed_callers=("code_execution",))
    others = ez_tool(name="pay_all", provider=options)(lambda: "paid all")

    outcome = await Pipeline([pay, others]).run(ToolCall("pay_al", {}, caller="direct"))

    assert "pay_all" not in outcome.text()


def test_those_who_may_use_a_tool_are_told_of_it() -> None:
    tools = Toolset.combined(PAY, ALL.filtered(of_the_boss).with_scopes({"pay_all": "pay:all"}))

    names = visible_names(tools, Run(principal="boss", channel=Channel(access=Access(frozenset({"pay:all"})))))

    assert names == ("pay", "pay_all")


@pytest.mark.processes
@pytest.mark.parametrize("sandbox", ["process", "unsafe_inline"])
@pytest.mark.parametrize("code", ["pay_al()", "f = globals\npay_al()", "describe('pay_al')"])
async def test_a_program_is_told_of_no_withheld_tool(sandbox: Any, code: str) -> None:
    kit = Toolkit(Toolset.combined(PAY, ALL.filtered(of_the_boss)), sandbox=sandbox)

    result = await kit.execute_async(code, run=Run(principal="ann"))

    assert "NameError" in str(result.error)
    assert "pay_all" not in str(result.error) + result.error_output


async def test_a_program_that_names_a_withheld_tool_is_refused_by_its_gate() -> None:
    kit = Toolkit(Toolset.combined(PAY, ALL.filtered(of_the_boss)), sandbox="unsafe_inline")

    result = await kit.execute_async("pay_all()", run=Run(principal="ann"))

    assert "PermissionError" in str(result.error)
