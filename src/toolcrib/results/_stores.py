"""Results in a SQLite file, which outlives the process and serves several, or in the memory of this process."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TypedDict, Unpack

from toolcrib._short_repr import FileRepr
from toolcrib.database import MemoryTables, SqliteTables
from toolcrib.results._store import RESULT_TABLES, ResultStore


class ResultStoreOptions(TypedDict, total=False):
    """The keywords of every result store; see `ResultStore` for what each means."""

    max_result_chars: int | None
    expires: timedelta
    max_bytes: int
    max_principal_bytes: int


class SqliteResultStore(FileRepr, ResultStore):
    """A result store in a SQLite file, made for its owner alone to read.

    Args:
        path: The file; it is made when missing. It may be that of approvals and records. Its folder has to be on a
            local disk.
        options: Those of `ResultStore`.

    Raises:
        ValueError: The path is not that of a file.
        DatabaseError: A newer version of Toolcrib wrote it.
    """

    def __init__(self, path: str | Path, **options: Unpack[ResultStoreOptions]) -> None:
        tables = SqliteTables(path, RESULT_TABLES)
        super().__init__(tables, **options)
        self.path = tables.path


class MemoryResultStore(ResultStore):
    """A result store in memory, for one process.

    Args:
        options: Those of `ResultStore`; it holds 250 MB unless they say otherwise.
    """

    def __init__(self, **options: Unpack[ResultStoreOptions]) -> None:
        smaller: ResultStoreOptions = {"max_bytes": 250_000_000, "max_principal_bytes": 125_000_000, **options}
        super().__init__(MemoryTables(RESULT_TABLES), **smaller)
