"""Pairing of the results of a transcript with its calls: what `check` and `repair` both work from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from toolcrib.formats._wire import Item, TranscriptProblem, WireCall

__all__ = ["CallSpot", "Layout", "Pairing", "ResultSpot", "pair"]


@dataclass(slots=True, eq=False)
class ResultSpot:
    """A result and the place where it was found; `fault` says what is wrong with that place."""

    index: int
    id: str
    name: str
    raw: Item
    leading: bool  # whether it is where its item may hold results
    fault: Literal["orphan", "duplicate", "misplaced"] | None = "orphan"


@dataclass(slots=True, eq=False)
class CallSpot:
    """A call and the place where it was found, with the result that answers it."""

    index: int
    call: WireCall
    result: ResultSpot | None = None
    reused: bool = False  # an earlier call has its id


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a provider wants results.

    Attributes:
        place: `run`: right after the calls, an item each. `next`: all of them first in the next item. `later`: anywhere
            after the call.
        unique: Whether an id names one call of the whole transcript, and not only of one reply.
        needs_ids: Whether a call without an id cannot be answered.
    """

    place: Literal["run", "next", "later"]
    unique: bool = False
    needs_ids: bool = True


@dataclass(slots=True)
class Pairing:
    """All calls and results of a transcript, in order, paired."""

    calls: list[CallSpot] = field(default_factory=list[CallSpot])
    results: list[ResultSpot] = field(default_factory=list[ResultSpot])

    def problems(self, layout: Layout) -> Iterator[TranscriptProblem]:
        """Yield what breaks the rules, calls before results."""
        for spot in self.calls:
            yield from _problems_of(spot, layout)
        for found in self.results:
            result = f"the result of `{found.id or found.name}` in item {found.index}"
            if found.fault == "orphan":
                yield TranscriptProblem(found.index, found.id, "orphan", f"{result} answers no call")
            elif found.fault == "duplicate":
                yield TranscriptProblem(found.index, found.id, "duplicate", f"{result} answers a call a second time")
            elif found.fault == "misplaced":
                yield TranscriptProblem(found.index, found.id, "misplaced", f"{result} is not where its call wants it")


def _problems_of(spot: CallSpot, layout: Layout) -> Iterator[TranscriptProblem]:
    call = spot.call
    asked = f"the call of `{call.name}` in item {spot.index}"
    if layout.needs_ids and not call.id:
        yield TranscriptProblem(spot.index, "", "missing", f"{asked} has no id, so that nothing can answer it")
    elif spot.result is None:
        yield TranscriptProblem(spot.index, call.id, "missing", f"{asked} (`{call.id}`) has no result")
    if spot.reused:
        yield TranscriptProblem(spot.index, call.id, "duplicate", f"{asked} has the id `{call.id}` of an earlier one")


def pair(
    calls: list[CallSpot], results: list[ResultSpot], layout: Layout, matches: Callable[[WireCall, ResultSpot], bool]
) -> Pairing:
    """Return the calls with their results: first the results that are in place, then those that are left."""
    _mark_reused(calls, layout)
    if layout.place == "later":
        _pair_later(calls, results, matches)
    else:
        _pair_in_place(calls, results, layout, matches)
    for found in results:
        if found.fault is not None:
            _give_to_nearest(found, calls, matches)
    return Pairing(calls, results)


def _mark_reused(calls: list[CallSpot], layout: Layout) -> None:
    seen: set[object] = set()
    for spot in calls:
        key = spot.call.id if layout.unique else (spot.index, spot.call.id)
        spot.reused = bool(spot.call.id) and key in seen
        seen.add(key)


def _pair_later(
    calls: list[CallSpot], results: list[ResultSpot], matches: Callable[[WireCall, ResultSpot], bool]
) -> None:
    coming, waiting = iter(calls), list[CallSpot]()  # what was answered is not looked at again
    following = next(coming, None)
    for found in results:
        while following is not None and following.index < found.index:
            waiting.append(following)
            following = next(coming, None)
        _give_to_first(found, waiting, matches)
        waiting = [spot for spot in waiting if spot.result is None]


def _pair_in_place(
    calls: list[CallSpot],
    results: list[ResultSpot],
    layout: Layout,
    matches: Callable[[WireCall, ResultSpot], bool],
) -> None:
    by_item: dict[int, list[ResultSpot]] = {}
    for found in results:
        by_item.setdefault(found.index, []).append(found)
    waiting: dict[int, list[CallSpot]] = {}
    for spot in calls:
        waiting.setdefault(spot.index, []).append(spot)
    for index, asked in waiting.items():
        following = index + 1
        while following in by_item:
            for found in by_item[following]:
                if found.leading:
                    _give_to_first(found, asked, matches)
            if layout.place == "next":
                break
            following += 1


def _give_to_first(
    found: ResultSpot, asked: Sequence[CallSpot], matches: Callable[[WireCall, ResultSpot], bool]
) -> None:
    """Give `found` to the first of the calls that it answers and nothing has answered."""
    for spot in asked:
        if spot.result is None and matches(spot.call, found):
            spot.result, found.fault = found, None
            return


def _give_to_nearest(found: ResultSpot, calls: list[CallSpot], matches: Callable[[WireCall, ResultSpot], bool]) -> None:
    """Give `found` to the nearest open call before it, or the first after it, and say what is wrong with it."""
    known = [spot for spot in calls if matches(spot.call, found)]
    before = [spot for spot in known if spot.result is None and spot.index < found.index]
    after = [spot for spot in known if spot.result is None and spot.index >= found.index]
    if before or after:
        spot = before[-1] if before else after[0]
        spot.result, found.fault = found, "misplaced"
    elif known:
        found.fault = "duplicate"
