"""Result stores: results that are too long for a model, kept in a database until they expire."""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
import time
from collections.abc import Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, TypedDict, Unpack

from toolcrib._numbers import require_numbers
from toolcrib._short_repr import FileRepr
from toolcrib.calls import value_class
from toolcrib.database import Execute, MemoryTables, SqliteTables, StoreTables, Tables
from toolcrib.errors import explain_options
from toolcrib.results._pieces import Form, Piece
from toolcrib.results._shape import Shape

_RESULTS, _PIECES = "toolcrib_results", "toolcrib_result_pieces"
_BATCH_BYTES = 4_000_000  # written in one transaction, for which other writers have to wait
_BATCH_PIECES = 8  # read in one
_COLUMNS = "handle, tool, chars, size, form, counts, shape"

RESULT_TABLES = StoreTables(
    "results",
    (
        (
            f"""CREATE TABLE IF NOT EXISTS {_RESULTS} (handle TEXT PRIMARY KEY, identity TEXT UNIQUE,
                principal TEXT NOT NULL, tool TEXT NOT NULL, created DOUBLE PRECISION NOT NULL,
                expires DOUBLE PRECISION NOT NULL, chars BIGINT NOT NULL, size BIGINT NOT NULL,
                form TEXT NOT NULL, counts TEXT NOT NULL, shape TEXT NOT NULL)""",
            f"CREATE INDEX IF NOT EXISTS {_RESULTS}_by_principal ON {_RESULTS} (principal, created)",
            f"CREATE INDEX IF NOT EXISTS {_RESULTS}_by_expiry ON {_RESULTS} (expires)",
            f"""CREATE TABLE IF NOT EXISTS {_PIECES} (handle TEXT NOT NULL, number BIGINT NOT NULL,
                start BIGINT NOT NULL, form TEXT NOT NULL, member TEXT NOT NULL, first BIGINT NOT NULL,
                count BIGINT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (handle, number))""",
        ),
    ),
)
"""The tables of a result store."""


@value_class
class Owner:
    """The call whose result is kept, and the principal on whose behalf it was made."""

    principal: str | None
    tool: str
    call_id: str


@value_class
class StoredResult:
    """A result in a store.

    Attributes:
        chars: How many characters it has; of a table, bytes.
        size: How many bytes it has.
        form: Whether it is a `text`, `rows`, a `table`, or an object of `members`.
        counts: The rows of each list, by the member that it is; None for a list by itself.
        shape: A description of its shape, for a model.
    """

    handle: str
    tool: str
    chars: int
    size: int
    form: Form
    counts: dict[str | None, int]
    shape: str


def size_of(stored: StoredResult) -> str:
    """Return how large a result is, in words."""
    return f"{stored.chars:,} {'bytes' if stored.form == 'table' else 'characters'}"


@value_class
class StoredPiece:
    """A piece of a stored result, with the number of its first character."""

    number: int
    start: int
    piece: Piece


