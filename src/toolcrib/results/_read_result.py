"""`read_result`: the tool that reads a result by its handle, and how its toolset comes to have it."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any

from pydantic import Field

from toolcrib.calls import MODEL, ResultReader, cut
from toolcrib.errors import HookError, ModelRetry
from toolcrib.results._read import FoundRows, FoundTable, FoundText, ResultQuery, read
from toolcrib.results._store import ResultStore, StoredResult, size_of
from toolcrib.schema import RunContext
from toolcrib.tools import BaseTool, Tool, as_tool

_MOST_CHARS = 20_000  # of what is read at a time, where the store does not say
_HANDLE_CHARS = 100
_MOST_ROWS = 10**12  # and characters; no result has more


class ReadResult(BaseTool):
    """Read part of a result that was too long to show, by its handle."""

    effect = "none"
    source = None
    max_retries = 100  # reading is trying: a member that is not there, an offset past the end

    def __init__(self, store: ResultStore) -> None:
        self._store = store

    async def call(
        self,
        ctx: RunContext[Any],
        handle: str,
        path: Annotated[str, Field(description="JSONPath, such as $.orders[10:20].id")] = "",
        search: Annotated[str, Field(description="Text to find: gives the rows that have it, or its places")] = "",
        offset: Annotated[int, Field(description="Rows to skip, or characters of a text")] = 0,
        limit: int = 0,
    ) -> Any:
        reader: ResultReader = MODEL if ctx.run is None else ctx.run.channel.reader
        principal = None if ctx.run is None else ctx.run.principal
        is_for_program = reader.value_chars is not None
        if offset < 0 or limit < 0:
            raise ModelRetry(
                "`offset` and `limit` are at least 0; the last rows of a list are those of the path $[-20:]"
            )
        query = ResultQuery(
            path,
            search,
            offset=min(offset, _MOST_ROWS),
            limit=min(limit, _MOST_ROWS) or None,
            most_chars=reader.value_chars or self._store.max_result_chars or _MOST_CHARS,
            whole=is_for_program,
        )
        try:
            stored, found = await asyncio.to_thread(self._read, handle, principal, query)
        except ModelRetry:
            raise
        except BaseException as error:  # the store is the host's code
            raise HookError.of(ctx.tool_name, "result store", self._store, error)  # noqa: B904 -- it has it as its cause
        if isinstance(found, FoundTable):
            return found.table
        return _value_of(stored, found, query) if is_for_program else _page_of(found, query.most_chars)

    def _read(
        self, handle: str, principal: str | None, query: ResultQuery
    ) -> tuple[StoredResult, FoundRows | FoundText | FoundTable]:
        handle = handle[:_HANDLE_CHARS]
        stored = self._store.find(handle, principal)
        if stored is not None:
            try:
                found = read(self._store, stored, query)
            except (ModelRetry, ValueError):  # what is left of a result may be no JSON
                if self._store.find(handle, principal) is not None:
                    raise
            else:
                if self._store.find(handle, principal) is not None:
                    return stored, found
        raise ModelRetry("there is no result with this handle: it has expired or was removed; call the tool again")


def reader_of(store: ResultStore) -> Tool[..., Any]:
    """Return the tool that reads a store: one, however many toolsets keep their results in it."""
    if store.reader is None:
        store.reader = as_tool(ReadResult(store))
    return store.reader


def _page_of(found: FoundRows | FoundText, most: int) -> str:
    """Return a page as text, with the position of the next page."""
    if isinstance(found, FoundText):
        end = found.offset + len(found.text)
        more = f"; next: offset={end}" if end < found.total else ""
        return f"[characters {found.offset}:{end} of {found.total}{more}]\n{found.text}"
    end, text = found.offset + len(found.rows), "\n".join(found.texts)
    total = "" if found.total is None else f" of {found.total}"
    more = f"; next: offset={end}" if found.more else "; no more"
    long = "; this row is cut, read it by its path" if len(text) > most else ""
    return f"[rows {found.offset}:{end}{total}{more}{long}]\n{cut(text, most)}"


def _value_of(stored: StoredResult, found: FoundRows | FoundText, query: ResultQuery) -> Any:
    """Return a page as a value, for a program.

    Raises:
        ModelRetry: It is too long for one.
    """
    if isinstance(found, FoundRows):
        chars = sum(map(len, found.texts))
        if chars <= query.most_chars and not (found.more and len(found.rows) != query.limit):
            return found.rows
    elif len(found.text) <= query.most_chars:
        if query.limit is not None or query.offset:
            return found.text
        if len(found.text) == found.total:
            whole_object = stored.form == "members" and not found.is_value
            return json.loads(found.text) if whole_object else found.value if found.is_value else found.text
    raise ModelRetry(
        f"it is too long for a program, which takes {query.most_chars:,} characters at a time: it is a {stored.shape} "
        f"of {size_of(stored)}. Read parts of it with offset and limit, path or search"
    )
