"""Numbered lines of text in a table, by the name of what they are about, as journals are kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from toolcrib.database._tables import Execute, StoreTables

_BATCH = 200  # lines in one statement


@dataclass(frozen=True, slots=True)
class LineTable:
    """A table of lines, with a primary key of a name and a number.

    Attributes:
        table: Its name.
        name: The column of the name.
        has_times: Whether a column `at` says when each line was appended, as ISO 8601.
    """

    table: str
    name: str
    has_times: bool = False

    def append(self, execute: Execute, name: str, lines: Sequence[str], number: int | None = None) -> bool:
        """Append lines; return False where other lines have their numbers, and take the transaction back then.

        Lines that are there word for word were appended by an attempt whose answer was lost.

        Args:
            number: The number of the first one; the next when None.
        """
        last = f"SELECT COALESCE(MAX(number), -1) + 1 FROM {self.table} WHERE {self.name} = ?"
        begin: int = execute(last, (name,)).fetchone()[0] if number is None else number
        columns = [self.name, "number", "line", *(["at"] if self.has_times else [])]
        places = f"({', '.join('?' * len(columns))})"
        times = [datetime.now(UTC).isoformat()] if self.has_times else []
        for start in range(0, len(lines), _BATCH):
            batch, first = list(lines[start : start + _BATCH]), begin + start
            sql = f"INSERT INTO {self.table} ({', '.join(columns)}) VALUES {', '.join([places] * len(batch))}"
            values = [value for n, line in enumerate(batch, first) for value in (name, n, line, *times)]
            if execute(f"{sql} ON CONFLICT DO NOTHING", values).rowcount < len(batch):
                where = f"WHERE {self.name} = ? AND number >= ? ORDER BY number LIMIT {len(batch)}"
                found = execute(f"SELECT line FROM {self.table} {where}", (name, first)).fetchall()
                if [line for (line,) in found] != batch:
                    return False
        return True

    def read(self, execute: Execute, name: str) -> list[str]:
        """Return the lines of a name, in order."""
        sql = f"SELECT line FROM {self.table} WHERE {self.name} = ? ORDER BY number"
        return [line for (line,) in execute(sql, (name,)).fetchall()]

    def remove(self, execute: Execute, name: str) -> None:
        """Remove the lines of a name."""
        execute(f"DELETE FROM {self.table} WHERE {self.name} = ?", (name,))


JOURNAL_TABLES: Final = StoreTables(
    "journals",
    (
        (
            """CREATE TABLE IF NOT EXISTS toolcrib_claim_lines (journal TEXT NOT NULL, number BIGINT NOT NULL,
                line TEXT NOT NULL, at TEXT NOT NULL, PRIMARY KEY (journal, number))""",
        ),
    ),
)
"""The table of journals of programs, those of claimed programs among them."""
JOURNAL_LINES: Final = LineTable("toolcrib_claim_lines", "journal", has_times=True)
"""The lines in that table."""
