"""Transcript rules: what a provider asks of the calls and results in its messages, checked and repaired by one code."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeAlias, cast

from toolcrib.formats._call_ids import is_sendable, made_id, seed_of, unused_id
from toolcrib.formats._json_reading import json_shape
from toolcrib.formats._result_pairing import CallSpot, Layout, Pairing, ResultSpot, pair
from toolcrib.formats._user_words import UserWords, user_words
from toolcrib.formats._wire import Item, ProblemKind, TranscriptProblem, WireCall, WireResult

UNANSWERED = "This call was not answered: the conversation went on without its result."
_LEFT_OUT = {"user": "A part of the conversation was left out here.", "assistant": "This was not answered."}

CallKey: TypeAlias = str | tuple[str, str]
"""The key by which a result names its call: an id; or an id that may be empty, and the tool's name."""


Speaker: TypeAlias = Literal["user", "assistant"]


@dataclass(frozen=True, slots=True)
class RefusedPart:
    """A part of an item that the provider refuses, and that is dropped.

    Attributes:
        index: Of the item.
        place: Of the part in it; a second number is the place in a result that the part is.
        kind: As for a `TranscriptProblem`.
        id: Of the call that it is about; empty for others.
        text: A noun phrase for it, for a sentence.
    """

    index: int
    place: tuple[int, ...]
    kind: ProblemKind
    id: str
    text: str


