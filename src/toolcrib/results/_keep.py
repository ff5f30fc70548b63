"""Keeping of a result that is too long for its reader, and what the reader is shown in its place."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

from toolcrib._arrow import is_shown_whole, is_table, table_summary
from toolcrib.calls import KeptResult, Media, ResultReader, has_blocks, json_text, result_words
from toolcrib.errors import MissingExtraError, ResultNotSerializable
from toolcrib.results._pieces import Piece, pieces_of, table_rows_in
from toolcrib.results._shape import beginning, weight_of
from toolcrib.results._store import Owner, ResultStore, StoredResult, size_of

_SHOWN = 320  # of a long result: what a model is shown of it takes 300 tokens at most
_ENDS = 1_000  # characters that are remembered of the beginning and the end
_ROWS = 10  # of a table, in place of these
_log = logging.getLogger("toolcrib.results")


async def keep_result(
    store: ResultStore, value: object, owner: Owner, reader: ResultReader, limit: int, tool: str
) -> KeptResult | None:
    """Keep a result that is too long; None for one that is not, or cannot be kept, which is cut as without a store.

    Args:
        limit: The most characters that a model is shown; a program takes what it takes.
        tool: The name of the tool by which the reader reads it.
    """
    most = limit if reader.value_chars is None else reader.value_chars

    def blocks(part: object) -> str | None:
        """Return the text of a part that is shown beside the text."""
        return "" if isinstance(part, Media) else reader.blocks(part) if reader.blocks is not None else None

    in_blocks = has_blocks(value, blocks)
    try:
        content = result_words(value, owner.tool, blocks) if in_blocks else value
        if not _is_longer(content, most, owner.tool, for_program=reader.value_chars is not None):
            return None
        return await asyncio.to_thread(_keep, store, content, owner, reader, tool, in_blocks)
    except (ResultNotSerializable, MissingExtraError):  # the outcome says so
        return None
    except Exception:  # a database's: the tool has run, and its result is not lost for it
        _log.exception("%s: its result is too long, and could not be kept; it is cut", owner.tool)
        return None


def _is_longer(value: object, most: int, tool: str, *, for_program: bool) -> bool:
    """Return whether a value has more text than is shown; of a table, whether it has more than is shown."""
    if isinstance(value, str):
        return len(value) > most
    if is_table(value):
        summary = table_summary(value)  # a program is given the table itself
        return not for_program and not (is_shown_whole(summary) and len(json_text(summary)) <= most)
    chars = 0
    for piece in pieces_of(value, tool, []):
        chars += len(piece.text)
        if chars > most:
            return True
    return False


def _keep(
    store: ResultStore, value: object, owner: Owner, reader: ResultReader, tool: str, in_blocks: bool
) -> KeptResult | None:
    media, ends = list[Media](), _Ends()
    stored = store.keep(ends.watch(pieces_of(value, owner.tool, media)), owner)
    if stored is None:
        _log.warning("%s: its result is too long for the result store, and is cut", owner.tool)
        return None
    text = _for_model(stored, ends, tool) if reader.value_chars is None else _for_program(stored, tool)
    return KeptResult(stored.handle, text, stored.chars, in_blocks or bool(media))


class _Ends:
    """The beginning and the end of a text that is written in pieces."""

    def __init__(self) -> None:
        self.head = self.tail = ""

    def watch(self, pieces: Iterator[Piece]) -> Iterator[Piece]:
        """Yield the pieces as they are."""
        for piece in pieces:
            first = last = piece.text
            if piece.form == "table":
                first = "" if self.head else json_text(table_rows_in(piece, 0, _ROWS))
                last = json_text(table_rows_in(piece, max(piece.count - _ROWS, 0)))
            if len(self.head) < _ENDS:
                self.head += first[:_ENDS]
            self.tail = (self.tail + last[-_ENDS:])[-_ENDS:]
            yield piece


def _for_model(stored: StoredResult, ends: _Ends, tool: str) -> str:
    room = _SHOWN - weight_of(stored.shape)
    head, tail = beginning(ends.head, room * 3 // 4), beginning(ends.tail[::-1], room // 4)[::-1]
    return (
        f"[Too long to show: {stored.shape}, {size_of(stored)}. Head and tail follow. "
        f'Read parts of it with {tool}(handle="{stored.handle}")]\n{head}\n[...]\n{tail}'
    )


def _for_program(stored: StoredResult, tool: str) -> str:
    return (
        f"the result is too long for a program: {stored.shape}, {size_of(stored)}. Read parts of it with "
        f'{tool}(handle="{stored.handle}"), with offset and limit, path or search'
    )
