"""Database, named by a path or a URL, its connections, and tables on a Postgres server."""

from __future__ import annotations

import os
import re
import time
import weakref
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from toolcrib._extras import Extra
from toolcrib._numbers import require_number
from toolcrib.errors import DatabaseError

with Extra("a Postgres database", "postgres", ("psycopg", "sqlalchemy")):
    import psycopg as _psycopg
    import sqlalchemy as sa

from sqlalchemy import event
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from toolcrib._passwords import hide_passwords
from toolcrib.clock import SYSTEM_CLOCK, Clock
from toolcrib.database._connections import ANSWER_TIMEOUT, CONNECTION_SETTINGS, open_answered, unhurried
from toolcrib.database._files import file_error, make_file, require_name
from toolcrib.database._listener import Listener
from toolcrib.database._outage import name_outages
from toolcrib.database._sqlite import BUSY_SECONDS, DURABLE_VERSION, sqlite3, write_ahead
from toolcrib.database._tables import MIGRATE, Execute, StoreTables

DEFAULT_DATABASE = "toolcrib.db"
"""The SQLite file, in the current folder, where no database is named."""
DEFAULT_APPLICATION = "toolcrib"
_VARIABLE, _SCHEMA_VARIABLE, _APPLICATION_VARIABLE = "TOOLCRIB_DATABASE", "TOOLCRIB_SCHEMA", "TOOLCRIB_APPLICATION"
_SCHEMA_NAME = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,62}")
_APPLICATION_NAME = re.compile(r"[a-z0-9_-]{3,63}")
_SECONDS = re.compile(r"\d{1,6}(\.\d+)?")
_FORMS = "Give a path, `sqlite:///path`, or `postgresql://user:password@host:5432/name`"
_SCHEMA_FORM = "Give up to 63 small letters, digits and _, which do not begin with a digit or pg_"
_APPLICATION_FORM = "Give 3 to 63 small letters, digits, _ and -"
_NOT_ALLOWED = "42501"  # the state of a statement that the user has no right to
_IDLE = "idle_in_transaction_session_timeout"
_IDLE_MS = 60_000  # after which the server ends a session that was left inside a transaction
_POOL = 20  # connections of one process; one of them listens
_MIGRATION_LOCK = "toolcrib: tables"
_MIGRATION_POLL = 0.2  # seconds between two tries to get it


