"""Database of a command, a SQLite file or a Postgres server: its approvals and its events."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated

import typer

import toolcrib.approvals as approvals
import toolcrib.record as record
from toolcrib._passwords import hide_passwords
from toolcrib.approvals import SqlApprovalStore, SqliteApprovalStore
from toolcrib.database import NOT_A_DATABASE, SqliteError, connect_file
from toolcrib.errors import DatabaseError, MissingExtraError, ToolcribError
from toolcrib.record import BatchSink, EventLog, JsonLinesSink, SqliteSink, sqlite_events
from toolcrib.serving import ServerStates

_VARIABLE, _SCHEMA_VARIABLE = "TOOLCRIB_DATABASE", "TOOLCRIB_SCHEMA"
_DEFAULT = "toolcrib.db"
_POSTGRES = ("postgresql", "postgres")
_FORMS = "Give a path, sqlite:///path, or postgresql://user:password@host:5432/name"
DATABASE_HINT = f"Name the one that is meant with --database, or in {_VARIABLE}"
"""The remedy for a missing database."""

DatabaseOption = Annotated[
    str | None,
    typer.Option(
        "--database",
        metavar="DATABASE",
        help=f"A file or a postgresql:// URL; {_VARIABLE} when left out, or {_DEFAULT}.",
        show_default=False,
    ),
]


def database_name(name: str | None) -> str:
    """Return the database that an option names, else the environment, else the one of this folder.

    Raises:
        DatabaseError: The option is empty, as where the variable is not set that it is of.
    """
    if name is not None and not name.strip():
        raise DatabaseError(repr(name), "--database is empty", f"Leave it out for {_VARIABLE}, or {_DEFAULT}")
    return name or os.environ.get(_VARIABLE) or _DEFAULT


def database_or(name: str | None, otherwise: str | None) -> str | None:
    """Return the database that an option or the environment names, else another one."""
    return name or os.environ.get(_VARIABLE) or otherwise


def shown_name(name: str | None) -> str:
    """Return the same for a person to read: the absolute path of a file, and a URL without its password."""
    return hide_passwords(absolute_database(name))


def absolute_database(name: str | None) -> str:
    """Return the database that an option or the environment names, the same in any folder."""
    found = database_name(name)
    scheme, separator, rest = found.rpartition("sqlite:///")
    return found if "://" in rest else f"{scheme}{separator}{Path(rest).absolute()}"


def database_url(name: str | None) -> str:
    """Return the database by a name that cannot be taken for that of a file of records."""
    found = database_name(name)
    return found if "://" in found else f"sqlite:///{found}"


def has_workers(database: str | None = None) -> bool:
    """Return whether a file has had workers, which keep tables of their own; a Postgres server may always have them."""
    name = database_name(database)
    if _scheme(name) in _POSTGRES:
        return True
    return _has_table(Path(name.removeprefix("sqlite:///")), "toolcrib_workers")


def has_file(database: str | None) -> bool:
    """Return whether a file is there, not whether it holds anything; a Postgres server has no file to miss."""
    name = database_name(database)
    return _scheme(name) in _POSTGRES or file_of(name).exists()


def check_kept(database: str | None) -> None:
    """Refuse a file that is missing or holds nothing of ours: what only reads it would make its tables there.

    Raises:
        DatabaseError: It is such a file, or cannot be used.
    """
    name = database_name(database)
    if _scheme(name) in _POSTGRES:
        return
    path, name = file_of(name), shown_name(name)
    if path.is_dir():
        raise DatabaseError(name, "it is a folder", "Name a file in it")
    if not has_file(name):
        raise DatabaseError(name, "there is no such file", DATABASE_HINT)
    with database_errors(name):
        is_ours = _has_table(path, "toolcrib%")
    if not is_ours:
        raise DatabaseError(name, "it holds nothing of Toolcrib", DATABASE_HINT)


def file_of(database: str | None) -> Path:
    """Return the SQLite file of a database.

    Raises:
        DatabaseError: It is not a kind of database, or is given a schema.
        MissingExtraError: It is a Postgres server, and the extra `durable` is not installed.
    """
    name = database_name(database)
    if _scheme(name) in _POSTGRES:
        raise MissingExtraError("a Postgres database", "durable")
    if os.environ.get(_SCHEMA_VARIABLE):
        raise DatabaseError(name, "a file has no schema", "Leave the schema out, or use Postgres")
    return Path(name.removeprefix("sqlite:///"))


def open_approvals(database: str | None = None, *, create: bool = True) -> SqlApprovalStore:
    """Return the approval store of a database.

    Args:
        database: A path, `sqlite:///path` or a `postgresql://` URL; see `database_name` for None.
        create: Whether a file that is missing is made.

    Raises:
        DatabaseError: It cannot be used, or is not a database.
        MissingExtraError: It is a Postgres server, and the extra `postgres` is not installed.
    """
    name = database_name(database)
    if not create:
        check_kept(name)
    if _scheme(name) in _POSTGRES:
        return approvals.PostgresApprovalStore(name)
    with database_errors(name):
        return SqliteApprovalStore(file_of(name))


def open_server_states(database: str | None = None) -> ServerStates | None:
    """Return where the states of servers are kept for the console: in a file; None for a Postgres server.

    Raises:
        DatabaseError: It cannot be used, or is not a database.
    """
    name = database_name(database)
    if _scheme(name) in _POSTGRES:
        return None
    with database_errors(name):
        return ServerStates(file_of(name))


def open_events(name: str) -> BatchSink | JsonLinesSink:
    """Return a sink that adds to a file or a database; close it, or use it in `with`.

    Args:
        name: A `.db` or `.sqlite` file, `sqlite:///path` or a `postgresql://` URL, which keep the events of calls and
            runs; any other file gets the record of each call, as JSON lines.

    Raises:
        DatabaseError: It cannot be used.
        OSError: The file of records cannot be written.
    """
    scheme = _scheme(name)
    if scheme in _POSTGRES:
        return record.PostgresSink(name)
    path = Path(name.removeprefix("sqlite:///"))
    if scheme or path.suffix in (".db", ".sqlite"):
        with database_errors(name):
            return SqliteSink(path)
    return JsonLinesSink(path)


def open_log(database: str | None = None) -> EventLog:
    """Return the events of calls and runs in a database; a missing file is made.

    Raises:
        DatabaseError: It cannot be used, or is not a database.
        MissingExtraError: It is a Postgres server, and the extra `postgres` is not installed.
    """
    name = database_name(database)
    if _scheme(name) in _POSTGRES:
        return record.postgres_events(name)
    with database_errors(name):
        return sqlite_events(file_of(name))


def _has_table(path: Path, like: str) -> bool:
    with closing(connect_file(path)) as connection:
        return connection.execute("SELECT 1 FROM sqlite_master WHERE name LIKE ?", (like,)).fetchone() is not None


def _scheme(name: str) -> str:
    """Return the kind of database in a URL; empty for a path."""
    scheme = name.partition("://")[0].partition("+")[0] if "://" in name else ""
    if not scheme and hide_passwords(name) != name:
        raise DatabaseError(name, "it has a password, and is not a URL", _FORMS)
    if scheme not in ("", "sqlite", *_POSTGRES):
        raise DatabaseError(name, f"`{scheme}` is not a kind of database that can be used", _FORMS)
    return scheme


@contextmanager
def database_errors(database: str | None) -> Generator[None]:
    """Turn an error of SQLite or the system into a DatabaseError."""
    try:
        yield
    except (OSError, ValueError, SqliteError) as error:
        if isinstance(error, ToolcribError):
            raise
        problem = (error.strerror if isinstance(error, OSError) else None) or " ".join(str(error).split())
        is_other = problem == "file is not a database"
        problem, hint = (NOT_A_DATABASE, DATABASE_HINT) if is_other else (problem, _FORMS)
        raise DatabaseError(database_name(database), problem, hint) from error
