"""Results that are too long for a model: kept in a database, and read by their handle.

The stores, what is shown of a kept result, and the tool `read_result`. Which results are kept is decided by the
pipeline; nothing here runs a tool.
"""

from toolcrib.results._keep import keep_result
from toolcrib.results._read_result import ReadResult, reader_of
from toolcrib.results._sqlite import (
    SQLITE_RESULT_TABLES,
    MemoryResultStore,
    ResultStoreOptions,
    SqliteResultStore,
    result_tables,
)
from toolcrib.results._store import Owner, ResultStore, StoredResult

__all__ = [
    "SQLITE_RESULT_TABLES",
    "MemoryResultStore",
    "Owner",
    "ReadResult",
    "ResultStore",
    "ResultStoreOptions",
    "SqliteResultStore",
    "StoredResult",
    "keep_result",
    "reader_of",
    "result_tables",
]