@dataclass(frozen=True, slots=True)
class Database:
    """The database of durable work, approvals and records: a SQLite file, or one of a Postgres server.

    Attributes:
        url: As SQLAlchemy has it, password and all; `str(database)` hides it.
        schema: The schema of a Postgres database that holds all tables; None for DBOS's tables in `dbos`, and ours in
            the first schema of the user's search path.
        application: The application whose queues and work it is about. It is shown in the server's list of sessions.
    """

    url: sa.URL
    schema: str | None = None
    application: str = DEFAULT_APPLICATION

    @classmethod
    def named(
        cls, name: str | Path | Database | None = None, *, schema: str | None = None, application: str | None = None
    ) -> Database:
        """Return the database of a path, `sqlite:///path`, or `postgresql://user:password@host:port/name`.

        Args:
            name: Without one, what the environment variable TOOLCRIB_DATABASE says, else `toolcrib.db`. A database is
                returned as it is.
            schema: Without one, what TOOLCRIB_SCHEMA says.
            application: Without one, what TOOLCRIB_APPLICATION says, else `toolcrib`.

        Raises:
            TypeError: The name is something else, such as an agent.
            DatabaseError: One of them is not such a name.
        """
        if isinstance(name, Database):
            return name
        if name is not None:
            require_name(name)
        text = str((os.environ.get(_VARIABLE) or DEFAULT_DATABASE) if name is None else name)
        database = cls(
            _url_of(text),
            schema or os.environ.get(_SCHEMA_VARIABLE) or None,
            application or os.environ.get(_APPLICATION_VARIABLE) or DEFAULT_APPLICATION,
        )
        if database.schema is not None and database.kind == "sqlite":
            raise DatabaseError(
                str(database), f"a file has no schema `{database.schema}`", "Leave the schema out, or use Postgres"
            )
        if database.schema is not None and not _SCHEMA_NAME.fullmatch(database.schema):
            raise DatabaseError(str(database), f"`{database.schema}` is not a valid name of a schema", _SCHEMA_FORM)
        if not _APPLICATION_NAME.fullmatch(database.application):
            raise DatabaseError(
                str(database), f"`{database.application}` is not a valid name of an application", _APPLICATION_FORM
            )
        return database

    @property
    def kind(self) -> Literal["sqlite", "postgresql"]:
        """The kind of database."""
        return "sqlite" if self.url.get_backend_name() == "sqlite" else "postgresql"

    @property
    def dbos_schema(self) -> str:
        """The schema of DBOS's own tables, on a server."""
        return self.schema or "dbos"

    @property
    def version(self) -> str:
        """The version of the application in DBOS. It is fixed, so that a deploy goes on with what is in flight."""
        return "1" if self.application == DEFAULT_APPLICATION else f"{self.application}-1"

    def scoped(self, name: str) -> str:
        """Return a name that another application of the database does not have."""
        return name if self.application == DEFAULT_APPLICATION else f"{self.application}/{name}"

    @property
    def path(self) -> Path | None:
        """The file, of a SQLite database."""
        return Path(self.url.database or "") if self.kind == "sqlite" else None

    def __str__(self) -> str:
        shown = self.url.set(drivername="postgresql").render_as_string()
        return str(self.path) if self.path else hide_passwords(shown)

    def __repr__(self) -> str:
        return f"Database({str(self)!r}, schema={self.schema!r}, application={self.application!r})"

    def engine(self, *, pool: int = _POOL) -> sa.Engine:
        """Return an SQLAlchemy engine as DBOS needs it, after trying it; `engine.dispose()` closes its connections.

        Args:
            pool: How many connections this process may have open.

        Raises:
            DatabaseError: It cannot be connected to; the message says why and what to do.
        """
        require_number("a database", "pool", pool, least=1)
        engine = self._sqlite_engine(pool) if self.kind == "sqlite" else self._postgres_engine(pool)
        try:
            with engine.connect() as connection:
                connection.execute(sa.text("SELECT 1"))
        except SQLAlchemyError as error:
            engine.dispose()
            cause = error.__cause__ or error
            raise (file_error(self.path, cause) if self.path else _server_error(self, cause)) from error
        _engines.add(engine)
        return engine

    def _sqlite_engine(self, pool: int) -> sa.Engine:
        if sqlite3.sqlite_version_info < DURABLE_VERSION:
            needed = ".".join(map(str, DURABLE_VERSION[:2]))
            raise DatabaseError(
                str(self),
                f"DBOS needs SQLite {needed}, and Python's is {sqlite3.sqlite_version}",
                "Install a newer one beside it with: pip install pysqlite3. Or use Postgres",
            )
        path = self.path or Path()
        if not path.exists() and path.parent.is_dir() and os.access(path.parent, os.W_OK):
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))  # it holds what people and models typed
        try:
            with closing(sqlite3.connect(path)) as connection:
                write_ahead(connection)
        except sqlite3.Error as error:
            raise file_error(path, error) from error
        engine = sa.create_engine(
            self.url, module=sqlite3, poolclass=_Pool, pool_size=pool, max_overflow=0, pool_timeout=BUSY_SECONDS
        )
        event.listen(engine, "connect", _ready_sqlite)
        name_outages(engine)
        return engine

    def _postgres_engine(self, pool: int) -> sa.Engine:
        engine = sa.create_engine(
            self.url.difference_update_query([ANSWER_TIMEOUT]),
            connect_args=_connect_arguments(self),
            poolclass=_Pool,
            pool_size=pool,
            max_overflow=0,
            pool_timeout=BUSY_SECONDS,
            pool_pre_ping=True,
            isolation_level="READ COMMITTED",  # whatever the server's default is: each statement sees what is committed
        )
        settings: dict[str, str] = {} if self.schema is None else {"search_path": f'"{self.schema}"'}
        if _IDLE not in str(self.url.query.get("options", "")):
            settings[_IDLE] = str(_IDLE_MS)
        answer = self.url.query.get(ANSWER_TIMEOUT)
        open_answered(engine, None if answer is None else float(str(answer)))
        event.listen(engine, "connect", partial(_ready_postgres, settings))
        name_outages(engine)
        return engine

    def make_tables(self, engine: sa.Engine, tables: StoreTables) -> None:
        """Migrate the tables of a store to the latest version; where they are, nothing is written.

        Raises:
            DatabaseError: This user may not make them, or a newer version of Toolcrib made them.
        """
        if self.path is not None:
            make_file(self.path, tables)
            return
        with self.missing_tables():
            with transaction(engine) as execute:
                if tables.is_current(execute, self.kind, str(self)):
                    return
            with _migrating(engine) as outside:  # two that make one at once fail
                with transaction(engine) as execute:
                    if self.schema is not None and not execute("SELECT to_regnamespace(?)", (self.schema,)).scalar():
                        execute(f'CREATE SCHEMA "{self.schema}"', ())
                tables.migrate(partial(transaction, engine), outside, self.kind, str(self))

    @contextmanager
    def missing_tables(self) -> Generator[None]:
        """Turn the refusal to make tables into the error that says what to do."""
        try:
            with unhurried():  # an index of a large table takes its time
                yield
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) != _NOT_ALLOWED:
                raise
            problem = "its tables are missing or of an older version, and this user may not make them"
            raise DatabaseError(str(self), problem, MIGRATE) from error


