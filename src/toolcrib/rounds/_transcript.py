"""Transcripts: a provider's message list that knows its format, and can be checked and repaired."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from toolcrib._short_repr import kind_of
from toolcrib.errors import explain_options
from toolcrib.formats import (
    PROVIDERS,
    Item,
    ProviderFormat,
    TranscriptProblem,
    WireCall,
    WireFormat,
    json_shape,
    switched,
)


class ReadItems:
    """The first items of a list, which were read, and are not read again as long as they stand there.

    Attributes:
        items: The items.
    """

    __slots__ = ("items",)

    def __init__(self) -> None:
        self.items: list[Any] = []

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), ())  # a copy, or another process, reads for itself

    def rest_of(self, transcript: Sequence[Any]) -> Sequence[Any]:
        """Return the items that were not read yet: all of them, when the host changed the list where it was read."""
        size = len(self.items)
        if size and not _same(transcript[:size], self.items):
            self.forget()
            return transcript
        return transcript[size:] if size else transcript

    def forget(self) -> None:
        """Read all of the list again."""
        self.items = []


class Known(ReadItems):
    """The part of a transcript that was found to be in order.

    Attributes:
        format: The rules that it was read by.
        ids: The ids of the calls in it.
    """

    __slots__ = ("format", "ids")

    def __init__(self) -> None:
        super().__init__()
        self.format: ProviderFormat | None = None
        self.ids: set[str] = set()

    def rest_by(self, format: ProviderFormat, transcript: Sequence[Any]) -> Sequence[Any]:
        """Return the items of `rest_of` by the rules of a format; items read by another format count as unread."""
        if self.format is not format:
            self.forget()
            self.format = format
        return self.rest_of(transcript)

    def forget(self) -> None:
        self.items, self.ids = [], set()

    def add(self, items: Iterable[Any], ids: Iterable[str]) -> None:
        """Add these items, and mark all up to their end as in order."""
        self.items.extend(items)
        self.ids.update(ids)


class SentItems(ReadItems):
    """The items of a transcript as they are sent: an SDK's object is sent as what it was made of."""

    __slots__ = ("objects",)

    def __init__(self) -> None:
        super().__init__()
        self.objects: list[int] = []

    def forget(self) -> None:
        self.items, self.objects = [], []

    def messages(self, transcript: Sequence[Any]) -> tuple[Item, ...]:
        """Return the items as JSON shapes; a dict is itself, so that what was said long ago is not copied each time."""
        for item in self.rest_of(transcript):
            if type(item) is not dict:
                self.objects.append(len(self.items))
            self.items.append(item)
        if not self.objects:
            return tuple(transcript)
        items = [*transcript]
        for at in self.objects:
            items[at] = dict(json_shape(items[at]))
        return tuple(items)


class Recalled(ReadItems):
    """The items of a transcript that a run has read.

    Attributes:
        reader: The run.
        calls: The calls in them, by what their results name.
    """

    __slots__ = ("calls", "reader")

    def __init__(self) -> None:
        super().__init__()
        self.reader: object = None
        self.calls: dict[str, WireCall] = {}

    def forget(self) -> None:
        self.items, self.calls = [], {}

    def rest_for(self, reader: object, transcript: Sequence[Any]) -> Sequence[Any]:
        """Return the items that a run has not read yet, and count them as read."""
        if self.reader is not reader:
            self.forget()
            self.reader = reader
        rest = [*self.rest_of(transcript)]
        self.items.extend(rest)
        return rest


