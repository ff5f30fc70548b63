"""Journal of a program: its entries, the protocol of what keeps them, and journals in a database."""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeAlias

from toolcrib.calls import Grant, StoredFields, Suspended, outcome_from_dict, versioned
from toolcrib.clock import WaitedTime
from toolcrib.database import JOURNAL_LINES, LineTable, Tables
from toolcrib.errors import PausedProgramError, explain_options
from toolcrib.sandbox import Raised, Reply, Value

EntryKind: TypeAlias = Literal[
    "program", "state", "started", "value", "suspended", "ended", "retried", "cancelled", "done"
]
_RESULTS = ("ended", "value")
_NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One entry of a journal; in the order of the entries, a program ran.

    Attributes:
        kind: Its kind. `program` is the program as it begins or pauses, `state` a further part of its engine's
            state, and `done` its end. A call `started`: it may be executed from now on. It yielded a `value`, is
            `suspended`, has `ended`, was `cancelled` by the program, or is `retried` after an error of its own.
        call_id: The id of the call; empty where it is about the program.
        fields: The data of the entry, by name: the `reply` that it ended with, the `outcome` of one that is suspended,
            the `grant` by which it started, and others of JSON shapes.
    """

    kind: EntryKind
    call_id: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as JSON shapes."""
        call = {"id": self.call_id} if self.call_id else {}
        fields = {name: _FORMS[name][0](value) if name in _FORMS else value for name, value in self.fields.items()}
        return versioned(JournalEntry, {"t": self.kind, **call, **fields})

    def to_json(self) -> str:
        """Return the entry as one line of JSON."""
        return json.dumps(self.to_dict(), separators=(",", ":"))

    @classmethod
    def from_dict(cls, data: object) -> JournalEntry:
        """Return the entry that `to_dict` described.

        Raises:
            NewerForm: A newer version of Toolcrib wrote it.
            ValueError: It is not an entry.
        """
        stored = StoredFields("JournalEntry", data)
        fields = {name: value for name, value in stored.items() if name not in ("t", "id")}
        if stored["t"] == "program" and stored.version == 1:
            fields = {"program": fields}
        fields |= {name: _FORMS[name][1](value) for name, value in fields.items() if name in _FORMS}
        return cls(stored["t"], stored.get("id", ""), fields)


def _reply_to_dict(reply: Reply) -> dict[str, Any]:
    if isinstance(reply, Value):
        tables = [b64encode(table).decode() for table in reply.tables]
        return {"value": reply.value} | ({"tables": tables} if tables else {})
    return {"raised": [reply.type, reply.message]} if isinstance(reply, Raised) else {}


def _reply_from_dict(data: Mapping[str, Any]) -> Reply:
    if "raised" in data:
        return Raised(*data["raised"])
    return Value(StoredFields(Value, data)["value"], tuple(map(b64decode, data.get("tables", ()))))


_FORMS: Mapping[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "reply": (_reply_to_dict, _reply_from_dict),
    "outcome": (Suspended.to_dict, outcome_from_dict),
    "grant": (Grant.to_dict, Grant.from_dict),
}
"""For each field that is not of JSON shapes, the functions that write it and read it."""


class Journal(Protocol):
    """A journal of a program, which is kept while the program runs; used by the event loop that runs the program."""

    @property
    def waited(self) -> float:
        """The seconds so far in which the program waited for the journal; its `wall_time` does not count them."""
        ...

    def append(self, entry: JournalEntry) -> None:
        """Append an entry; this may not wait for anything."""
        ...

    async def flush(self) -> None:
        """Return when every entry so far survives the process; what follows from an entry begins only then."""
        ...

    async def read(self) -> Sequence[JournalEntry]:
        """Return all entries in order, also those of other processes."""
        ...