class _Pool(sa.QueuePool):
    """Pool that also closes the connections that were in use, or were being opened, when it was disposed of."""

    _is_disposed = False

    def dispose(self) -> None:
        self._is_disposed = True
        super().dispose()

    def _do_return_conn(self, record: Any) -> None:
        super()._do_return_conn(record)
        if self._is_disposed:
            super().dispose()


_engines: weakref.WeakSet[sa.Engine] = weakref.WeakSet()


def _leave_connections_to_parent() -> None:
    for engine in _engines:
        engine.dispose(close=False)


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_leave_connections_to_parent)


class PostgresTables:
    """Tables of a Postgres database, and transactions on them; threads take and return connections of one pool.

    Args:
        database: Its URL, or what `Database.named` made of one.
        tables: The tables of each store; missing ones are made. What writes to those of the first holds its lock.
        pool: The most connections at a time.

    Raises:
        DatabaseError: It is not a Postgres database, or it cannot be connected to.
    """

    error: type[Exception] = DBAPIError

    def __init__(self, database: str | Path | Database, *tables: StoreTables, pool: int = 4) -> None:
        self.database = Database.named(database)
        self._lock = tables[0].lock if tables else None
        self._shares_lock = bool(tables) and tables[0].shares_lock
        if self.database.kind != "postgresql":
            raise DatabaseError(
                str(self.database), "it is a file, and this is for a Postgres server", "Give a postgresql:// URL"
            )
        self._engine = self.database.engine(pool=pool)
        weakref.finalize(self, self._engine.dispose)
        try:
            for store_tables in tables:
                self.database.make_tables(self._engine, store_tables)
        except BaseException:
            self._engine.dispose()
            raise

    def transaction(self, *, write: bool) -> AbstractContextManager[Execute]:
        """Begin a transaction, which is taken back if the body raises, and holds the lock of those who write.

        Args:
            write: Whether the body writes: no other transaction does meanwhile, unless the tables share their lock.
        """
        return transaction(self._engine, self._lock if write else None, shared=self._shares_lock)

    def listener(self, channel: str, *, clock: Clock = SYSTEM_CLOCK) -> Listener:
        """Return a listener to a channel, which has a connection beside those of the pool while it listens.

        Args:
            channel: The name of the channel.
            clock: The clock by which it ends when nothing waits, and connects again.
        """
        return Listener(self._engine, channel, clock=clock)

    def close(self) -> None:
        """Close the connections; others are opened when the tables are used again."""
        self._engine.dispose()


@contextmanager
def transaction(engine: sa.Engine, lock: str | None = None, *, shared: bool = False) -> Generator[Execute]:
    """Begin a transaction on a Postgres server, which is taken back if the body raises.

    Args:
        lock: The name of a lock that one transaction at a time holds, of all processes.
        shared: Whether all that share it hold it at a time.
    """
    with engine.begin() as connection:
        execute = statements(connection)
        if lock is not None:
            take_lock(execute, lock, shared=shared)
        yield execute


@contextmanager
def _migrating(engine: sa.Engine) -> Generator[Execute]:
    """Wait for the lock of those who make tables on a server, and yield what runs a statement in no transaction.

    One who waits is in none meanwhile: an index that is made beside writers waits until all transactions have ended
    that began before.
    """
    with engine.connect() as connection:
        execute = statements(connection.execution_options(isolation_level="AUTOCOMMIT"))
        connection.detach()  # it is closed in the end, and the lock freed, whatever happens
        while not execute("SELECT pg_try_advisory_lock(hashtextextended(?, 0))", (_MIGRATION_LOCK,)).scalar():
            time.sleep(_MIGRATION_POLL)
        yield execute


