"""Versions of all tables of a database, DBOS's own among them: looked at, made and brought up to date."""

from __future__ import annotations

from typing import Any, cast

import sqlalchemy as sa
from dbos._migration import get_migration_versions, get_sqlite_migration_versions
from sqlalchemy.exc import DBAPIError

from toolcrib.adapters.dbos._client import Client
from toolcrib.adapters.dbos._work_tables import MARK_TABLES, REQUEST_TABLES, WORK_TABLES
from toolcrib.database import Database, Execute, StoreTables, TablesVersion, file_version, transaction
from toolcrib.errors import DatabaseError
from toolcrib.serving import store_tables

_USE = (
    "GRANT USAGE ON SCHEMA {schema} TO {role}",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}",
    "GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA {schema} TO {role}",
    "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {schema} TO {role}",
)
_NO_USE = "SELECT 1 FROM pg_namespace WHERE nspname = ? AND NOT has_schema_privilege(oid, 'USAGE')"
_GRANT = "Run `toolcrib db migrate --grant ROLE` as the owner of the tables, with this user for ROLE"


def _stores(database: Database) -> tuple[StoreTables, ...]:
    return (*store_tables(on_server=database.path is None), WORK_TABLES, REQUEST_TABLES, MARK_TABLES)


def table_versions(database: Database) -> list[TablesVersion]:
    """Return which version of each store's tables a database has; nothing is changed in it.

    Raises:
        DatabaseError: No connection is available, or this user may not look at the tables.
    """
    stores, path = _stores(database), database.path
    if path is not None and not path.exists():
        raise DatabaseError(str(database), "there is no such file", "`toolcrib db migrate` makes it")
    engine = database.engine(pool=1)
    try:
        if path is not None:
            found = [file_version(path, tables) for tables in stores]
            ours, latest = get_sqlite_migration_versions(engine)
        else:
            with transaction(engine) as execute:
                _check_use(database, execute)
                found = [tables.version(execute, database.kind) for tables in stores]
            ours, latest = get_migration_versions(engine, database.dbos_schema, use_listen_notify=False)
    except DBAPIError as error:
        raise DatabaseError(str(database), " ".join(str(error.orig).split()), _GRANT) from error
    finally:
        engine.dispose()
    return [*found, TablesVersion("dbos", ours, latest)]


def _check_use(database: Database, execute: Execute) -> None:
    """Raise DatabaseError where this user may not use a schema: its tables would look as if they were missing."""
    for schema in dict.fromkeys((database.schema, database.dbos_schema)):
        if execute(_NO_USE, (schema,)).fetchone() is not None:
            raise DatabaseError(str(database), f"this user may not use the schema `{schema}`", _GRANT)


def migrate(database: Database) -> list[TablesVersion]:
    """Make all tables that are missing, bring the others up to date, and return their versions.

    Raises:
        DatabaseError: No connection is available, or this user may not make tables.
    """
    client = Client(database, pool=2)
    try:
        for tables in _stores(database):
            database.make_tables(client.engine, tables)
    finally:
        client.close()
    return table_versions(database)


def grant_use(database: Database, role: str) -> None:
    """Grant a role of a server the right to read and write the rows of all tables, and to make none.

    Raises:
        DatabaseError: It is a file, there is no such role, or this user may not grant it.
    """
    if database.path is not None:
        raise DatabaseError(str(database), "a file has no roles", "Leave --grant out")
    engine = database.engine(pool=1)
    try:
        with transaction(engine) as execute:
            (current,) = execute("SELECT current_schema()", ()).fetchone()
            for schema in dict.fromkeys((current, database.dbos_schema)):
                names = {"schema": _quoted(engine, schema), "role": _quoted(engine, role)}
                for statement in _USE:
                    execute(statement.format(**names), ())
    except DBAPIError as error:
        raise DatabaseError(str(database), " ".join(str(error.orig).split())) from error
    finally:
        engine.dispose()


def _quoted(engine: sa.Engine, name: str) -> str:
    return cast("Any", engine.dialect).identifier_preparer.quote_identifier(name)
