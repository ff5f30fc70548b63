"""Switching of a transcript to another format: read to neutral turns, and written again by the other format's rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from toolcrib.calls import Media, value_class
from toolcrib.formats._call_ids import seed_of, unused_id
from toolcrib.formats._format import ProviderFormat
from toolcrib.formats._json_reading import json_shape, object_or_empty
from toolcrib.formats._neutral_parts import ForeignPart, NeutralPart, parts_in
from toolcrib.formats._result_pairing import CallSpot
from toolcrib.formats._wire import Item, WireCall, WireResult

_Speaker: TypeAlias = Literal["user", "assistant", "system"]
_MODEL_ROLES = frozenset({"assistant", "model"})
_SYSTEM_ROLES = frozenset({"system", "developer"})
_FUNCTIONS = frozenset({"function", "function_call"})  # kinds of calls that have a name and an object of arguments


@value_class
class SwitchedItems:
    """A transcript in another format.

    Attributes:
        items: Its items.
        dropped: The parts that are not in them, a sentence each.
    """

    items: list[Item]
    dropped: tuple[str, ...] = ()


@dataclass(slots=True)
class _Turn:
    """The words of one speaker, with the calls that were made there and their results."""

    index: int
    speaker: _Speaker
    parts: list[str | Media] = field(default_factory=list[str | Media])
    answers: list[WireResult] = field(default_factory=list[WireResult])  # each has its call


def switched(
    items: Sequence[Any], source: ProviderFormat, target: ProviderFormat, *, drop: bool = False
) -> SwitchedItems:
    """Return a transcript in another format: each word, call and result, and the media that the format takes.

    Thoughts, citations and marks of a cache are dropped, as no provider takes those of another; media in a result give
    way to a placeholder where the format takes none. A result stands at its call, and calls have new ids. What the
    model of one provider said in neighbouring items is one turn.

    Args:
        items: The transcript: it passes the `check` of its format.
        source: Its format.
        target: The other one.
        drop: Whether to drop what the format does not take: media of the user's, media that a model made, calls and
            results of a provider's own tools, and calls that bring no arguments by name. It is an error otherwise.

    Raises:
        ValueError: The transcript breaks its own provider's rules, or has a part that the format does not take.
    """
    shapes = [json_shape(item) for item in items]
    if problems := source.check(shapes):
        raise ValueError(f"the transcript is not in order: {problems[0]}; `Transcript.repair` mends it")
    reader = _Reader(source, target)
    writer = _Writer(target, reader)
    for turn in reader.turns(shapes):
        writer.write(turn)
    if reader.refused and not drop:
        mend = "give `drop=True` to leave it out"
        raise ValueError(f"{target.title} does not take {'; '.join(dict.fromkeys(reader.refused))}: {mend}")
    mended, done = target.repair(writer.items)
    dropped = [f"{noun} was left out" for noun in (*reader.dropped, *reader.refused)]
    return SwitchedItems(mended, (*dict.fromkeys(dropped), *done))


class _Reader:
    """A reader of transcripts in one format, who notes what another one does not take.

    Attributes:
        dropped: The parts that are dropped in any case, and where.
        refused: The parts that are dropped where the host says so, and where.
    """

    def __init__(self, source: ProviderFormat, target: ProviderFormat) -> None:
        self._source, self._target = source, target
        self.dropped, self.refused = list[str](), list[str]()

    def turns(self, items: Sequence[Mapping[str, Any]]) -> list[_Turn]:
        """Return the turns of a transcript that is in order."""
        asked: dict[int, list[CallSpot]] = {}
        for spot in self._source.paired(items).calls:
            asked.setdefault(spot.index, []).append(spot)
        turns, goes_on = list[_Turn](), False
        for index, item in enumerate(items):
            has_results = bool(self._source.raw_results(item))
            goes_on = goes_on and not has_results
            rest = self._source.rest_of(item) if has_results else item
            if rest is None:
                continue
            speaker = _speaker(rest, is_asking=index in asked)
            parts = list(self._portable_parts(index, parts_in(rest), shows=speaker == "user"))
            answers = [self._answer(spot) for spot in asked.get(index, ()) if self._is_taken(spot)]
            if not parts and not answers:
                continue
            if not (goes_on and turns[-1].speaker == speaker == "assistant"):
                turns.append(_Turn(index, speaker))
            turns[-1].parts += parts
            turns[-1].answers += answers
            goes_on = True
        return turns

    def _is_taken(self, spot: CallSpot) -> bool:
        if spot.call.kind in _FUNCTIONS:
            return True
        self.refused.append(f"the call of `{spot.call.name}` (`{spot.call.kind}`) of item {spot.index}")
        return False

    def _answer(self, spot: CallSpot) -> WireResult:
        """Return the result of a call, which is there, as the transcript is in order."""
        assert spot.result is not None
        [item] = self._source.pack([spot.result.raw])
        [result] = self._source.results_of(item)
        result = replace(result, call=WireCall(spot.call.id, spot.call.name, spot.call.arguments))
        raw = spot.result.raw
        inner = object_or_empty(raw.get("functionResponse") or raw.get("toolResult")) or raw
        parts = list(self._portable_parts(spot.result.index, parts_in({**inner, "type": ""}), shows=True))
        if not any(isinstance(part, Media) for part in parts):
            return result
        if not any(isinstance(part, str) for part in parts) and result.content:
            parts = [result.content, *parts]
        return replace(result, content="\n".join(map(str, parts)), parts=tuple(parts))

    def _portable_parts(self, index: int, parts: Iterator[NeutralPart], *, shows: bool) -> Iterator[str | Media]:
        """Yield the parts of an item that are written again; media only of one that `shows` them to a model."""
        for part in parts:
            if isinstance(part, ForeignPart):
                (self.dropped if part.is_mark else self.refused).append(f"{part.noun} of item {index}")
            elif isinstance(part, Media) and not shows:
                self.refused.append(f"{part} of the model's, in item {index}")
            else:
                yield part


class _Writer:
    """A writer of turns in one format.

    Attributes:
        items: The items that were written.
    """

    def __init__(self, target: ProviderFormat, notes: _Reader) -> None:
        self._target, self._notes = target, notes
        self.items = list[Item]()
        self._ids = set[str]()

    def write(self, turn: _Turn) -> None:
        """Write a turn, and after it the results of its calls."""
        text = "\n".join(part for part in turn.parts if isinstance(part, str))
        if turn.speaker == "user":
            self._add(self._user(turn))
        elif turn.speaker == "system":
            self._add(message := self._target.system(text))
            if not message:
                self._notes.refused.append(f"a system message, which is item {turn.index}, in a transcript")
        elif turn.answers:
            answers = [self._named(answer, at) for at, answer in enumerate(turn.answers)]
            self._add(self._target.asking(text, [answer.call for answer in answers]))
            self._add(self._target.answer(answers))
        else:
            self._add(self._target.assistant(text))

    def _user(self, turn: _Turn) -> list[Item]:
        refused = [part for part in turn.parts if isinstance(part, Media) and not self._target.takes_media(part)]
        self._notes.refused += [f"{part} of item {turn.index}" for part in refused]
        parts = [part for part in turn.parts if part not in refused]
        if any(isinstance(part, Media) for part in parts):
            return self._target.user_message(parts)
        return self._target.user("\n".join(map(str, parts))) if parts else []

    def _named(self, answer: WireResult, at: int) -> WireResult:
        """Return a result whose call has an id, and a name, that the provider takes."""
        call, problems = answer.call, list[str]()
        seed = seed_of([call.name, call.arguments, len(self.items)], at)
        id = unused_id(seed, self._target.make_id, self._ids)  # in the shape of the provider's own
        self._ids.add(id)
        name = self._target.called(call.name, problems)
        self._notes.dropped += [f"the name `{call.name}`, which became `{name}`," for _ in problems]
        return replace(answer, call=replace(call, id=id, name=name))

    def _add(self, items: Sequence[Item]) -> None:
        for item in items:
            self._target.add_item(self.items, item)


def _speaker(item: Mapping[str, Any], *, is_asking: bool) -> _Speaker:
    role = item.get("role")
    if role in _SYSTEM_ROLES:
        return "system"
    if item.get("type") == "user_input":
        return "user"
    return "assistant" if is_asking or role in _MODEL_ROLES or (role is None and "type" in item) else "user"
