"""Values that JSON or a database cannot hold, from a tool and for one: the call has an outcome, and nothing raises."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import Field

from toolcrib.approvals import SqliteApprovalStore
from toolcrib.calls import Completed, Failed, Suspended, ToolCall, render
from toolcrib.pipeline import Pipeline, Run
from toolcrib.provenance import Provenance
from toolcrib.record import JsonLinesSink, SqliteSink
from toolcrib.schema import RunContext
from toolcrib.tools import tool
from toolcrib.toolsets import Toolset


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def circular() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


VALUES = {
    "of 400 digits": 10**400,
    "of 5000 digits": -(10**5000),
    "beyond 64 bits": 2**64,
    "not a number": float("nan"),
    "infinite": float("-inf"),
    "a large fraction": Fraction(10**400, 3),
    "a large decimal": Decimal("1E+999999"),
    "half a character": "\ud800",
    "half a character as a key": {"\ud800": 1},
    "a null character": "a\x00b",
    "a null character as a key": {"\x00": 1},
    "keys that are one in JSON": {1: 2, "1": 3},
    "a pair as a key": {(1, 2): 3},
    "complex": 1j,
    "bytes": b"\xff",
    "nested deeply": nested(3000),
    "circular": circular(),
}


def tools_for(value: Any) -> Toolset:
    @tool(register=False)
    async def give() -> Any:
        return value

    @tool(register=False)
    async def give_number() -> float:
        return value

    @tool(register=False)
    async def fail() -> Any:
        raise ValueError(value)

    @tool(register=False)
    async def stream() -> AsyncIterator[Any]:
        yield value

    @tool(register=False)
    async def report(ctx: RunContext) -> str:
        assert ctx.report is not None
        ctx.report(value)
        return "reported"

    @tool(register=False)
    async def take(given: Any) -> str:
        return "taken"

    @tool(register=False)
    async def take_number(given: float) -> str:
        return "taken"

    @tool(register=False)
    async def take_multiple(given: Annotated[int, Field(multiple_of=3, ge=0)]) -> str:
        return "taken"

    @tool(register=False, requires_approval=True)
    async def take_asking(given: Any) -> str:
        return "taken"

    return Toolset([give, give_number, fail, stream, report, take, take_number, take_multiple, take_asking])


@pytest.fixture(params=["alone", "approvals", "sinks", "provenance"])
def around(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """Return the options of a run, which holds values in one more place each."""
    match request.param:
        case "approvals":
            yield {"approvals": SqliteApprovalStore(tmp_path / "approvals.db")}
        case "sinks":
            with closing(JsonLinesSink(tmp_path / "calls.jsonl")) as lines:
                yield {"sinks": [lines, SqliteSink(tmp_path / "calls.db")]}
        case "provenance":
            yield {"features": [Provenance()]}
        case _:
            yield {}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())
async def test_a_value_that_nothing_can_hold_ends_its_call_alone(value: Any, around: Any) -> None:
    tools, run = tools_for(value), Run(**around)
    pipeline = Pipeline(tools)

    for name in tools.entries:
        arguments = {"given": value} if name.startswith("take") else {}
        outcome = await pipeline.run(ToolCall(name, arguments), run)

        assert isinstance(outcome, Completed | Failed | Suspended), name
        assert json.dumps(outcome.to_dict(), allow_nan=False).isascii()
        assert render(outcome).text


@pytest.mark.parametrize("text", ["1e400", "1" + "0" * 400, "-1" + "0" * 5000, "NaN"])
async def test_a_number_in_a_models_text_is_taken_or_told(text: str, around: Any) -> None:
    tools, run = tools_for(1), Run(**around)
    pipeline = Pipeline(tools)

    for name in [name for name in tools.entries if name.startswith("take")]:
        outcome = await pipeline.run(ToolCall(name, f'{{"given": {text}}}'), run)

        assert isinstance(outcome, Completed | Failed | Suspended), name
        assert json.dumps(outcome.to_dict(), allow_nan=False).isascii()
