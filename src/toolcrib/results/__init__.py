"""Results that are too long for a model: kept in a database, and read by their handle.

Here are the stores, the short text that stands for a stored result, and the tool `read_result`. The pipeline decides
which results are stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib._lazy_names import lazy_names

if TYPE_CHECKING:
    from toolcrib.results._keep import keep_result
    from toolcrib.results._postgres import PostgresResultStore
    from toolcrib.results._read_result import ReadResult, reader_of
    from toolcrib.results._store import (
        RESULT_TABLES,
        MemoryResultStore,
        Owner,
        ResultStore,
        ResultStoreOptions,
        SqliteResultStore,
        StoredResult,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "._keep": "keep_result",
            "._read_result": "ReadResult reader_of",
            "._postgres": "PostgresResultStore",
            "._store": (
                "RESULT_TABLES MemoryResultStore Owner ResultStore ResultStoreOptions SqliteResultStore StoredResult"
            ),
        },
    )

__all__ = [
    "RESULT_TABLES",
    "MemoryResultStore",
    "Owner",
    "PostgresResultStore",
    "ReadResult",
    "ResultStore",
    "ResultStoreOptions",
    "SqliteResultStore",
    "StoredResult",
    "keep_result",
    "reader_of",
]