@explain_options()
class Transcript(list[Any]):
    """A provider's message list: a list of its items, with the rules that the provider has for tool results.

    It may be edited like any list. What was committed to it is not read again at the next commit, unless the list was
    changed there; an edit inside an item that was committed is found by `check`.

    Args:
        items: Its items: dicts, or objects of the provider's SDK.
        format: The wire format.

    Raises:
        TypeError: The items are one message, a text or no list.
    """

    def __init__(self, items: Iterable[Any] = (), format: WireFormat = "openai") -> None:
        if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
            raise TypeError(f"a transcript is a list of messages, and this is {kind_of(cast('object', items))}")
        super().__init__(items)
        self.format: WireFormat = format
        self._known, self._recalled = Known(), Recalled()

    def check(self) -> list[TranscriptProblem]:
        """Return the faults that the provider refuses, in order; empty when it is valid. All of it is read.

        Calls and results in another provider's format are misplaced, too.
        """
        items = shapes(self)
        found = [*_foreign_items(items, self.format), *PROVIDERS[self.format].check(items)]
        return sorted(found, key=lambda problem: problem.index)

    def repair(self) -> list[str]:
        """Repair the list where it is, and return what was done, a sentence each; see `ProviderFormat.repair`.

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

    def switched(self, format: WireFormat, *, drop: bool = False) -> tuple[Transcript, tuple[str, ...]]:
        """Return the transcript in another format, and what is not in it, a sentence each.

        Each word, each call and its result are in it, with new ids, and media where the format takes them. Thoughts,
        citations and marks of a cache are dropped; in the place of media in a result stands a line where the format
        takes none.

        Args:
            format: The other format.
            drop: Whether to drop what the format does not take: media of the user's, parts of a provider's own tools,
                system messages where the format takes instructions beside the transcript. It is an error otherwise.

        Raises:
            ValueError: `check` finds something, or there is a part that the format does not take: it is named.
        """
        result = switched(self, PROVIDERS[self.format], PROVIDERS[format], drop=drop)
        return Transcript(result.items, format), result.dropped

    def copy(self) -> Transcript:
        """Return another list of the same items."""
        return Transcript(self, self.format)


def known_of(transcript: object) -> Known:
    """Return the known state of a message list; empty for one that is not a Transcript."""
    if not isinstance(transcript, Transcript):
        return Known()
    return transcript._known  # pyright: ignore[reportPrivateUsage] -- this module's own; a host has no use for it


def recalled_of(transcript: object) -> Recalled:
    """Return how much of a message list a run has read; nothing of one that is not a Transcript."""
    if not isinstance(transcript, Transcript):
        return Recalled()
    return transcript._recalled  # pyright: ignore[reportPrivateUsage] -- as above


def shapes(items: Sequence[Any]) -> list[Mapping[str, Any]]:
    """Return the items of a message list as JSON shapes."""
    return [json_shape(item) for item in items]


def taken_ids(format: ProviderFormat, transcript: Sequence[Any]) -> Collection[str]:
    """Return the ids of the calls in a message list."""
    if not transcript:
        return ()
    known = known_of(transcript)
    rest = known.rest_by(format, transcript)
    found = ids_in(format, rest)
    return known.ids.union(found) if found else known.ids


def ids_in(format: ProviderFormat, items: Sequence[Any]) -> list[str]:
    """Return the ids of the calls in items of a message list."""
    return [id for item in items for id in format.call_ids(json_shape(item))]


def _foreign_items(items: Sequence[Mapping[str, Any]], name: WireFormat) -> Iterator[TranscriptProblem]:
    """Yield the items with calls or results that another provider's rules read, and this one's do not."""
    expected = PROVIDERS[name]
    others = [(title, rules) for title, rules in PROVIDERS.items() if rules is not expected]
    for index, item in enumerate(items):
        if _names(expected, item):
            continue
        found = [title for title, rules in others if _names(rules, item)]
        found = found or [title for title, rules in others if not _holds(expected, item) and _holds(rules, item)]
        for other in found[:1]:
            message = f"item {index} has calls or results in the format `{other}`, and the transcript is in `{name}`"
            yield TranscriptProblem(index, "", "misplaced", message)


def _holds(rules: ProviderFormat, item: Mapping[str, Any]) -> bool:
    return bool(rules.call_keys(item)) or rules.result_keys(item) != []


def _names(rules: ProviderFormat, item: Mapping[str, Any]) -> bool:
    """Return whether there are calls or results in an item, and each has what names it."""
    keys = [*rules.call_keys(item), *(rules.result_keys(item) or ())]
    return bool(keys) and all(keys)


def _same(before: Sequence[Any], other: list[Any]) -> bool:
    """Return whether a list has these items; ones that are the same objects are not compared."""
    try:
        return bool(before == other)
    except Exception:  # the __eq__ of an SDK's object; what cannot be compared is read again
        return False
