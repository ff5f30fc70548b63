from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated, Any

import pytest

from toolcrib.code import (
    CallEnded,
    CallStarted,
    CallSuspended,
    CallValue,
    Printed,
    ProgramDone,
    ProgramEvent,
    ProgramFailed,
    ProgramPaused,
    Toolkit,
)
from toolcrib.pipeline import CallLimits, Run
from toolcrib.sandbox import Sandbox
from toolcrib.schema import Redacted
from toolcrib.tools import ez_tool, tool


@ez_tool
def add(a: int, b: int = 0) -> int:
    """Add two numbers."""
    return a + b


@ez_tool(requires_approval=True)
def book(city: str) -> str:
    """Book a trip."""
    return f"booked {city}"


@ez_tool
async def count(to: int) -> AsyncIterator[int]:
    """Count."""
    for number in range(to):
        yield number


@ez_tool
def login(pin: Annotated[str, Redacted]) -> bool:
    """Log in."""
    return True


@pytest.fixture
def kit(engine: Sandbox) -> Toolkit:
    return Toolkit([add, book, count, login], sandbox=engine)


async def events(kit: Toolkit, code: str, scope: Run | None = None) -> list[ProgramEvent]:
    async with aclosing(kit.stream(code, scope)) as stream:
        return [event async for event in stream]


def names(found: list[ProgramEvent]) -> list[str]:
    return [type(event).__name__ for event in found]


async def test_events_come_in_order(kit: Toolkit) -> None:
    found = await events(kit, "print('a')\nadd(1, b=2)\nprint('b')")

    assert names(found) == ["Printed", "CallStarted", "CallEnded", "Printed", "ProgramDone"]
    printed, started, ended, _, done = found
    assert printed == Printed("a\n", "stdout")
    assert isinstance(started, CallStarted)
    assert isinstance(ended, CallEnded)
    assert (started.name, started.arguments, ended.outcome["value"]) == ("add", {"a": 1, "b": 2}, 3)
    assert started.id == ended.id
    assert isinstance(done, ProgramDone)
    assert (done.result.output, done.result.tool_calls[0]["id"]) == ("a\nb\n", started.id)


async def test_each_value_of_a_streaming_tool_has_an_event(kit: Toolkit) -> None:
    found = await events(kit, "list(count(3))")

    assert [event.value for event in found if isinstance(event, CallValue)] == [0, 1, 2]


async def test_a_failure_has_an_event_before_the_end(kit: Toolkit) -> None:
    found = await events(kit, "add(1)\n1 / 0")

    assert names(found) == ["CallStarted", "CallEnded", "ProgramFailed", "ProgramDone"]
    failed = found[-2]
    assert isinstance(failed, ProgramFailed)
    assert failed.error.startswith("ZeroDivisionError (line 2)")
    assert "are not undone: `add`" in failed.text


async def test_a_program_that_cannot_run_fails(kit: Toolkit) -> None:
    assert names(await events(kit, "x = (")) == ["ProgramFailed", "ProgramDone"]


async def test_a_suspended_call_has_an_event_and_then_the_pause(kit: Toolkit) -> None:
    found = await events(kit, "book('Oslo')")

    suspended, paused = (next(e for e in found if isinstance(e, kind)) for kind in (CallSuspended, ProgramPaused))
    assert suspended.request["arguments"] == {"city": "Oslo"}
    assert [pending.request.tool for pending in paused.suspended_calls] == ["book"]
    assert names(found) == ["CallStarted", "CallSuspended", "ProgramPaused", "ProgramDone"]


async def test_secrets_are_in_no_event(kit: Toolkit) -> None:
    assert "pin-4711" not in str(await events(kit, "login('pin-4711')"))


async def test_the_run_of_the_host_is_used(kit: Toolkit) -> None:
    found = await events(kit, "add(1)\nadd(2)", Run(limits=CallLimits(total=1)))

    assert [event.outcome["kind"] for event in found if isinstance(event, CallEnded)] == ["completed", "rejected"]


async def test_leaving_early_stops_the_program_and_its_calls(engine: Sandbox) -> None:
    ended: list[str] = []

    @tool()
    async def hang_on() -> None:
        """Never return."""
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("stopped")

    async with aclosing(Toolkit([hang_on], sandbox=engine).stream("hang_on()")) as stream:
        async for event in stream:
            if isinstance(event, CallStarted):
                await asyncio.sleep(0.01)
                break

    assert ended == ["stopped"]


async def test_the_program_does_not_wait_for_a_slow_reader(kit: Toolkit) -> None:
    stream = kit.stream("for n in range(300):\n    add(n)")
    first = await anext(stream)
    await asyncio.sleep(0.5)
    rest = [event async for event in stream]

    assert isinstance(first, CallStarted)
    assert len(rest) == 600


async def test_what_an_observer_raises_is_raised(engine: Sandbox) -> None:
    @tool()
    async def watched() -> None:
        """Do nothing."""

    @watched.before_invoke
    async def broken() -> None:
        raise ZeroDivisionError("in a hook")

    with pytest.raises(ZeroDivisionError, match="in a hook"):
        await events(Toolkit([watched], sandbox=engine), "watched()")


async def test_events_are_plain_values() -> None:
    wrong: Any = Printed("a", "stdout")

    with pytest.raises(AttributeError):
        wrong.text = "b"


async def test_a_stream_of_a_program_holds_no_slot_while_the_program_calls_another_tool(kit: Toolkit) -> None:
    run = Run(limits=CallLimits(concurrency=1))

    async with asyncio.timeout(60):
        result = await kit.execute_async("for n in count(3):\n    print(add(n, 10))", run)

    assert (result.error, result.output.split()) == (None, ["10", "11", "12"])