class TranscriptRules(ABC):
    """The rules of one provider for calls and results in a transcript, from which `check` and `repair` follow.

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

    def raw_results(self, item: Mapping[str, Any]) -> list[Item]:
        """Return the same results as `results_of`, as they are in the item: where it is one, the item itself."""
        return [dict(item)] if self.result_keys(item) else []

    def leading(self, item: Mapping[str, Any]) -> int:
        """Return how many of an item's results are where it may hold them."""
        return len(self.result_keys(item) or ())

    def rest_of(self, item: Mapping[str, Any]) -> Item | None:
        """Return an item without its results; None when nothing is left."""
        return None if self.result_keys(item) else dict(item)

    def pack(self, raw: Sequence[Item], rest: Item | None = None) -> list[Item]:
        """Return the items for raw results, followed by what else their item held: each is an item of its own."""
        return [*raw] if rest is None else [*raw, rest]

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
        """Return whether the calls of one item can be answered: each has an id that is taken, and no two the same."""
        return all(self.takes_id(_id_of(key)) for key in keys) and len(set(keys)) == len(keys)

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

    def takes_id(self, id: str) -> bool:
        """Return whether the provider takes the id of a call in a transcript."""
        return is_sendable(id)

    def make_id(self, seed: str) -> str:
        """Return an id in the provider's shape, the same for the same seed."""
        return made_id(seed)

    def missing_turns(self, before: Mapping[str, Any] | None, item: Mapping[str, Any]) -> Sequence[Speaker]:
        """Return whose turns the provider wants between two neighbours; `before` is None for the first item."""
        return ()

    def joined(self, before: Mapping[str, Any], item: Mapping[str, Any]) -> Item | None:
        """Return two neighbours as the one item that the provider wants of them; None where it takes both."""
        return None

    def may_precede(self, item: Mapping[str, Any], following: Mapping[str, Any] | None) -> bool:
        """Return whether the provider takes an item before the one that follows, None for the end."""
        return True

    def refused_parts(self, items: Sequence[Mapping[str, Any]]) -> list[RefusedPart]:
        """Return the parts of items that the provider refuses and no reader misses, in their order."""
        return []

    def without_parts(self, item: Mapping[str, Any], places: Collection[tuple[int, ...]]) -> Item | None:
        """Return an item without some of its parts; None when nothing is left."""
        return {**item}

    def user(self, text: str) -> list[Item]:
        """Return the items for what a user says."""
        return [{"role": "user", "content": text}]

    def system(self, text: str) -> list[Item]:
        """Return the items for instructions; none where the provider takes them beside the transcript."""
        return []

    def assistant(self, text: str) -> list[Item]:
        """Return the items for what the model said."""
        return [{"role": "assistant", "content": text}]

    def words_of(self, item: Mapping[str, Any]) -> UserWords:
        """Return the user's words in an item of a transcript."""
        rest = self.rest_of(item) if self.raw_results(item) else item
        return UserWords() if rest is None or rest.get("role") != "user" else user_words(rest)

    # --- what follows from it

    def unanswered(self, items: Iterable[Mapping[str, Any]], taken: Collection[str] = ()) -> list[CallKey] | None:
        """Return the calls that wait for a result at the end of these items.

        Args:
            items: A whole transcript; or the rest of one, of which all that came before is in order.
            taken: The ids of the calls before, where an id names one call of the whole transcript.

        Returns:
            None when anything may be wrong with the items; `check` says what.
        """
        later, unique, joins = self.layout.place == "later", self.layout.unique, self.layout.joins
        waiting: list[CallKey] = []
        asked_before: set[CallKey] = set()
        for item in items:
            answered, asked = self.result_keys(item), self.call_keys(item)
            if answered:
                rest = self.still_unanswered(waiting, answered)
                if rest is None or (rest and self.layout.place == "next"):
                    return None
                waiting = rest
            elif answered is None or (waiting and not later and not (joins and asked)):
                return None
            if not asked:
                continue
            turn = [*waiting, *asked] if joins else asked
            if (answered and not later) or (waiting and not (later or joins)) or not self.answerable(turn):
                return None
            if unique and any(key in asked_before or key in taken for key in asked):
                return None
            asked_before.update(asked)
            waiting = waiting + asked if later else turn
        return waiting

    def add_user(self, transcript: list[Any], text: str) -> None:
        """Add the user's text to a transcript, as the provider takes it after the last item.

        That may be a word of the user's, or results, to which no answer is in the transcript: it joins them, or a turn
        of the assistant's before it says so.
        """
        for item in self.user(text):
            self.add_item(transcript, item)

    def add_item(self, transcript: list[Any], item: Item) -> None:
        """Add an item of the user's as `add_user` does; another one as it is, where no turn is missing before it."""
        before = json_shape(transcript[-1]) if transcript else None
        if before is not None and (joined := self.joined(before, item)) is not None:
            transcript[-1] = joined
            return
        for speaker in self.missing_turns(before, item):
            transcript += self._left_out(speaker)
        transcript.append(item)

    def check(self, transcript: Sequence[Mapping[str, Any]]) -> list[TranscriptProblem]:
        """Return the faults that the provider refuses: unmatched calls and results, turns out of order.

        A call at the very end that waits for its result is missing one, too: the provider would not go on from there.
        """
        found = list(self._order_problems(transcript))
        found += [
            TranscriptProblem(part.index, part.id, part.kind, f"item {part.index} has {part.text}")
            for part in self.refused_parts(transcript)
        ]
        if self.unanswered(transcript) != []:
            found = [*self.paired(transcript).problems(self.layout), *found]
        return sorted(found, key=lambda problem: problem.index)

    def repair(self, transcript: Sequence[Mapping[str, Any]]) -> tuple[list[Item], list[str]]:
        """Return a transcript that passes `check`, and what was done for it, a sentence each.

        Results are moved back to their call, doubles and orphans are dropped, calls without a result get an error that
        says so, and ids that are missing or in use are replaced. Reasoning without the item that it led to is dropped,
        and so are texts of white space and calls of the provider's own without a result, where it takes none; where a
        turn is missing one is added that says so. No call of the client's and no word is ever dropped, and no result
        goes to another call.
        """
        items = [cast("Item", item) for item in transcript]
        if not self.check(items):
            return items, []
        pairing = self.paired(items)
        used = {spot.call.id for spot in pairing.calls}
        renamed: dict[CallSpot, str] = {}
        for position, spot in enumerate(pairing.calls):
            if spot.reused or spot.refused or (self.layout.needs_ids and not spot.id):
                seed = seed_of([spot.call.name, spot.call.arguments], position)
                renamed[spot] = unused_id(seed, self.make_id, used)
                used.add(renamed[spot])
        dropped = self._leading_nowhere(items)
        mend = self._mend_later if self.layout.place == "later" else self._mend_adjacent
        strays = {(at, id(items[at])) for at in dropped}
        mended = [(at, item) for at, item in mend(items, pairing, renamed) if (at, id(item)) not in strays]
        rest, notes = self._without_refused(mended)
        filled, added = self._with_turns(rest)
        notes += [(at, f"dropped item {at}, which stood without the item that it led to") for at in dropped]
        notes += [*_repairs(pairing, renamed), *added]
        return filled, [text for _, text in sorted(notes, key=lambda note: note[0])]

    def paired(self, transcript: Sequence[Mapping[str, Any]]) -> Pairing:
        """Return the calls and results of a transcript, each result with the call that it answers."""
        calls: list[CallSpot] = []
        results: list[ResultSpot] = []
        for index, item in enumerate(transcript):
            for call in self.calls_of(item):
                id = _id_of(self.key_of(call))
                calls.append(CallSpot(index, call, id, refused=bool(id) and not self.takes_id(id)))
            raw_results = self.raw_results(item)
            if not raw_results:
                continue
            leading = self.leading(item)
            for position, (result, raw) in enumerate(zip(self.results_of(item), raw_results, strict=True)):
                results.append(ResultSpot(index, result.call.id, result.call.name, raw, position < leading))
        return pair(calls, results, self.layout)

    # --- inside

    def _leading_nowhere(self, items: Sequence[Mapping[str, Any]]) -> list[int]:
        """Return which items stand without the one that they led to."""
        found: list[int] = []
        following: Mapping[str, Any] | None = None
        for index in range(len(items) - 1, -1, -1):
            if self.may_precede(items[index], following):
                following = items[index]
            else:
                found.append(index)
        return found

    def _order_problems(self, items: Sequence[Mapping[str, Any]]) -> Iterator[TranscriptProblem]:
        for index in self._leading_nowhere(items):
            yield TranscriptProblem(index, "", "order", f"item {index} stands without the item that it led to")
        before = None
        for index, item in enumerate(items):
            for speaker in self.missing_turns(before, item):
                wanted = f"before item {index} a turn of the {speaker}'s is missing"
                yield TranscriptProblem(index, "", "order", wanted)
            before = item

    def _without_refused(
        self, mended: Sequence[tuple[int, Item]]
    ) -> tuple[Sequence[tuple[int, Item]], list[tuple[int, str]]]:
        """Return the items without the parts that are refused, and what was dropped of which item."""
        parts = self.refused_parts([item for _, item in mended])
        if not parts:
            return mended, []
        places: dict[int, set[tuple[int, ...]]] = {}
        for part in parts:
            places.setdefault(part.index, set()).add(part.place)
        rest = [
            (at, self.without_parts(item, places[place]) if place in places else item)
            for place, (at, item) in enumerate(mended)
        ]
        notes = [(at := mended[part.index][0], f"dropped from item {at} {part.text}") for part in parts]
        return [(at, item) for at, item in rest if item is not None], notes

    def _with_turns(self, mended: Iterable[tuple[int, Item]]) -> tuple[list[Item], list[tuple[int, str]]]:
        """Return the items with the turns that are missing between them, and what was added before which item."""
        items, notes, before = list[Item](), list[tuple[int, str]](), None
        for index, item in mended:
            for speaker in self.missing_turns(before, item):
                items += self._left_out(speaker)
                notes.append(
                    (index, f"added a turn of the {speaker}'s before item {index}, which says what is missing")
                )
            items.append(item)
            before = item
        return items, notes

    def _left_out(self, speaker: Speaker) -> list[Item]:
        """Return the turn that stands for one that is missing."""
        return self.user(_LEFT_OUT["user"]) if speaker == "user" else self.assistant(_LEFT_OUT["assistant"])

    def _raw_answer(self, spot: CallSpot, renamed: Mapping[CallSpot, str]) -> Item:
        id = renamed.get(spot)
        if spot.result is not None:
            return spot.result.raw if id is None else self.with_result_id(spot.result.raw, id)
        call = spot.call if id is None else replace(spot.call, id=id)
        [item] = self.answer([WireResult(call, UNANSWERED, is_error=True)])
        return self.raw_results(item)[0]

    def _with_ids(self, item: Item, asked: Sequence[CallSpot], renamed: Mapping[CallSpot, str]) -> Item:
        if not any(spot in renamed for spot in asked):
            return item
        return self.with_call_ids(item, [renamed.get(spot, spot.call.id) for spot in asked])

    def _mend_adjacent(
        self, items: list[Item], pairing: Pairing, renamed: Mapping[CallSpot, str]
    ) -> Iterator[tuple[int, Item]]:
        """Yield the items with each result at its call, and the place where each of them was or belongs."""
        asked = _by_item(pairing)
        shared = self.layout.place == "next"
        answered = {found.index for found in pairing.results}
        done, owed = set[int](), list[CallSpot]()
        for index, item in enumerate(items):
            if index in done:
                continue
            rest_item = self.rest_of(item) if self.raw_results(item) else item
            if rest_item is not None:
                yield index, self._with_ids(rest_item, asked.get(index, ()), renamed)
            owed += asked.get(index, ())
            if owed and not self.layout.goes_on(index, asked, answered):
                rest = None
                if shared and index + 1 < len(items) and self.leading(items[index + 1]):
                    rest = self.rest_of(items[index + 1])
                    done.add(index + 1)
                packed = self.pack([self._raw_answer(spot, renamed) for spot in owed], rest)
                yield from ((index + 1, answer) for answer in packed)
                owed = []

    def _mend_later(
        self, items: list[Item], pairing: Pairing, renamed: Mapping[CallSpot, str]
    ) -> Iterator[tuple[int, Item]]:
        """Yield the items without doubles and orphans; calls without a result get one after the calls around them."""
        asked = _by_item(pairing)
        owners = {spot.result.index: spot for spot in pairing.calls if spot.result}
        owed: list[CallSpot] = []
        for index, item in enumerate([*items, Item()]):
            if index not in asked and index not in owners:
                yield from ((index, answer) for answer in self.pack([self._raw_answer(spot, renamed) for spot in owed]))
                owed = []
            if index in owners:
                yield index, self._raw_answer(owners[index], renamed)
            elif index < len(items) and not self.raw_results(item):
                yield index, self._with_ids(item, asked.get(index, ()), renamed)
            owed += [spot for spot in asked.get(index, ()) if spot.result is None]


def _id_of(key: CallKey) -> str:
    return key if isinstance(key, str) else key[0]


def _by_item(pairing: Pairing) -> dict[int, list[CallSpot]]:
    found: dict[int, list[CallSpot]] = {}
    for spot in pairing.calls:
        found.setdefault(spot.index, []).append(spot)
    return found


def _repairs(pairing: Pairing, renamed: Mapping[CallSpot, str]) -> Iterator[tuple[int, str]]:
    """Yield each repair of calls and results, a sentence each, with its item."""
    for spot in pairing.calls:
        call = f"the call of `{spot.call.name}` in item {spot.index}"
        if spot in renamed:
            yield spot.index, f"gave {call} the id `{renamed[spot]}` in place of `{spot.call.id}`"
        if spot.result is None:
            yield spot.index, f"added a result for {call} that says that there was none"
    for found in pairing.results:
        result = f"the result of `{found.id or found.name}` in item {found.index}"
        if found.fault == "misplaced":
            yield found.index, f"moved {result} to its call"
        elif found.fault == "duplicate":
            yield found.index, f"dropped {result}, which was there twice"
        elif found.fault == "orphan":
            yield found.index, f"dropped {result}, which answers no call"
