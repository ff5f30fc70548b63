"""Budgets: limits of the number of calls, and of the cost of tools and models, in a period; counted across processes.

A `Budgets` is a gate of a toolset or a run. The stores count in memory, in a SQLite file, or on a Postgres server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib._lazy_names import lazy_names

if TYPE_CHECKING:
    from toolcrib.budgets._gate import Budgets
    from toolcrib.budgets._limit import Charge, Limit, Overrun, Share, TokenPrice
    from toolcrib.budgets._postgres import PostgresUsageStore
    from toolcrib.budgets._store import USAGE_TABLES, MemoryUsageStore, SqliteUsageStore, UsageStore
    from toolcrib.tools import Cost
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "._gate": "Budgets",
            "._limit": "Charge Limit Overrun Share TokenPrice",
            "._postgres": "PostgresUsageStore",
            "._store": "USAGE_TABLES MemoryUsageStore SqliteUsageStore UsageStore",
            "toolcrib.tools": "Cost",
        },
    )

__all__ = [
    "USAGE_TABLES",
    "Budgets",
    "Charge",
    "Cost",
    "Limit",
    "MemoryUsageStore",
    "Overrun",
    "PostgresUsageStore",
    "Share",
    "SqliteUsageStore",
    "TokenPrice",
    "UsageStore",
]
