"""However often a program pauses, it comes to what it would have come to at one go, and does everything once."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from toolcrib.calls import ApprovalRequest, Denial, Grant
from toolcrib.code import PausedProgram, SandboxLimits, Toolkit
from toolcrib.sandbox import sandbox_named
from toolcrib.tools import Tool, ez_tool

LIMITS = SandboxLimits(program_time=1, sleep_time=0)
KEY = b"a key of more than sixteen bytes"
ENGINES = ["monty", *(["process"] if sys.platform == "linux" else [])]

calls = st.tuples(st.sampled_from(["look", "look", "pay"]), st.integers(0, 5))
steps = st.one_of(
    st.tuples(st.just("call"), calls),
    st.tuples(st.just("try"), calls),
    st.tuples(st.just("print"), st.integers(0, 9)),
    st.tuples(st.just("gather"), st.lists(calls, min_size=1, max_size=4)),
    st.tuples(st.just("chain"), st.lists(st.lists(calls, min_size=1, max_size=3), min_size=1, max_size=3)),
)


def written(program: Sequence[tuple[str, Any]]) -> str:
    """Return the program as Python; a refused call in the open ends it."""
    lines = ["import asyncio", "r = []"]
    for number, (kind, what) in enumerate(program):
        if kind == "call":
            lines.append(f"r.append({what[0]}({what[1]}))")
        elif kind == "try":
            lines += ["try:", f"    r.append({what[0]}({what[1]}))", "except PermissionError as e:"]
            lines.append("    r.append(str(e))")
        elif kind == "print":
            lines.append(f"print({what}, len(r))")
        elif kind == "gather":
            made = ", ".join(f"{name}({at})" for name, at in what)
            lines.append(f"r.append(await asyncio.gather({made}))")
        else:
            for at, chain in enumerate(what):
                lines += [f"async def c{number}_{at}():", "    s = 0"]
                lines += [f"    s = s + await {name}(s + {by})" for name, by in chain]
                lines.append("    return s")
            made = ", ".join(f"c{number}_{at}()" for at in range(len(what)))
            lines.append(f"r.append(await asyncio.gather({made}))")
    return "\n".join([*lines, "r"])


def tools(done: list[str]) -> list[Tool[..., Any]]:
    @ez_tool
    async def look(at: int) -> int:
        done.append(f"look {at}")
        return at + 1

    @ez_tool(requires_approval=True)
    async def pay(sum: int) -> int:
        done.append(f"pay {sum}")
        return sum * 2

    return [look, pay]


def answer(request: ApprovalRequest, *, refuses: bool) -> Grant | Denial:
    """Say the same to the same call, asked at once or days later."""
    if refuses and request.arguments["sum"] % 3 == 0:
        return request.deny(message=f"{request.arguments['sum']} is not to be paid")
    return request.grant("ada")


@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=examples(25), deadline=None)
@given(program=st.lists(steps, min_size=1, max_size=6), seed=st.randoms(use_true_random=False), refuses=st.booleans())
async def test_pauses_change_nothing(engine: str, program: list[Any], seed: Any, refuses: bool) -> None:
    code = written(program)
    if refuses and any(kind in ("gather", "chain") for kind, _ in program):
        refuses = False  # which of several refusals ends a group depends on who is asked first
    expected: list[str] = []

    async def inline(request: ApprovalRequest) -> Grant | Denial:
        return answer(request, refuses=refuses)

    at_once = await Toolkit(tools(expected), sandbox=sandbox_named(engine), approver=inline).execute_async(code)
    done: list[str] = []
    kit = Toolkit(tools(done), sandbox=sandbox_named(engine), limits=LIMITS)
    result = await kit.execute_async(code)
    while result.paused is not None:
        paused = PausedProgram.from_bytes(result.paused.to_bytes(KEY), KEY)
        chosen = [call for call in paused.suspended_calls if seed.random() < 0.5]
        answers = [answer(call.request, refuses=refuses) for call in chosen]
        result = await kit.resume_async(
            paused,
            grants=[each for each in answers if isinstance(each, Grant)],
            denials=[each for each in answers if isinstance(each, Denial)],
        )

    assert (result.return_value, result.output, result.error) == (
        at_once.return_value,
        at_once.output,
        at_once.error,
    ), code
    assert sorted(done) == sorted(expected), code
    assert [call["name"] for call in result.tool_calls].count("pay") == sum(
        call["name"] == "pay" for call in at_once.tool_calls
    )


MANY = """
import asyncio
async def paid(sum):
    try:
        return await pay(sum)
    except RuntimeError as error:
        return str(error)
await asyncio.gather(*(paid(n) for n in range(500)))
"""


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_program_has_so_many_calls_that_wait_for_a_person(engine: str) -> None:
    done: list[str] = []
    kit = Toolkit(tools(done), sandbox=sandbox_named(engine), limits=SandboxLimits())

    result = await kit.execute_async(MANY)
    assert result.paused is not None
    asked = result.paused.suspended_calls
    result = await kit.resume_async(result.paused, grants=[call.request.grant("ada") for call in asked])

    assert 250 <= len(asked) <= 400
    assert len(done) == len(asked)
    assert [type(value) for value in result.return_value].count(int) == len(asked)
    assert "250 calls of this program wait for a person already" in str(result.return_value)
