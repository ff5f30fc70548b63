"""`toolcrib db`: the tables of a database: their creation, their versions, and the removal of old entries."""

from __future__ import annotations

import asyncio
import importlib
import re
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer

import toolcrib.database as databases
from toolcrib.approvals import SqliteApprovalStore
from toolcrib.cli._commands import Commands
from toolcrib.cli._database import DatabaseOption, database_errors, database_name, file_of, shown_name
from toolcrib.cli._formatting import JsonOption, console, print_json, say, table_of
from toolcrib.cli._status import Status, exit_on_error
from toolcrib.database import SqliteTables, TablesVersion, file_version, make_file
from toolcrib.errors import DatabaseError, MissingExtraError
from toolcrib.record import prune_events, sqlite_event_tables
from toolcrib.serving import store_tables

db = Commands(name="db", help="The tables of a database.", no_args_is_help=True)

_UNITS = {"h": "hours", "d": "days", "w": "weeks"}
_AGE = re.compile(r"([1-9][0-9]{0,4})([hdw])")
_MIGRATE = "Run: toolcrib db migrate"
_DO = {"missing": _MIGRATE, "old": _MIGRATE, "newer": "Update Toolcrib here", "current": ""}


@db.command()
def migrate(
    database: DatabaseOption = None,
    grant: Annotated[
        str | None,
        typer.Option("--grant", metavar="ROLE", help="A role of the server that then may read and write rows."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Make the tables that are missing, and bring the others up to date."""
    with exit_on_error(), database_errors(database):
        module = _durable(database)
        if module is not None:
            named = databases.Database.named(database)
            found = module.migrate(named)
            if grant is not None:
                module.grant_use(named, grant)
        elif grant is not None:
            raise DatabaseError(database_name(database), "a file has no roles", "Leave --grant out")
        else:
            path = file_of(database)
            stores = store_tables(on_server=False)
            for tables in stores:
                make_file(path, tables)
            found = [file_version(path, tables) for tables in stores]
    _show(database, found, as_json)


@db.command()
def check(database: DatabaseOption = None, as_json: JsonOption = False) -> None:
    """Show the version of each store's tables, and what to run; exit status 1 when there is something to do."""
    with exit_on_error(), database_errors(database):
        module = _durable(database)
        if module is not None:
            found = module.table_versions(databases.Database.named(database))
        else:
            path = file_of(database)
            if not path.exists():
                raise DatabaseError(str(path), "there is no such file", "`toolcrib db migrate` makes it")
            found = [file_version(path, tables) for tables in store_tables(on_server=False)]
    _show(database, found, as_json)
    if any(_to_do(version) for version in found):
        raise typer.Exit(Status.FAILED)


@db.command()
def prune(
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="AGE", help="The age of the entries to remove: 12h, 30d or 8w.")
    ],
    database: DatabaseOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count, and remove nothing.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Remove old entries: ended turns and programs, used answers, sessions, events and stopped workers.

    What waits, runs, is in doubt or was given up stays.
    """
    before = datetime.now(UTC) - _age(older_than)
    with exit_on_error(), database_errors(database):
        module = _durable(database)
        named = None if module is None else databases.Database.named(database)
        path = file_of(database) if named is None else named.path
        if path is not None and not path.exists():
            raise DatabaseError(str(path), "there is no such file")
        if module is not None:
            counts = asyncio.run(module.prune(named, before, dry_run=dry_run))
        else:
            path = file_of(database)
            store = SqliteApprovalStore(path)
            requests = asyncio.run(store.prune(before, dry_run=dry_run))
            sessions = asyncio.run(store.prune_sessions(before, dry_run=dry_run))
            counts = {
                "requests": requests,
                "sessions": sessions,
                "calls and runs": prune_events(SqliteTables(path, *sqlite_event_tables()), before, dry_run=dry_run),
            }
    if as_json:
        print_json({"database": shown_name(database), "before": before.isoformat(), "dry_run": dry_run, **counts})
        return
    listed = ", ".join(f"{count} {name}" for name, count in counts.items())
    say(f"{'would remove' if dry_run else 'removed'} {listed} of before {before:%Y-%m-%d %H:%M} UTC")


def _durable(database: str | None) -> Any:
    """Return the adapter of durable work; None where its extra is not installed, and the database is a file."""
    try:
        return importlib.import_module("toolcrib.adapters.dbos")
    except MissingExtraError:
        file_of(database)
        return None


def _to_do(version: TablesVersion) -> str:
    """Return the command that a version needs; DBOS works with tables of its newer versions."""
    return "" if version.store == "dbos" and version.state == "newer" else _DO[version.state]


def _show(database: str | None, found: Sequence[TablesVersion], as_json: bool) -> None:
    if as_json:
        stores = [{**asdict(version), "state": version.state, "to_do": _to_do(version)} for version in found]
        print_json({"database": shown_name(database), "stores": stores})
        return
    table = table_of("store", "version", "latest", "state", "to do")
    for version in found:
        table.add_row(version.store, str(version.found or "-"), str(version.latest), version.state, _to_do(version))
    console().print(table)


def _age(text: str) -> timedelta:
    found = _AGE.fullmatch(text)
    if found is None:
        raise typer.BadParameter(f"{text!r} is not an age; write 12h, 30d or 8w", param_hint="--older-than")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})
