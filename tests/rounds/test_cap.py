"""`max_result_chars` holds for every answer to a call, in every format."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.rounds.replies import FORMATS, asks
from toolcrib.errors import FieldProblem, InvalidArguments
from toolcrib.rounds import ToolResult, ToolRoundPlan, WireFormat, decode
from toolcrib.tools import ez_tool

LONG = "x" * 5_000
Answering = Callable[[ToolRoundPlan], Awaitable[list[Any]]]


@ez_tool(max_result_chars=100)
async def read(path: str) -> str:
    return LONG


async def runs(plan: ToolRoundPlan) -> list[Any]:
    return list(await plan.run_pending())


async def completes(plan: ToolRoundPlan) -> list[Any]:
    return [plan.pending[0].complete(LONG)]


async def handles(plan: ToolRoundPlan) -> list[Any]:
    return [plan.pending[0].handled(LONG)]


async def fails(plan: ToolRoundPlan) -> list[Any]:
    return [plan.pending[0].fail(OSError(LONG))]


async def leaves_it(plan: ToolRoundPlan) -> list[Any]:
    return []


async def answers_the_issue(plan: ToolRoundPlan) -> list[Any]:
    return [plan.issues[0].complete(LONG)]


async def fails_the_issue(plan: ToolRoundPlan) -> list[Any]:
    return [
        ToolResult(plan.issues[0].metadata.id, "read", error=InvalidArguments("read", (FieldProblem("path", LONG),)))
    ]


async def handled_by_a_closure(call: Any) -> Any:
    return call.handled(LONG)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    ("answer", "arguments", "closure"),
    [
        (runs, {"path": "a"}, None),
        (completes, {"path": "a"}, None),
        (handles, {"path": "a"}, None),
        (fails, {"path": "a"}, None),
        (leaves_it, {"path": "a"}, handled_by_a_closure),
        (answers_the_issue, {}, None),
        (fails_the_issue, {}, None),
    ],
    ids=["run", "completed", "handled", "failed", "handled by a closure", "an issue's result", "an issue's error"],
)
async def test_a_long_answer_is_cut(format: WireFormat, answer: Answering, arguments: Any, closure: Any) -> None:
    plan = await decode([read], asks(("read", arguments), format=format)).apply_hooks(closure)
    messages: list[Any] = []

    await plan.commit(messages, await answer(plan))

    shown = json.dumps(messages[-1])
    assert "characters cut" in shown
    assert shown.count("x") < 120
