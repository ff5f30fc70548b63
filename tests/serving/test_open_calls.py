"""Calls that outlive their request: their states, whose they are, how many and how long, and their end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from toolcrib.approvals import MemorySuspendedCalls
from toolcrib.errors import ClientUnavailable
from toolcrib.serving import OpenCall, OpenCalls, OpenLimit

_KIND = "task"


def registry(each: int = 2, total: int = 3) -> OpenCalls:
    return OpenCalls(MemorySuspendedCalls(), {_KIND: OpenLimit(each, total)})


def opened(calls: OpenCalls, id: str, principal: str = "ann", owner: object = None, seconds: float = 60) -> OpenCall:
    call = OpenCall(_KIND, principal, "book", owner, id=id)
    calls.add(call, seconds)
    return call


async def asking(call: OpenCall, *keys: str) -> list[Any]:
    """Ask a question under each key."""
    return await asyncio.gather(*(call.ask(f"{key}?", "elicit", (int,), key) for key in keys))


async def test_a_call_runs_asks_runs_on_and_ends() -> None:
    call, states = OpenCall(_KIND, "ann", "book"), list[str]()
    call.listener = lambda: states.append(call.state)

    call.start(asking(call, "row"))
    await call.wait()
    call.answer({"row": 3})
    await call.wait()

    assert states == ["asking", "running", "ended"]
    assert call.result == [3]


async def test_a_call_whose_work_returns_none_is_suspended_until_it_is_started_again() -> None:
    call = OpenCall(_KIND, "ann", "book")

    call.start(asyncio.sleep(0))
    await call.wait()
    suspended = call.state
    call.start(asyncio.sleep(0, "booked"))
    await call.wait()

    assert (suspended, call.state, call.result) == ("suspended", "ended", "booked")


async def test_a_call_is_waited_for_no_longer_than_wanted() -> None:
    call = OpenCall(_KIND, "ann", "book")

    call.start(asyncio.Event().wait())
    await call.wait(0)
    waited = call.state
    await call.stop()

    assert (waited, call.state) == ("running", "ended")
    assert isinstance(call.error, asyncio.CancelledError)


async def test_answers_to_no_question_and_of_another_kind_are_left_out() -> None:
    call = OpenCall(_KIND, "ann", "book")
    call.start(asking(call, "row", "seat"))
    await call.wait()

    taken = [call.answer(answers) for answers in ({"row": "three"}, {"door": 1}, {"row": 3})]
    left = [*call.questions]
    await call.stop()

    assert (taken, left) == ([False, False, True], ["seat"])


async def test_questions_with_one_key_are_numbered_and_may_be_refused() -> None:
    call = OpenCall(_KIND, "ann", "book")
    call.start(asking(call, "row", "row"))
    await call.wait()
    keys = [*call.questions]

    call.refuse("too many ask")
    await call.wait()

    assert keys == ["row", "elicit_2"]
    assert isinstance(call.error, ClientUnavailable)
    assert "too many ask" in str(call.error)


async def test_a_call_is_found_by_its_principal_alone() -> None:
    calls = registry()
    call = opened(calls, "a")

    assert calls.find("ann", "a") is call
    assert calls.find("eve", "a") is None
    assert (calls.of("ann", _KIND), calls.of("eve", _KIND), calls.of("ann", "other")) == ([call], [], [])


async def test_so_many_calls_of_one_principal_and_of_all_are_open() -> None:
    calls = registry(each=2, total=3)

    first = opened(calls, "a")
    room = [calls.is_full("ann", _KIND)]
    opened(calls, "b")
    room += [calls.is_full("ann", _KIND), calls.is_full("eve", _KIND)]
    opened(calls, "c", "eve")
    room += [calls.is_full("eve", _KIND)]
    calls.take(first)
    room += [calls.is_full("ann", _KIND), calls.is_full("eve", _KIND)]

    assert room == [False, True, False, True, False, False]


async def test_a_call_is_taken_once() -> None:
    calls = registry()
    call = opened(calls, "a")

    taken = [calls.take(call), calls.take(call)]

    assert (taken, len(calls), calls.find("ann", "a")) == ([True, False], 0, None)


async def test_a_call_whose_time_is_over_is_stopped_and_forgotten() -> None:
    calls, forgotten = registry(), asyncio.Event()
    call = opened(calls, "a", seconds=0)
    call.on_forget = forgotten.set

    call.start(asyncio.Event().wait())
    await call.wait()
    await forgotten.wait()

    assert isinstance(call.error, asyncio.CancelledError)
    assert calls.find("ann", "a") is None


@pytest.mark.parametrize("owner", ["tools", "others"])
async def test_an_owner_that_closes_stops_its_calls_alone_and_their_listeners_hear_nothing(owner: str) -> None:
    calls, told = registry(), list[str]()
    call = opened(calls, "a", owner="tools")
    call.listener = call.on_forget = lambda: told.append("told")
    call.start(asyncio.Event().wait())

    await calls.close(owner)
    closed = (call.state, len(calls))
    await call.stop()

    assert closed == (("ended", 0) if owner == "tools" else ("running", 1))
    assert told == ([] if owner == "tools" else ["told"])