class StoredJournal(ABC):
    """A journal that is written in the background, as lines of text; a subclass says where to.

    Entries that came while others were written are written together.

    Args:
        stamp: Returns further fields of each entry about a call that started.
        most_chars: The most characters of results; one too many is left out, and its call counts as begun, in doubt.

    Attributes:
        waits: The time in which the program waits for the store.
    """

    def __init__(
        self, *, stamp: Callable[[], Mapping[str, Any]] = lambda: _NOTHING, most_chars: int | None = None
    ) -> None:
        self._stamp, self._most_chars, self._chars = stamp, most_chars, 0
        self._appended = self._stored = 0  # lines that were given, and that the store has
        self._next: list[str] = []
        self._writing: asyncio.Future[None] | None = None
        self._error: BaseException | None = None
        self.waits = WaitedTime()

    @abstractmethod
    async def write_lines(self, number: int, lines: Sequence[str]) -> None:
        """Append lines, the first of them after `number` others; raises an exception where another process writes."""

    @abstractmethod
    async def read_lines(self) -> Sequence[str]:
        """Return all lines."""

    @property
    def waited(self) -> float:
        """The seconds so far in which the program waited for the store."""
        return self.waits.seconds

    def append(self, entry: JournalEntry) -> None:
        """Append an entry.

        Raises:
            Exception: An earlier entry could not be written; no later one will be.
        """
        if self._error is not None:
            raise self._error
        if entry.kind == "started":
            entry = replace(entry, fields={**entry.fields, **self._stamp()})
        line = entry.to_json()
        if entry.kind in _RESULTS and self._most_chars is not None:
            if self._chars + len(line) > self._most_chars:
                return
            self._chars += len(line)
        self._next.append(line)
        self._appended += 1
        if self._writing is None:
            self._begin()

    async def flush(self) -> None:
        """Return when the store has every entry so far; raises an exception as `append` does."""
        mine = self._appended
        with self.waits.counted():
            while self._error is None and self._stored < mine and self._writing is not None:
                await asyncio.wait([self._writing])  # which goes on when this is cancelled
        if self._error is not None:
            raise self._error

    async def read(self) -> Sequence[JournalEntry]:
        """Return all entries in order; those of this process come after them."""
        await self.flush()
        lines = await self.read_lines()
        self._appended = self._stored = len(lines)
        self._chars = sum(map(len, lines))
        return [JournalEntry.from_dict(json.loads(line)) for line in lines]

    async def drain(self) -> None:
        """Return when nothing is being written any more, with or without success."""
        task = asyncio.current_task()
        while self._writing is not None:
            if task is not None and task.cancelling():  # the worker stops: it need not wait for a database that is away
                self._writing.cancel()
            await asyncio.wait([self._writing])

    def _begin(self) -> None:
        lines, self._next = self._next, []
        self._writing = asyncio.ensure_future(self.write_lines(self._stored, lines))
        self._writing.add_done_callback(lambda written: self._end(written, len(lines)))

    def _end(self, written: asyncio.Future[None], number: int) -> None:
        self._writing = None
        self._error = asyncio.CancelledError() if written.cancelled() else written.exception()
        if self._error is None:
            self._stored += number
            if self._next:
                self._begin()


@explain_options()
class SqlJournal(StoredJournal):
    """A journal in a table of a database: in memory, in a SQLite file, or on a Postgres server.

    It holds real arguments and results. One process at a time writes it: another one raises PausedProgramError.

    Args:
        tables: The tables of the database, with `JOURNAL_TABLES`.
        name: The journal's, which has the entries of one program.
        table: The table of its lines.
        stamp: As for `StoredJournal`.
    """

    def __init__(
        self,
        tables: Tables,
        name: str,
        *,
        table: LineTable = JOURNAL_LINES,
        stamp: Callable[[], Mapping[str, Any]] = lambda: _NOTHING,
    ) -> None:
        super().__init__(stamp=stamp)
        self._tables, self._name, self._table = tables, name, table

    async def write_lines(self, number: int, lines: Sequence[str]) -> None:
        """Append lines in one transaction."""

        def write() -> None:
            with self._tables.transaction(write=True) as execute:
                if not self._table.append(execute, self._name, lines, number):
                    raise self.conflict()

        await asyncio.to_thread(write)

    async def read_lines(self) -> Sequence[str]:
        """Return all lines."""

        def read() -> Sequence[str]:
            with self._tables.transaction(write=False) as execute:
                return self._table.read(execute, self._name)

        return await asyncio.to_thread(read)

    def conflict(self) -> BaseException:
        """Return the error for a journal that another process writes."""
        return PausedProgramError("another process writes its journal")