@explain_options()
class ResultStore:
    """Keeps results in tables of a database.

    A handle belongs to the principal of the call, and cannot be guessed. What is read later than it expires, or was
    removed because there was no more room, is as unknown as another principal's.

    Args:
        tables: The tables of a SQLite file, of a Postgres server, or in memory.
        max_result_chars: The most characters of a result that a model is shown, for tools that do not say so
            themselves; None keeps the results of these whole.
        expires: How long a result is kept.
        max_bytes: The bytes of all results; the oldest go first.
        max_principal_bytes: The bytes of one principal's; the oldest go first, and a longer result is not kept.
    """

    def __init__(
        self,
        tables: Tables,
        *,
        max_result_chars: int | None = 20_000,
        expires: timedelta = timedelta(hours=24),
        max_bytes: int = 1_000_000_000,
        max_principal_bytes: int = 250_000_000,
    ) -> None:
        self._tables, self._transaction = tables, tables.transaction
        self.max_result_chars, self.expires = max_result_chars, expires
        self.max_bytes, self.max_principal_bytes = max_bytes, max_principal_bytes
        sizes = ("max_result_chars", "max_bytes", "max_principal_bytes")
        require_numbers("a result store", self, dict.fromkeys(sizes, 1), spans=("expires",))
        self.reader: Any = None  # the tool that reads it, made once: toolsets with one store have one tool

    # --- writing

    def keep(self, pieces: Iterable[Piece], owner: Owner) -> StoredResult | None:
        """Keep a result; blocks, so it belongs in a worker thread.

        The same result of the same call has one handle, however often it is kept.

        Returns:
            What was kept; None where it is too long for the store.
        """
        handle, shape, digest = f"res_{secrets.token_urlsafe(12)}", Shape(), hashlib.sha256()
        principal, form, now = json.dumps(owner.principal), None, time.time()
        with self._transaction(write=True) as execute:
            self._remove_expired(execute)
            values = (handle, principal, owner.tool, now, now + self.expires.total_seconds())
            columns = "handle, principal, tool, created, expires, chars, size, form, counts, shape"
            execute(f"INSERT INTO {_RESULTS} ({columns}) VALUES (?, ?, ?, ?, ?, 0, 0, '', '', '')", values)
        try:
            for batch in _batches(pieces):
                with self._transaction(write=True) as execute:
                    for number, piece, data in batch:
                        row = (handle, number, shape.chars, piece.form, json.dumps(piece.key), piece.first, piece.count)
                        columns = "handle, number, start, form, member, first, count, data"
                        execute(f"INSERT INTO {_PIECES} ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*row, data))
                        form = form or _form_of(piece)
                        shape.note(piece, len(data))
                        digest.update(data)
                    execute(f"UPDATE {_RESULTS} SET size = ? WHERE handle = ?", (shape.size, handle))
                    fits = shape.size <= min(self.max_bytes, self.max_principal_bytes)
                    fits = fits and self._make_room(execute, principal, handle)
                    if not fits:  # in the same transaction: pieces without a result would stay for good
                        _delete(execute, handle)
                if not fits:
                    return None
            name = "\0".join((principal, owner.tool, owner.call_id, digest.hexdigest()))
            identity = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
            stored = StoredResult(handle, owner.tool, shape.chars, shape.size, form or "text", shape.counts, str(shape))
            return self._finish(stored, identity)
        except BaseException:
            self._remove(handle)
            raise

    def _finish(self, stored: StoredResult, identity: str) -> StoredResult | None:
        """Make a result readable; return the one that was kept of the same call before, if there is one."""
        with self._transaction(write=True) as execute:
            same = execute(f"SELECT {_COLUMNS} FROM {_RESULTS} WHERE identity = ?", (identity,)).fetchone()
            if same is not None:
                _delete(execute, stored.handle)
                expires = time.time() + self.expires.total_seconds()
                execute(f"UPDATE {_RESULTS} SET expires = ? WHERE identity = ?", (expires, identity))
                return _result_of(same)
            values = (
                identity,
                stored.chars,
                stored.form,
                json.dumps(list(stored.counts.items())),
                stored.shape,
                stored.handle,
            )
            changes = "identity = ?, chars = ?, form = ?, counts = ?, shape = ?"
            done = execute(f"UPDATE {_RESULTS} SET {changes} WHERE handle = ?", values)
            return stored if done.rowcount else None  # another process needed its room

    def _make_room(self, execute: Execute, principal: str, handle: str) -> bool:
        """Remove the oldest results until the others fit; return whether this one is still there."""
        for where, values, most in (
            ("WHERE principal = ?", (principal,), self.max_principal_bytes),
            ("", (), self.max_bytes),
        ):
            excess = int(execute(f"SELECT COALESCE(SUM(size), 0) FROM {_RESULTS} {where}", values).fetchone()[0]) - most
            if excess <= 0:
                continue
            rows = execute(f"SELECT handle, size FROM {_RESULTS} {where} ORDER BY created", values).fetchall()
            for oldest, size in rows:
                if excess > 0 and oldest != handle:
                    _delete(execute, oldest)
                    excess -= size
        return execute(f"SELECT 1 FROM {_RESULTS} WHERE handle = ?", (handle,)).fetchone() is not None

    def _remove(self, handle: str) -> None:
        with self._transaction(write=True) as execute:
            _delete(execute, handle)

    def _remove_expired(self, execute: Execute) -> int:
        old = execute(f"SELECT handle FROM {_RESULTS} WHERE expires <= ?", (time.time(),)).fetchall()
        for (handle,) in old:
            _delete(execute, handle)
        return len(old)

    async def prune(self) -> int:
        """Remove the results that have expired, and return how many there were; each new result has the same done."""

        def run() -> int:
            with self._transaction(write=True) as execute:
                return self._remove_expired(execute)

        return await asyncio.to_thread(run)

    # --- reading, in a worker thread

    def find(self, handle: str, principal: str | None) -> StoredResult | None:
        """Return a result of a principal; None for any other, also for one that has expired."""
        where = "handle = ? AND principal = ? AND identity IS NOT NULL AND expires > ?"
        with self._transaction(write=False) as execute:
            values = (handle, json.dumps(principal), time.time())
            row = execute(f"SELECT {_COLUMNS} FROM {_RESULTS} WHERE {where}", values).fetchone()
        return None if row is None else _result_of(row)

    def pieces(self, handle: str, first: int = 0) -> Iterator[StoredPiece]:
        """Yield the pieces from a number on, a few in memory at a time; none are left of what was removed meanwhile."""
        while True:
            columns = "number, start, form, member, first, count, data"
            query = f"SELECT {columns} FROM {_PIECES} WHERE handle = ? AND number >= ? ORDER BY number LIMIT ?"
            with self._transaction(write=False) as execute:
                rows = execute(query, (handle, first, _BATCH_PIECES)).fetchall()
            for number, start, form, member, row, count, data in rows:
                rows_of, content = (row, count), bytes(data)
                if form == "table":
                    yield StoredPiece(number, start, Piece("", form, json.loads(member), *rows_of, content))
                else:
                    text = content.decode("utf-8", "surrogatepass")
                    yield StoredPiece(number, start, Piece(text, form, json.loads(member), *rows_of))
            if len(rows) < _BATCH_PIECES:
                return
            first = rows[-1][0] + 1

    def piece_at(self, handle: str, start: int) -> int:
        """Return the number of the piece that has a character."""
        return self._number(handle, "start <= ?", start)

    def piece_of_row(self, handle: str, key: str | None, row: int) -> int:
        """Return the number of the piece that has a row of a list."""
        return self._number(handle, "form IN ('rows', 'table') AND member = ? AND first <= ?", json.dumps(key), row)

    def _number(self, handle: str, where: str, *values: Any) -> int:
        query = f"SELECT COALESCE(MAX(number), 0) FROM {_PIECES} WHERE handle = ? AND {where}"
        with self._transaction(write=False) as execute:
            return int(execute(query, (handle, *values)).fetchone()[0])


def _delete(execute: Execute, handle: str) -> None:
    execute(f"DELETE FROM {_PIECES} WHERE handle = ?", (handle,))
    execute(f"DELETE FROM {_RESULTS} WHERE handle = ?", (handle,))


def _result_of(row: Any) -> StoredResult:
    handle, tool, chars, size, form, counts, shape = row
    return StoredResult(handle, tool, chars, size, form, dict(json.loads(counts)), shape)


def _form_of(piece: Piece) -> Form | None:
    if piece.form == "glue":
        return "rows" if piece.text == "[" else "members"
    return piece.form


def _batches(pieces: Iterable[Piece]) -> Iterator[list[tuple[int, Piece, bytes]]]:
    batch, size = list[tuple[int, Piece, bytes]](), 0
    for number, piece in enumerate(pieces):
        data = piece.data or piece.text.encode("utf-8", "surrogatepass")
        batch.append((number, piece, data))
        size += len(data)
        if size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    yield batch


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
        DatabaseError: The path is not that of a file that can be used, or a newer version of Toolcrib wrote it.
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
