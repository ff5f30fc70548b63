"""Transcript rules: what a provider asks of the calls and results in its messages, checked and repaired by one code."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias, cast

from toolcrib.formats._call_ids import made_id, seed_of, unused_id
from toolcrib.formats._result_pairing import CallSpot, Layout, Pairing, ResultSpot, pair
from toolcrib.formats._wire import Item, TranscriptProblem, WireCall, WireResult

__all__ = ["UNANSWERED", "CallKey", "TranscriptRules"]

UNANSWERED = "This call was not answered: the conversation went on without its result."

CallKey: TypeAlias = str | tuple[str, str]
"""What a result names its call by: an id; or an id that may be empty, and the tool's name."""


class TranscriptRules(ABC):
    """How one provider keeps calls and results in a transcript; `unanswered`, `check` and `repair` follow from it.

    Attributes:
        layout: Where the provider wants results.
    """

    layout: ClassVar[Layout]

    # --- what a provider's module says

    @abstractmethod
    def call_keys(self, item: Mapping[str, Any]) -> list[CallKey]:
        """Return the keys of the calls in an item of a transcript, in order."""

    @abstractmethod
    def result_keys(self, item: Mapping[str, Any]) -> list[CallKey] | None:
        """Return the keys of the results in an item of a transcript; None when one stands where it may not."""

    @abstractmethod
    def calls_of(self, item: Mapping[str, Any]) -> tuple[WireCall, ...]:
        """Return the calls in an item of a transcript, in order."""

    @abstractmethod
    def results_of(self, item: Mapping[str, Any]) -> tuple[WireResult, ...]:
        """Return the results in an item of a transcript, in order; `call` has what the item says of the call."""

    @abstractmethod
    def answer(self, results: Sequence[WireResult]) -> list[Item]:
        """Return the items that answer calls, in the order given; nothing for no results."""

    @abstractmethod
    def raw_results(self, item: Mapping[str, Any]) -> list[Item]:
        """Return the same results as `results_of`, as they are in the item."""

    @abstractmethod
    def leading(self, item: Mapping[str, Any]) -> int:
        """Return how many of an item's results are where it may hold them."""

    @abstractmethod
    def rest_of(self, item: Mapping[str, Any]) -> Item | None:
        """Return an item without its results; None when nothing is left."""

    @abstractmethod
    def pack(self, raw: Sequence[Item], rest: Item | None = None) -> list[Item]:
        """Return the items for raw results, followed by what else their item held."""

    @abstractmethod
    def with_call_ids(self, item: Mapping[str, Any], ids: Sequence[str]) -> Item:
        """Return an item whose calls have other ids."""

    @abstractmethod
    def with_result_id(self, raw: Item, id: str) -> Item:
        """Return a raw result that answers another id."""

    def call_ids(self, item: Mapping[str, Any]) -> list[str]:
        """Return the ids of the calls in an item of a transcript, in order."""
        return [key for key in self.call_keys(item) if isinstance(key, str)]

    def key_of(self, call: WireCall) -> CallKey:
        """Return the key of a call."""
        return call.id

    def answerable(self, keys: Sequence[CallKey]) -> bool:
        """Return whether the calls of one item can be answered: each has an id, and no two have the same."""
        return all(keys) and len(set(keys)) == len(keys)

    def still_unanswered(self, waiting: list[CallKey], answered: list[CallKey]) -> list[CallKey] | None:
        """Return which calls still wait after some were answered; None when an answer is of none of them."""
        if waiting == answered:
            return []
        rest = [*waiting]
        for key in answered:
            if key not in rest:
                return None
            rest.remove(key)
        return rest

    def make_id(self, seed: str) -> str:
        """Return an id in the provider's shape, the same for the same seed."""
        return made_id(seed)

    def matches(self, call: WireCall, found: ResultSpot) -> bool:
        """Return whether a result answers a call."""
        return bool(call.id) and call.id == found.id

    # --- what follows from it

    def unanswered(self, items: Iterable[Mapping[str, Any]], taken: Collection[str] = ()) -> list[CallKey] | None:
        """Return the calls that wait for a result at the end of these items.

        Args:
            items: A whole transcript; or the rest of one, of which all that came before is in order.
            taken: The ids of the calls before, where an id names one call of the whole transcript.

        Returns:
            None when anything may be wrong with the items; `check` says what.
        """
        later, unique = self.layout.place == "later", self.layout.unique
        waiting: list[CallKey] = []
        seen: set[CallKey] = set()
        for item in items:
            answered = self.result_keys(item)
            if answered:
                rest = self.still_unanswered(waiting, answered)
                if rest is None or (rest and self.layout.place == "next"):
                    return None
                waiting = rest
            elif answered is None or (waiting and not later):
                return None
            asked = self.call_keys(item)
            if not asked:
                continue
            if (answered and not later) or (waiting and not later) or not self.answerable(asked):
                return None
            if unique and any(key in seen or key in taken for key in asked):
                return None
            seen.update(asked)
            waiting = waiting + asked if later else asked
        return waiting

    def check(self, transcript: Sequence[Mapping[str, Any]]) -> list[TranscriptProblem]:
        """Return what the provider would refuse: results without a call, calls without a result, doubles, misplacings.

        A call at the very end that waits for its result is missing one, too: the provider would not go on from there.
        """
        if self.unanswered(transcript) == []:
            return []
        return sorted(self._pair(transcript).problems(self.layout), key=lambda problem: problem.index)

    def repair(self, transcript: Sequence[Mapping[str, Any]]) -> tuple[list[Item], list[str]]:
        """Return a transcript that passes `check`, and what was done for it, a sentence each.

        Results are moved to where their call wants them, doubles and orphans are dropped, calls without a result get
        an error that says so, and ids that are missing or in use are replaced. No call and no text is ever dropped.
        """
        pairing = self._pair(transcript)
        problems = list(pairing.problems(self.layout))
        items = [cast("Item", item) for item in transcript]
        if not problems:
            return items, []
        renamed = self._renamed(pairing)
        if self.layout.place == "later":
            mended = list(self._mend_later(items, pairing, renamed))
        else:
            mended = list(self._mend_adjacent(items, pairing, renamed))
        return mended, _repairs(pairing, renamed)

    # --- inside

    def _pair(self, transcript: Sequence[Mapping[str, Any]]) -> Pairing:
        calls: list[CallSpot] = []
        results: list[ResultSpot] = []
        for index, item in enumerate(transcript):
            calls += [CallSpot(index, call) for call in self.calls_of(item)]
            raw_results = self.raw_results(item)
            if not raw_results:
                continue
            leading = self.leading(item)
            for position, (result, raw) in enumerate(zip(self.results_of(item), raw_results, strict=True)):
                results.append(ResultSpot(index, result.call.id, result.call.name, raw, position < leading))
        return pair(calls, results, self.layout, self.matches)

    def _renamed(self, pairing: Pairing) -> dict[CallSpot, str]:
        """Return new ids for the calls that need one."""
        used = {spot.call.id for spot in pairing.calls}
        made: dict[CallSpot, str] = {}
        for position, spot in enumerate(pairing.calls):
            if spot.reused or (self.layout.needs_ids and not spot.call.id):
                seed = seed_of([spot.call.name, spot.call.arguments], position)
                made[spot] = unused_id(seed, self.make_id, used)
                used.add(made[spot])
        return made

    def _raw_answer(self, spot: CallSpot, renamed: Mapping[CallSpot, str]) -> Item:
        id = renamed.get(spot)
        if spot.result is not None:
            return spot.result.raw if id is None else self.with_result_id(spot.result.raw, id)
        call = WireCall(spot.call.id if id is None else id, spot.call.name, spot.call.arguments, spot.call.kind)
        [item] = self.answer([WireResult(call, UNANSWERED, is_error=True)])
        return self.raw_results(item)[0]

    def _with_ids(self, item: Item, asked: Sequence[CallSpot], renamed: Mapping[CallSpot, str]) -> Item:
        if not any(spot in renamed for spot in asked):
            return item
        return self.with_call_ids(item, [renamed.get(spot, spot.call.id) for spot in asked])

    def _mend_adjacent(self, items: list[Item], pairing: Pairing, renamed: Mapping[CallSpot, str]) -> Iterator[Item]:
        asked = _by_item(pairing)
        shared = self.layout.place == "next"
        done: set[int] = set()
        for index, item in enumerate(items):
            if index in done:
                continue
            kept = self.rest_of(item) if self.raw_results(item) else item
            if kept is not None:
                yield self._with_ids(kept, asked.get(index, ()), renamed)
            if index in asked:
                rest = None
                if shared and index + 1 < len(items) and self.leading(items[index + 1]):
                    rest = self.rest_of(items[index + 1])
                    done.add(index + 1)
                yield from self.pack([self._raw_answer(spot, renamed) for spot in asked[index]], rest)

    def _mend_later(self, items: list[Item], pairing: Pairing, renamed: Mapping[CallSpot, str]) -> Iterator[Item]:
        asked = _by_item(pairing)
        owners = {spot.result.index: spot for spot in pairing.calls if spot.result and spot.result.fault is None}
        owed: list[CallSpot] = []
        for index, item in enumerate(items):
            if index not in asked and index not in owners:
                yield from self.pack([self._raw_answer(spot, renamed) for spot in owed])
                owed = []
            if index in owners:
                yield self._raw_answer(owners[index], renamed)
            elif not self.raw_results(item):
                yield self._with_ids(item, asked.get(index, ()), renamed)
            owed += [spot for spot in asked.get(index, ()) if spot.result is None or spot.result.fault is not None]
        yield from self.pack([self._raw_answer(spot, renamed) for spot in owed])


def _by_item(pairing: Pairing) -> dict[int, list[CallSpot]]:
    found: dict[int, list[CallSpot]] = {}
    for spot in pairing.calls:
        found.setdefault(spot.index, []).append(spot)
    return found


def _repairs(pairing: Pairing, renamed: Mapping[CallSpot, str]) -> list[str]:
    """Return what a repair does, a sentence each, in the order of the items."""
    said: list[tuple[int, str]] = []
    for spot in pairing.calls:
        call = f"the call of `{spot.call.name}` in item {spot.index}"
        if spot in renamed:
            said.append((spot.index, f"gave {call} the id `{renamed[spot]}` in place of `{spot.call.id}`"))
        if spot.result is None:
            said.append((spot.index, f"added a result for {call} that says that there was none"))
    for found in pairing.results:
        result = f"the result of `{found.id or found.name}` in item {found.index}"
        if found.fault == "misplaced":
            said.append((found.index, f"moved {result} to its call"))
        elif found.fault == "duplicate":
            said.append((found.index, f"dropped {result}, which was there twice"))
        elif found.fault == "orphan":
            said.append((found.index, f"dropped {result}, which answers no call"))
    return [text for _, text in sorted(said, key=lambda one: one[0])]
