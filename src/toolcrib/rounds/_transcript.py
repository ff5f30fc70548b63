"""Transcripts: a provider's message list that knows its format, and can be checked and repaired."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from toolcrib.formats import PROVIDERS, ProviderFormat, TranscriptProblem, WireFormat, json_shape

__all__ = ["Known", "Transcript", "ids_in", "known_of", "shapes", "taken_ids"]


class Known:
    """How much of a transcript was found to be in order, and need not be read again.

    Attributes:
        format: The rules that it was read by.
        items: The items, as they stood in the list.
        ids: The ids of the calls in them.
    """

    __slots__ = ("format", "ids", "items")

    def __init__(self) -> None:
        self.format: ProviderFormat | None = None
        self.items: list[Any] = []
        self.ids: set[str] = set()

    def __reduce__(self) -> tuple[Any, ...]:
        return (Known, ())  # a copy, or another process, reads for itself

    def rest_of(self, transcript: Sequence[Any], format: ProviderFormat) -> Sequence[Any]:
        """Return the items that were not read yet: all of them, when the host changed the list where it was read."""
        size = len(self.items)
        if self.format is not format or not _same(transcript[:size], self.items):
            self.format, self.items, self.ids, size = format, [], set(), 0
        return transcript[size:] if size else transcript

    def add(self, items: Iterable[Any], ids: Iterable[str]) -> None:
        """Note that these items follow, and that all is in order up to their end."""
        self.items.extend(items)
        self.ids.update(ids)


class Transcript(list[Any]):
    """A provider's message list: a list of its items, with the rules that the provider has for tool results.

    It may be edited like any list. What was committed to it is not read again at the next commit, unless the list was
    changed there; an edit inside an item that was committed is found by `check`.

    Args:
        items: What it holds: dicts, or objects of the provider's SDK.
        format: The wire format.
    """

    def __init__(self, items: Iterable[Any] = (), format: WireFormat = "openai") -> None:
        super().__init__(items)
        self.format: WireFormat = format
        self._known = Known()

    def check(self) -> list[TranscriptProblem]:
        """Return what the provider would refuse, in order; empty when it is valid. All of it is read.

        Calls and results in another provider's format are misplaced, too.
        """
        items = shapes(self)
        found = [*PROVIDERS[self.format].check(items), *_foreign_items(items, self.format)]
        return sorted(found, key=lambda problem: problem.index)

    def repair(self) -> list[str]:
        """Mend the list where it is, and return what was done, a sentence each; see `ProviderFormat.repair`.

        Raises:
            ValueError: There are calls or results in another provider's format in it; it is as it was.
        """
        items = shapes(self)
        foreign = next(_foreign_items(items, self.format), None)
        if foreign is not None:
            raise ValueError(foreign.message)
        mended, done = PROVIDERS[self.format].repair(items)
        if done:
            self[:] = mended
        return done

    def copy(self) -> Transcript:
        """Return another list of the same items."""
        return Transcript(self, self.format)


def known_of(transcript: object) -> Known:
    """Return what is known of a message list; nothing of one that is no Transcript."""
    if not isinstance(transcript, Transcript):
        return Known()
    return transcript._known  # pyright: ignore[reportPrivateUsage] -- this module's own; a host has no use for it


def shapes(items: Sequence[Any]) -> list[Mapping[str, Any]]:
    """Return the items of a message list as JSON shapes."""
    return [json_shape(item) for item in items]


def taken_ids(format: ProviderFormat, transcript: Sequence[Any]) -> Collection[str]:
    """Return the ids of the calls in a message list."""
    if not transcript:
        return ()
    known = known_of(transcript)
    rest = known.rest_of(transcript, format)
    found = ids_in(format, rest)
    return known.ids.union(found) if found else known.ids


def ids_in(format: ProviderFormat, items: Sequence[Any]) -> list[str]:
    """Return the ids of the calls in items of a message list."""
    return [id for item in items for id in format.call_ids(json_shape(item))]


def _foreign_items(items: Sequence[Mapping[str, Any]], name: WireFormat) -> Iterator[TranscriptProblem]:
    """Yield the items with calls or results that another provider's rules read, and this one's do not."""
    own = PROVIDERS[name]
    others = [(title, rules) for title, rules in PROVIDERS.items() if rules is not own]
    for index, item in enumerate(items):
        if _holds(own, item):
            continue
        other = next((title for title, rules in others if _holds(rules, item)), None)
        if other is not None:
            message = f"item {index} has calls or results in the format `{other}`, and the transcript is in `{name}`"
            yield TranscriptProblem(index, "", "misplaced", message)


def _holds(rules: ProviderFormat, item: Mapping[str, Any]) -> bool:
    return bool(rules.call_keys(item)) or rules.result_keys(item) != []


def _same(one: Sequence[Any], other: list[Any]) -> bool:
    """Return whether a list has these items; ones that are the same objects are not compared."""
    try:
        return bool(one == other)
    except Exception:  # the __eq__ of an SDK's object; what cannot be compared is read again
        return False
