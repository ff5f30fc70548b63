"""Reading of a stored result: parts of its text, what a path selects, and places of a word."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, TypeAlias, cast

from toolcrib._arrow import joined_parts
from toolcrib._numbers import count_text
from toolcrib.calls import json_text
from toolcrib.errors import ModelRetry, closest
from toolcrib.results._pieces import members_in, rows_in, table_rows_in
from toolcrib.results._store import ResultStore, StoredResult

_MOST_PARSED = 32_000_000  # characters of one row, or one member of an object, that is read as a value
_AROUND = 80  # characters that are shown on either side of a word that was found
_ROWS, _CHARS = 20, 2_000  # read at a time, where the caller does not say
_MOST_WORD, _MOST_PLACES = 200, 10_000
_AT_ONCE = 1_000  # rows of a table that are made at a time
_SAMPLE = 1_000  # rows that are looked at to say why a path selects nothing
_NOTHING = object()


@dataclass(frozen=True, slots=True)
class ResultQuery:
    """The part of a result to read.

    Attributes:
        most_chars: The most characters of what is read.
        whole: Whether all of it is wanted where there is no `limit`.
    """

    path: str = ""
    search: str = ""
    offset: int = 0
    limit: int | None = None
    most_chars: int = 20_000
    whole: bool = False

    @property
    def is_for_all(self) -> bool:
        """True if all of the result is read as it is."""
        part = self.path or self.search or self.offset
        return self.whole and self.limit is None and not part


@dataclass(frozen=True, slots=True)
class FoundRows:
    """Rows that were read.

    Attributes:
        offset: How many come before them.
        more: Whether others come after them.
        total: How many there are, where it is known.
        texts: The rows as JSON text.
    """

    rows: list[Any]
    texts: list[str]
    offset: int
    more: bool
    total: int | None


@dataclass(frozen=True, slots=True)
class FoundText:
    """A part of a text that was read, or of a value as JSON text.

    Attributes:
        total: How many characters there are.
        is_value: Whether this is all of a value that a path selected.
        value: That value.
    """

    text: str
    offset: int
    total: int
    is_value: bool = False
    value: Any = None


class _Rows:
    """The rows that a query is about, of a stored list or of a value, and what is taken of each.

    Attributes:
        source: The numbers of the rows of a stored list, or rows.
        key: The member that the stored list is; None for a list by itself.
    """

    def __init__(self, source: list[Any] | range, steps: Sequence[Step] = (), key: str | None = None) -> None:
        self.source, self.steps, self.key = source, steps, key


@dataclass(frozen=True, slots=True)
class FoundTable:
    """A table, all of it."""

    table: Any


def read(store: ResultStore, stored: StoredResult, query: ResultQuery) -> FoundRows | FoundText | FoundTable:
    """Read a part of a result; blocks, so it belongs in a worker thread.

    Raises:
        ModelRetry: The query does not fit the result, or cannot be read.
    """
    if len(query.search) > _MOST_WORD:
        raise ModelRetry(f"`search` has {len(query.search)} characters, and may have {_MOST_WORD}")
    steps = parse_path(query.path)
    if stored.form == "table" and query.is_for_all:
        return FoundTable(joined_parts(found.piece.data for found in store.pieces(stored.handle)))
    if stored.form == "text":
        if steps:
            raise ModelRetry(f"the result is a {stored.shape}: read it with `offset` and `limit`, or `search`")
        return _text(store, stored, query)
    if not steps and stored.form == "members":
        return _text(store, stored, query)
    found = _selected(store, stored, steps)
    if isinstance(found, list):
        found = _Rows(cast("list[Any]", found))
    return _page(store, stored, found, query) if isinstance(found, _Rows) else _value(found, query)


# --- what a path selects


def _selected(store: ResultStore, stored: StoredResult, steps: Sequence[Step]) -> Any:
    """Return the rows that steps select, or the one value."""
    key: str | None = None
    if stored.form == "members":
        first, steps = steps[0], steps[1:]
        if not isinstance(first, str):
            raise ModelRetry(f"the result is an {stored.shape}: begin the path with a name, such as $.name")
        if first not in stored.counts:
            return _in_value(_member(store, stored, first), steps)
        key = first
    total = stored.counts.get(key, 0)
    if not steps:
        return _Rows(range(total), (), key)
    step, rest = steps[0], steps[1:]
    if isinstance(step, slice):
        if step.start is not None and step.start >= total > 0:
            raise ModelRetry(f"there is no row {step.start}: there are {total}")
        return _Rows(range(total)[step], rest, key)
    if not isinstance(step, int):
        raise ModelRetry(f"the result is a {stored.shape}: take members of its rows with [*].{step}")
    if not -total <= step < total:
        raise ModelRetry(f"there is no row {step}: there are {total}")
    at = range(total)[step]
    row = next(_rows(store, stored, key, range(at, at + 1)), _NOTHING)
    if row is _NOTHING:
        raise ModelRetry(f"row {at} was removed")
    return _in_value(row, rest)


def _in_value(value: Any, steps: Sequence[Step]) -> Any:
    found = list(select(value, steps))
    if not found:
        require_selected([value], steps)
    return found if selects_several(steps) else found[0]


def _member(store: ResultStore, stored: StoredResult, name: str) -> Any:
    names = [key for key in stored.counts if key is not None]
    for text, _ in _whole_pieces(store, stored, "members", None, 0):
        members = members_in(text)
        if name in members:
            return members[name]
        names += members
    raise ModelRetry(f"the result has no member `{name}`: it is an {stored.shape}. {closest(name, names)}")


def _rows(
    store: ResultStore, stored: StoredResult, key: str | None, numbers: range, word: str = "", column: str | None = None
) -> Iterator[Any]:
    """Yield the rows of a list that have these numbers.

    Args:
        word: Rows of pieces without this text may be left out.
        column: Of the rows of a table this column is enough; None for all.
    """
    if not numbers:
        return
    first, stop = numbers.start, numbers.stop
    number = store.piece_of_row(stored.handle, key, first)
    if stored.form == "table":
        for found in store.pieces(stored.handle, number):
            piece = found.piece
            for start in range(max(first - piece.first, 0), min(piece.count, stop - piece.first), _AT_ONCE):
                rows = table_rows_in(piece, start, min(start + _AT_ONCE, piece.count, stop - piece.first), column)
                if not word or word in json_text(rows).lower():
                    yield from rows
            if piece.first + piece.count >= stop:
                return
        return
    for text, start in _whole_pieces(store, stored, "rows", key, number):
        if start >= stop:
            return
        if not word or word in text.lower():
            yield from rows_in(text)[max(first - start, 0) : stop - start]


def _whole_pieces(
    store: ResultStore, stored: StoredResult, form: str, key: str | None, number: int
) -> Iterator[tuple[str, int]]:
    """Yield the pieces of a form with what they go on with, as text, and the number of their first row."""
    texts, start = list[str](), 0
    for found in store.pieces(stored.handle, number):
        piece = found.piece
        if piece.form == "more":
            if texts:
                texts.append(piece.text)
            if sum(map(len, texts)) > _MOST_PARSED:
                raise ModelRetry(f"one part has more than {_MOST_PARSED:,} characters: a path cannot select in it")
            continue
        if texts:
            yield "".join(texts), start
        texts = [piece.text] if piece.form == form and (form == "members" or piece.key == key) else []
        start = piece.first
        if form == "rows" and not texts:  # the list has ended
            return
    if texts:
        yield "".join(texts), start


# --- pages


def _page(store: ResultStore, stored: StoredResult, rows: _Rows, query: ResultQuery) -> FoundRows:
    """Return the rows that have the text which is searched for, as many as fit."""
    word = _json(query.search)[1:-1].lower()
    column = rows.steps[0] if rows.steps and isinstance(rows.steps[0], str) else None

    def values(source: list[Any] | range, word: str = "") -> Iterator[Any]:
        found = _rows(store, stored, rows.key, source, word, column) if isinstance(source, range) else source
        return (row for value in found for row in select(value, rows.steps))

    if rows.steps and rows.source and next(values(rows.source), _NOTHING) is _NOTHING:
        first = rows.source[:_SAMPLE]
        some = _rows(store, stored, rows.key, first) if isinstance(first, range) else first
        require_selected(list(some), rows.steps)
    if not (word or rows.steps):
        if query.offset > len(rows.source):
            rows_text = count_text(len(rows.source), "row")
            raise ModelRetry(f"`offset` {query.offset} is past the end: the list has {rows_text}")
        return _fitting(values(rows.source[query.offset :]), query, len(rows.source))
    matching = (row for row in values(rows.source, word) if not word or word in _json(row).lower())
    return _fitting(_after(matching, query.offset), query, None)


def _after(found: Iterator[Any], offset: int) -> Iterator[Any]:
    """Skip so many results; raises ModelRetry where there are fewer."""
    passed = sum(1 for _ in islice(found, offset))
    if passed < offset:
        raise ModelRetry(f"`offset` {offset} is past the end: there are {passed}")
    return found


def _json(value: Any) -> str:
    return json_text([value])[1:-1]


def _fitting(matching: Iterator[Any], query: ResultQuery, total: int | None) -> FoundRows:
    rows, texts, chars, more = list[Any](), list[str](), 0, False
    limit = query.limit if query.limit is not None or query.whole else _ROWS
    for row in matching:
        text = _json(row)
        chars += len(text) + 1
        if len(rows) == limit or (rows and chars > query.most_chars):
            more = True
            break
        rows.append(row)
        texts.append(text)
    return FoundRows(rows, texts, query.offset, more, total)


# --- text


def _text(store: ResultStore, stored: StoredResult, query: ResultQuery) -> FoundRows | FoundText:
    if query.search:
        pieces = (found.piece.text for found in store.pieces(stored.handle))
        return _fitting(_after(_places(pieces, query.search), query.offset), query, None)
    if query.offset > stored.chars:
        raise ModelRetry(f"`offset` {query.offset} is past the end: it has {count_text(stored.chars, 'character')}")
    most = stored.chars if query.whole and query.limit is None else query.limit or _CHARS
    start, room = query.offset, min(most, query.most_chars)
    texts = list[str]()
    if start < stored.chars:
        for found in store.pieces(stored.handle, store.piece_at(stored.handle, start)):
            text = found.piece.text[max(start - found.start, 0) :][:room]
            texts.append(text)
            room -= len(text)
            if not room:
                break
    return FoundText("".join(texts), start, stored.chars)


def _value(value: Any, query: ResultQuery) -> FoundRows | FoundText:
    text = json_text(value)
    if query.search:
        return _fitting(_after(_places([text], query.search), query.offset), query, None)
    if query.offset > len(text):
        raise ModelRetry(f"`offset` {query.offset} is past the end: it has {count_text(len(text), 'character')}")
    if query.whole and query.limit is None and not query.offset:
        return FoundText(text, 0, len(text), True, value)
    part = text[query.offset :][: min(query.limit or _CHARS, query.most_chars)]
    return FoundText(part, query.offset, len(text))


def _places(pieces: Iterable[str], word: str) -> Iterator[dict[str, Any]]:
    """Yield where a text has a word, in capitals or not, with what is around it."""
    window, before, at, count = "", 0, 0, 0
    for text in chain(pieces, [None]):
        window += text or ""
        lowered, needle = window.lower(), word.lower()
        if len(lowered) != len(window):  # a few letters are two as small letters
            lowered, needle = window, word
        last = len(window) - len(word) - (0 if text is None else _AROUND)
        while 0 <= (found := lowered.find(needle, at)) <= last:
            around = window[max(found - _AROUND, 0) : found + len(word) + _AROUND]
            yield {"offset": before + found, "text": around}
            at, count = found + len(word), count + 1
            if count == _MOST_PLACES:
                raise ModelRetry(f"more than {_MOST_PLACES:,} places have it: search for more than `{word}`")
        at = max(at, len(window) - len(word) + 1) if found < 0 else found
        cut = max(at - _AROUND, 0)
        window, before, at = window[cut:], before + cut, at - cut


# --- paths

Step: TypeAlias = str | int | slice
"""A member's name, an item's number, or a slice of a list; `*` is the slice of everything."""

_MOST_CHARS, _MOST_STEPS = 500, 20
_LOOKED_AT = 1_000  # objects whose members an error names
_STEP = re.compile(
    r"""\.(?P<name>[^\W\d][\w-]*) | (?P<all>\.\*|\[\*\]) | \[(?P<number>-?[0-9]{1,15})\]
    | \[(?P<start>-?[0-9]{0,15}):(?P<stop>-?[0-9]{0,15})\] | \['(?P<single>[^']*)'\] | \["(?P<double>[^"]*)"\]""",
    re.VERBOSE,
)
_FORMS = "a path is like $.orders[0].items[*].price, $[10:20] or $['a name']"


