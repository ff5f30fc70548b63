"""Saved programs in a table of a database: in memory, in a SQLite file, or on a Postgres server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from toolcrib._short_repr import FileRepr
from toolcrib.code._saved_program import SavedProgram
from toolcrib.database import Execute, MemoryTables, SqliteTables, StoreTables, Tables

T = TypeVar("T")

PROGRAM_TABLES: Final = StoreTables(
    "saved programs",
    (("CREATE TABLE IF NOT EXISTS toolcrib_saved_programs (name TEXT PRIMARY KEY, program TEXT NOT NULL)",),),
)
"""The table of saved programs."""


class ProgramStore:
    """Saved programs, in a table of a database. Who can write to it can write programs.

    Args:
        tables: The tables of a database.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def add(self, program: SavedProgram, *, replace: bool = False) -> bool:
        """Keep a program; return False, and change nothing, where another has its name and is not to be replaced."""
        mend = "DO UPDATE SET program = excluded.program" if replace else "DO NOTHING"
        sql = f"INSERT INTO toolcrib_saved_programs (name, program) VALUES (?, ?) ON CONFLICT (name) {mend}"
        row = (program.name, json.dumps(program.to_dict()))
        return await self._run(lambda execute: execute(sql, row).rowcount > 0, write=True)

    async def get(self, name: str) -> SavedProgram | None:
        """Return a program; None where no program has this name.

        Raises:
            ValueError: The stored value is not a saved program, or is one of a newer version.
        """
        sql = "SELECT program FROM toolcrib_saved_programs WHERE name = ?"
        row = await self._run(lambda execute: execute(sql, (name,)).fetchone())
        return None if row is None else SavedProgram.from_dict(json.loads(row[0]))

    async def list(self) -> tuple[SavedProgram, ...]:
        """Return all programs, by name; raises ValueError as `get` does."""
        sql = "SELECT program FROM toolcrib_saved_programs ORDER BY name"
        rows = await self._run(lambda execute: execute(sql, ()).fetchall())
        return tuple(SavedProgram.from_dict(json.loads(row[0])) for row in rows)

    async def remove(self, name: str) -> bool:
        """Remove a program, and return whether there was one of this name."""
        sql = "DELETE FROM toolcrib_saved_programs WHERE name = ?"
        return await self._run(lambda execute: execute(sql, (name,)).rowcount > 0, write=True)

    async def _run(self, work: Callable[[Execute], T], *, write: bool = False) -> T:
        def run() -> T:
            with self._tables.transaction(write=write) as execute:
                return work(execute)

        return await asyncio.to_thread(run)


class MemoryProgramStore(ProgramStore):
    """A store in memory, for one process."""

    def __init__(self) -> None:
        super().__init__(MemoryTables(PROGRAM_TABLES))


class SqliteProgramStore(FileRepr, ProgramStore):
    """A store in a SQLite file, for the processes of one machine.

    Args:
        path: The file; it is made when missing. It may be that of approvals and records. Its folder has to be on a
            local disk.

    Raises:
        DatabaseError: The path is not that of a file that can be used, or a newer version of Toolcrib wrote it.
    """

    def __init__(self, path: str | Path) -> None:
        tables = SqliteTables(path, PROGRAM_TABLES)
        super().__init__(tables)
        self.path = tables.path