def take_lock(execute: Execute, lock: str, *, shared: bool = False) -> None:
    """Wait for a lock that one transaction on a Postgres server holds at a time, of all processes.

    Args:
        shared: Whether all that share it hold it at a time.
    """
    execute(f"SELECT pg_advisory_xact_lock{'_shared' if shared else ''}(hashtextextended(?, 0))", (lock,))


def statements(connection: sa.Connection) -> Execute:
    """Return the function that runs a store's statements on a connection, to a file or to a server."""

    def execute(sql: str, values: Any) -> Any:
        if connection.dialect.paramstyle == "pyformat":
            sql = sql.replace("%", "%%").replace("?", "%s")
        return connection.exec_driver_sql(sql, tuple(values))

    return execute


def _url_of(text: str) -> sa.URL:
    if "://" not in text:
        if hide_passwords(text) != text:
            raise DatabaseError(text, "it has a password, and is not a URL", _FORMS)
        return _file_url(text, text)
    try:
        url = sa.make_url(text)
    except (ArgumentError, ValueError) as error:
        raise DatabaseError(text, "it is not a URL", _FORMS) from error
    backend = url.drivername.partition("+")[0]
    if backend == "sqlite":
        return _file_url(url.database or "", text)
    if backend not in ("postgresql", "postgres"):
        raise DatabaseError(text, f"`{backend}` is not a kind of database that can be used", _FORMS)
    if not url.database:
        raise DatabaseError(text, "the URL names no database", _FORMS)
    if "@" in (url.host or ""):
        raise DatabaseError(text, "there is an @ too much in the URL", "Write an @ of the password as %40")
    if "password" in url.query:  # where SQLAlchemy hides it
        url = url.set(password=str(url.query["password"])).difference_update_query(["password"])
    answer = str(url.query.get(ANSWER_TIMEOUT, 0))
    if not _SECONDS.fullmatch(answer):
        problem = f"its {ANSWER_TIMEOUT} is a number of seconds, not `{answer}`"
        raise DatabaseError(str(Database(url)), problem, f"Write {ANSWER_TIMEOUT}=30, or 0 for no limit")
    return url.set(drivername="postgresql+psycopg")


def _file_url(path: str, written: str) -> sa.URL:
    if path.strip() in ("", ":memory:"):
        raise DatabaseError(written or "''", "durable work has to be kept in a file, or on a Postgres server", _FORMS)
    return sa.URL.create("sqlite", database=path)


def _connect_arguments(database: Database) -> dict[str, Any]:
    query = database.url.query
    defaults = {**CONNECTION_SETTINGS, "application_name": database.application}
    return {name: value for name, value in defaults.items() if name not in query}


def _ready_sqlite(connection: Any, record: Any) -> None:
    connection.isolation_level = "IMMEDIATE"  # a writer waits at its beginning, instead of failing at its end
    connection.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000:.0f}")
    connection.execute("PRAGMA foreign_keys = ON")


def _ready_postgres(settings: Mapping[str, str], connection: Any, record: Any) -> None:
    with connection.cursor() as cursor:
        for name, value in settings.items():
            cursor.execute(f"SET {name} TO {value}")
    connection.commit()  # the pool takes back what is not committed


_ASKS = " Is the server running on that host and accepting TCP/IP connections?"  # which our own remedy asks, too


def _server_error(database: Database, error: BaseException) -> DatabaseError:
    """Return the error that says what keeps a server's database from being used, and the way out."""
    reason = hide_passwords(" ".join(str(error).split()).removesuffix(_ASKS), database.url.password)
    url = database.url
    for sign, remedy in (
        (f'database "{url.database}" does not exist', f"Make it with: createdb {url.database}"),
        ("password authentication failed", "Look at the user and the password in the URL"),
        ("no password supplied", "Put the password into the URL, or into a file ~/.pgpass"),
        ("Connection refused", f"Is a Postgres server running at {url.host or 'localhost'}:{url.port or 5432}?"),
        ("No such file or directory", "Is a Postgres server running here? Name its host in the URL otherwise"),
        ("timeout", f"Can {url.host} be reached from here?"),
        ("resolve", f"Is {url.host} spelt as it should be?"),
        ("hot standby", "Name the primary server in the URL"),
        ("too many clients", "Give it fewer workers or smaller pools, or put a pooler in front of it"),
    ):
        if sign in reason:
            return DatabaseError(str(database), reason, remedy)
    return DatabaseError(str(database), reason)


del _psycopg