def parse_path(path: str) -> tuple[Step, ...]:
    """Return the steps of a path.

    Raises:
        ModelRetry: It cannot be read.
    """
    if len(path) > _MOST_CHARS:
        raise ModelRetry(f"the path has {len(path)} characters, and may have {_MOST_CHARS}")
    text = path.strip().removeprefix("$")
    if text and text[0] not in ".[":
        text = f".{text}"
    steps, at = list[Step](), 0
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None or len(steps) == _MOST_STEPS:
            raise ModelRetry(f"the path `{path}` cannot be read from `{text[at : at + 40]}` on: {_FORMS}")
        steps.append(_step(found))
        at = found.end()
    return tuple(steps)


def _step(found: re.Match[str]) -> Step:
    match found.lastgroup:
        case "name" | "single" | "double":
            return found[found.lastgroup]
        case "number":
            return int(found["number"])
        case "all":
            return slice(None)
        case _:
            try:
                return slice(*(int(text) if text else None for text in (found["start"], found["stop"])))
            except ValueError:  # a minus by itself
                raise ModelRetry(f"`{found[0]}` is not a slice: {_FORMS}") from None


def selects_several(steps: Sequence[Step]) -> bool:
    """Return whether steps may select more than one value."""
    return any(isinstance(step, slice) for step in steps)


