"""Pairing of the results of a transcript with its calls: what `check` and `repair` both work from."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from toolcrib.formats._wire import Item, TranscriptProblem, WireCall


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
    """A call and the place where it was found, with the result that answers it; `id` is what a result may name."""

    index: int
    call: WireCall
    id: str
    result: ResultSpot | None = None
    reused: bool = False  # an earlier call has its id
    refused: bool = False  # the provider does not take its id


@dataclass(frozen=True, slots=True)
class Layout:
    """The place in which a provider wants results.

    Attributes:
        place: `run`: right after the calls, an item each. `next`: all of them first in the next item. `later`: anywhere
            after the call.
        unique: Whether an id names one call of the whole transcript, and not only of one turn.
        needs_ids: Whether a call without an id cannot be answered.
        joins: Whether items with calls that follow on each other are one turn, with all results after the last of them.
    """

    place: Literal["run", "next", "later"]
    unique: bool = False
    needs_ids: bool = True
    joins: bool = False

    def goes_on(self, index: int, asked: Collection[int], answered: Collection[int]) -> bool:
        """Return whether the turn of an item with calls goes on in the next item.

        Args:
            index: The item's.
            asked: The items with calls.
            answered: The items with results.
        """
        return self.joins and index + 1 in asked and index + 1 not in answered


@dataclass(slots=True)
class Pairing:
    """All calls and results of a transcript, in order, paired."""

    calls: list[CallSpot] = field(default_factory=list[CallSpot])
    results: list[ResultSpot] = field(default_factory=list[ResultSpot])

    def problems(self, layout: Layout) -> Iterator[TranscriptProblem]:
        """Yield the problems, calls before results."""
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
    if spot.refused:
        yield TranscriptProblem(
            spot.index, call.id, "id", f"{asked} has the id `{call.id}`, which the provider refuses"
        )
    if spot.reused:
        yield TranscriptProblem(spot.index, call.id, "duplicate", f"{asked} has the id `{call.id}` of an earlier one")


def pair(calls: list[CallSpot], results: list[ResultSpot], layout: Layout) -> Pairing:
    """Return the calls with their results: first the results that are in place, then those that are left.

    A result with an id answers a call before it with that id, and no other.
    """
    _mark_reused(calls, results, layout)
    if layout.place != "later":
        _pair_in_place(calls, results, layout)
    _pair_by_id(calls, results, layout)
    return Pairing(calls, results)


def _mark_reused(calls: list[CallSpot], results: list[ResultSpot], layout: Layout) -> None:
    asked, answered = {spot.index for spot in calls}, {found.index for found in results}
    ids, last = set[str](), -1
    for spot in calls:
        if not layout.unique and spot.index != last and not layout.goes_on(last, asked, answered):
            ids.clear()  # another turn begins
        spot.reused = bool(spot.id) and spot.id in ids
        ids.add(spot.id)
        last = spot.index


def _pair_by_id(calls: list[CallSpot], results: list[ResultSpot], layout: Layout) -> None:
    """Pair each result that is left with the open call before it of its id, and return what is wrong with others."""
    later = layout.place == "later"
    coming, known, waiting = iter(calls), set[str](), dict[str, deque[CallSpot]]()
    following = next(coming, None)
    for found in results:
        while following is not None and following.index < found.index:
            known.add(following.id)
            if following.result is None:
                waiting.setdefault(following.id, deque()).append(following)
            following = next(coming, None)
        if found.fault is None or not found.id:
            continue
        spots = waiting.get(found.id)
        if spots:
            spot = spots.popleft() if later else spots.pop()
            spot.result, found.fault = found, None if later else "misplaced"
        elif found.id in known:
            found.fault = "duplicate"


def _pair_in_place(calls: list[CallSpot], results: list[ResultSpot], layout: Layout) -> None:
    by_item: dict[int, list[ResultSpot]] = {}
    for found in results:
        by_item.setdefault(found.index, []).append(found)
    asked: dict[int, list[CallSpot]] = {}
    for spot in calls:
        asked.setdefault(spot.index, []).append(spot)
    waiting = list[CallSpot]()
    for index, spots in asked.items():
        waiting += spots
        if layout.goes_on(index, asked, by_item):
            continue
        near, following = list[ResultSpot](), index + 1
        while following in by_item:
            near += [found for found in by_item[following] if found.leading]
            following += 1
            if layout.place == "next":
                break
        _give(near, waiting, by_name=False)
        if not layout.needs_ids:
            _give_by_name(near, waiting)
        waiting = []


def _give_by_name(near: Sequence[ResultSpot], spots: Sequence[CallSpot]) -> None:
    """Pair results without an id with the open calls of their name, in order, where there is one for each of them.

    Where there are more or fewer, nothing says which of them answers which call.
    """
    nameless = [found for found in near if not found.id]
    waiting = [spot for spot in spots if spot.result is None]
    counts, open = Counter(found.name for found in nameless), Counter(spot.call.name for spot in waiting)
    _give([found for found in nameless if counts[found.name] == open[found.name]], waiting, by_name=True)


def _give(results: Sequence[ResultSpot], spots: Sequence[CallSpot], *, by_name: bool) -> None:
    """Pair each result with the first of the open calls with its id, or with its name."""
    waiting: dict[str, deque[CallSpot]] = {}
    for spot in spots:
        waiting.setdefault(spot.call.name if by_name else spot.id, deque()).append(spot)
    for found in results:
        key = found.name if by_name else found.id
        if (by_name or key) and waiting.get(key):
            spot = waiting[key].popleft()
            spot.result, found.fault = found, None
