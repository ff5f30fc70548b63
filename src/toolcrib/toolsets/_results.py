"""Shortening of long results: a store keeps the whole, where a run offers the tool that reads it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from toolcrib import results as _results
from toolcrib.calls import KeptResult
from toolcrib.hooks import Shortener
from toolcrib.toolsets._entry import ToolEntry


def shortener_of(entry: ToolEntry, toolset: Iterable[ToolEntry]) -> Shortener | None:
    """Return the shortener of a tool's results; None where they are cut.

    Args:
        entry: The tool.
        toolset: The tools among which one reads what was kept.
    """
    store, limit = entry.results, entry.max_result_chars
    if store is None or limit is None:
        return None
    reader = next((candidate for candidate in toolset if candidate.tool is store.reader), None)
    return None if reader is None else _StoredResults(store, reader, limit)


class _StoredResults:
    name = "result store"

    def __init__(self, store: _results.ResultStore, reader: ToolEntry, limit: int) -> None:
        self._store, self._reader, self._limit = store, reader, limit

    async def shorten(self, call: Any, value: Any) -> KeptResult | None:
        """Keep a result that is too long; None for any other, and where the run does not offer to read it."""
        run, reader = call.run, self._reader
        if not run.offers(reader):
            return None
        owner = _results.Owner(run.principal, call.name, call.id)
        return await _results.keep_result(self._store, value, owner, run.channel.reader, self._limit, reader.name)