def require_selected(values: list[Any], steps: Sequence[Step]) -> None:
    """Refuse steps that select nothing because no value has such a member; where they select several, one may be empty.

    Raises:
        ModelRetry: It names the step, and the members that there are.
    """
    for step in steps:
        found = [part for value in values for part in select(value, (step,))]
        if not found and (not selects_several(steps) or any(value not in ([], {}) for value in values)):
            raise ModelRetry(f"the path selects nothing: {_absence(values, step)}")
        values = found


def _absence(values: list[Any], step: Step) -> str:
    objects = [cast("dict[str, Any]", value) for value in values if isinstance(value, dict)]
    if isinstance(step, str):
        names = dict.fromkeys(name for members in objects[:_LOOKED_AT] for name in members)
        return f"there is no member `{step}`. {closest(step, names)}"
    if isinstance(step, slice):
        return "no value there is a list or an object, or its slice is past the end"
    most = max((len(cast("list[Any]", value)) for value in values if isinstance(value, list)), default=None)
    return "there is no list there" if most is None else f"there is no item {step}: a list there has {most}"


def select(value: Any, steps: Sequence[Step]) -> Iterator[Any]:
    """Yield the members of a value that steps select."""
    if not steps:
        yield value
        return
    step, rest = steps[0], steps[1:]
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        found: list[Any] = [members[step]] if isinstance(step, str) and step in members else []
        if step == slice(None):
            found = [*members.values()]
    elif isinstance(value, list) and not isinstance(step, str):
        items = cast("list[Any]", value)
        found = items[step] if isinstance(step, slice) else items[step : step + 1 or None]
    else:
        return
    for part in found:
        yield from select(part, rest)
