"""DBOS: turns and programs that outlive their process, on a SQLite file or Postgres. The extra `durable`."""

from __future__ import annotations

from toolcrib.errors import MissingExtraError

try:
    import dbos as _dbos
except ModuleNotFoundError as error:
    if error.name != "dbos":
        raise
    raise MissingExtraError("Durable work", "durable") from error

from toolcrib.adapters.dbos._postgres_store import PostgresApprovalStore
from toolcrib.adapters.dbos._database import DEFAULT_DATABASE, Database
from toolcrib.adapters.dbos._sink import PostgresSink, postgres_events

__all__ = ["DEFAULT_DATABASE", "Database", "PostgresApprovalStore", "PostgresSink", "postgres_events"]

del _dbos
