"""Used amounts of limits, with their times, in a table of a database."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Final

from toolcrib._short_repr import FileRepr
from toolcrib.budgets._limit import Charge, Overrun
from toolcrib.database import Execute, MemoryTables, SqliteTables, StoreTables, Tables
from toolcrib.errors import explain_options

USAGE_TABLES = StoreTables(
    "usage",
    (
        (
            """CREATE TABLE IF NOT EXISTS toolcrib_usage (share TEXT NOT NULL, slot BIGINT NOT NULL,
                amount TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (share, slot))""",
            "CREATE INDEX IF NOT EXISTS toolcrib_usage_by_time ON toolcrib_usage (at)",
        ),
    ),
)
"""The table of the used amounts."""
_SLOTS: Final = 60  # rows of a share, each for a part of its time


class UsageStore:
    """A store of the used amounts of limits, in a table of a database.

    The time of a limit is counted in 60 parts, each of them until its last moment is over: never more is used in any
    such time than the limit allows, and what was used is free again after a 60th more at most.

    Args:
        tables: The tables of a database.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def charge(self, charges: Iterable[Charge], at: float) -> tuple[Overrun, ...]:
        """Add the charges of a call, or none of them where one is over its limit and may not exceed it.

        They are checked and added in one transaction: any number of processes together stay within a limit.

        Args:
            charges: The charges of the call, one for each limit. Those of the same share are added once.
            at: The time, in seconds since 1970.

        Returns:
            The charges that are over their limits.
        """
        return await asyncio.to_thread(self._decide, [*charges], at, write=True)

    async def overruns(self, charges: Iterable[Charge], at: float) -> tuple[Overrun, ...]:
        """Return the charges that would be over their limits at a time; nothing is counted."""
        return await asyncio.to_thread(self._decide, [*charges], at, write=False)

    async def used(self, charge: Charge, at: float) -> Decimal:
        """Return the used amount of a charge's limit at a time."""

        def run() -> Decimal:
            with self._tables.transaction(write=False) as execute:
                return sum(_slots(execute, charge, at).values(), Decimal(0))

        return await asyncio.to_thread(run)

    @explain_options()
    async def prune(self, before: datetime) -> int:
        """Remove the amounts that were last used before a time, and return the number of rows.

        Amounts of limits without a period are removed as well: their shares begin at 0 again.
        """

        def run() -> int:
            with self._tables.transaction(write=True) as execute:
                return execute("DELETE FROM toolcrib_usage WHERE at < ?", (before.timestamp(),)).rowcount

        return await asyncio.to_thread(run)

    def _decide(self, charges: list[Charge], at: float, *, write: bool) -> tuple[Overrun, ...]:
        with self._tables.transaction(write=write) as execute:
            used = [(charge, _slots(execute, charge, at)) for charge in charges]
            over = tuple(filter(None, (_overrun(charge, slots) for charge, slots in used)))
            if write and all(excess.charge.may_exceed for excess in over):
                for charge, slots in {charge.share: (charge, slots) for charge, slots in used}.values():
                    slot = _slot(charge, at)
                    execute(
                        "INSERT INTO toolcrib_usage (share, slot, amount, at) VALUES (?, ?, ?, ?) "
                        "ON CONFLICT (share, slot) DO UPDATE SET amount = excluded.amount, at = excluded.at",
                        (charge.share, slot, str(slots.get(slot, Decimal(0)) + charge.amount), at),
                    )
                    execute("DELETE FROM toolcrib_usage WHERE share = ? AND slot < ?", (charge.share, slot - _SLOTS))
        return over


class MemoryUsageStore(UsageStore):
    """A store in memory, for one process."""

    def __init__(self) -> None:
        super().__init__(MemoryTables(USAGE_TABLES))


class SqliteUsageStore(FileRepr, UsageStore):
    """A store in a SQLite file, for the processes of one machine.

    Args:
        path: The file; it is made when missing. It may be that of approvals and records. Its folder has to be on a
            local disk.

    Raises:
        DatabaseError: The path is not that of a file that can be used, or a newer version of Toolcrib wrote it.
    """

    def __init__(self, path: str | Path) -> None:
        tables = SqliteTables(path, USAGE_TABLES)
        super().__init__(tables)
        self.path = tables.path


def _width(charge: Charge) -> int:
    """Return the microseconds of a slot; 0 where one slot is for ever."""
    return -(-charge.window // _SLOTS)


def _slot(charge: Charge, at: float) -> int:
    width = _width(charge)
    return round(at * 1_000_000) // width if width else 0


def _slots(execute: Execute, charge: Charge, at: float) -> dict[int, Decimal]:
    """Return the used amount in each slot that counts at a time, the oldest first; also of clocks that are ahead."""
    oldest = _slot(charge, at) - _SLOTS
    sql = "SELECT slot, amount FROM toolcrib_usage WHERE share = ? AND slot >= ? ORDER BY slot"
    return {slot: Decimal(amount) for slot, amount in execute(sql, (charge.share, oldest)).fetchall()}


def _overrun(charge: Charge, slots: dict[int, Decimal]) -> Overrun | None:
    """Return the overrun of a charge; None where there is room for it."""
    total = sum(slots.values(), Decimal(0))
    if charge.fits(total):
        return None
    used, free_at = total, None
    if charge.window and charge.fits(Decimal(0)):
        for slot, amount in slots.items():
            total -= amount
            if charge.fits(total):
                free_at = (slot + _SLOTS + 1) * _width(charge) / 1_000_000
                break
    return Overrun(charge, used, free_at)
