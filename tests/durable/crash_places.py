"""Places for the database of a crash trial: a file or a server, on a small disk that can be filled, behind a pooler."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from psycopg import sql

from tests.networks import free_port
from tests.postgres import Control, Postgres, programs, running
from toolcrib.database._sqlite import (
    sqlite3,  # the one that the client uses: two in one process undo each other's locks
)

_DATABASE = "crash"
_SAFE = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"}
_POOLER = """\
[databases]
{database} = host=127.0.0.1 port={server} dbname={database} user=crib password={password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
default_pool_size = 200
max_client_conn = 1000
server_login_retry = 1
ignore_startup_parameters = extra_float_digits
"""
_PIECE = 65_536  # bytes
_LONGEST = 600.0  # seconds in which a file can be locked; a worker may stand still in a transaction


@dataclass(frozen=True, slots=True)
class Place:
    """Where the database of a trial is.

    Attributes:
        server: A Postgres server of the trial's own; None for a file.
        file: A SQLite file; None on a server.
        disk: A small disk that the database is on; None for one that is not to be filled.
        pooler: A pgbouncer in between, which is the network as well; None without one.
    """

    server: Postgres | None = None
    file: Path | None = None
    disk: Path | None = None
    pooler: Pooler | None = None

    @property
    def database(self) -> str:
        """What workers are given."""
        if self.server is None:
            return str(self.file)
        url = self.server.url(_DATABASE)
        return url if self.pooler is None else url.replace(f":{self.server.port}/", f":{self.pooler.port}/")

    def outage(self, seconds: float) -> None:
        """Stop the server and start it again, or lock the file for writing as a backup or a stuck process would."""
        if self.server is not None:
            self.server.restart(seconds)
            return
        with closing(sqlite3.connect(self.file, isolation_level=None, timeout=_LONGEST)) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            time.sleep(seconds)
            connection.execute("ROLLBACK")

    def copy(self, folder: Path) -> None:
        """Copy the database into a folder."""
        if self.server is None and self.file is not None:
            with (
                closing(sqlite3.connect(self.file)) as source,
                closing(sqlite3.connect(folder / self.file.name)) as copy,
            ):
                source.backup(copy)  # the file alone lacks what its log has
        elif commands := programs():
            subprocess.run([commands / "pg_dump", "-Fc", "-f", folder / "crash.dump", self.database], check=True)

    def fill(self, seconds: float) -> None:
        """Leave no byte free on the disk for so long, also of what is freed meanwhile."""
        ballast = (self.disk or Path()) / "ballast"
        until = time.monotonic() + seconds
        try:
            with ballast.open("ab", buffering=0) as file:
                while time.monotonic() < until:
                    try:
                        file.write(bytes(_PIECE))
                    except OSError:
                        time.sleep(0.05)
        finally:
            ballast.unlink()


class Pooler:
    """A pgbouncer in front of a server. While it stands still, the network loses what it is given."""

    def __init__(self, server: Postgres, folder: Path, database: str, mode: str) -> None:
        self.port, self._file, self._owner = free_port(), folder / "pgbouncer.ini", server.control.owner
        ports = {"server": server.port, "port": self.port}
        text = _POOLER.format(database=database, password=server.password, mode=mode, **ports)
        self._file.write_text(text)
        if self._owner is not None:
            os.chown(self._file, *self._owner)
        self.control = Control(self._start, self._owner)
        for _ in range(600):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            time.sleep(0.1)
        raise RuntimeError("the pooler did not start")

    def _start(self) -> subprocess.Popen[bytes]:
        who = {} if self._owner is None else {"user": self._owner[0], "group": self._owner[1], "extra_groups": []}
        program = shutil.which("pgbouncer") or ""
        return subprocess.Popen([program, "-q", self._file], cwd="/", stderr=subprocess.DEVNULL, **who)  # type: ignore[call-overload]

    def cut(self, seconds: float) -> None:
        """Pass nothing on for so long, then end all connections, and take new ones."""
        self.control.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.close()
        self.control.start()

    def close(self) -> None:
        """End it."""
        self.control.process.kill()
        self.control.process.wait()


@contextlib.contextmanager
def pooling(server: Postgres, database: str, mode: str = "session") -> Iterator[Pooler]:
    """Run a pooler until the end of the block, which lends connections for a `session` or a `transaction`."""
    with tempfile.TemporaryDirectory(prefix="toolcrib-pooler-") as folder:
        reachable = Path(folder)
        reachable.chmod(0o755)
        pooler = Pooler(server, reachable, database, mode)
        try:
            yield pooler
        finally:
            pooler.close()


def no_pooler() -> str | None:
    """Return why there is no pooler here; None where there is one."""
    return None if shutil.which("pgbouncer") else "there is no pgbouncer here"


def refusal() -> str | None:
    """Return why no small disk can be mounted here; None where one can."""
    try:
        with _mounted(1):
            return None
    except subprocess.CalledProcessError as error:
        return f"a small disk (tmpfs) cannot be mounted here: {error.stderr.strip()}"
    except FileNotFoundError:
        return "a small disk (tmpfs) cannot be mounted here: there is no `mount`"


@contextlib.contextmanager
def place(kind: str, folder: Path, *, disk: int | None = None) -> Iterator[Place]:
    """Give a database of a kind: a server of its own, or a file.

    Args:
        disk: The megabytes of a small disk that it is on.
    """
    with ExitStack() as stack:
        small = None if disk is None else stack.enter_context(_mounted(disk))
        if kind == "sqlite":
            yield Place(file=(small or folder) / "crash.db", disk=small)
            return
        server = stack.enter_context(running(**_SAFE))
        if small is not None:
            _on_disk(server, small / "postgres")
        pooler = None
        if no_pooler() is None:
            pooler = stack.enter_context(pooling(server, _DATABASE))
        yield Place(server, disk=small, pooler=pooler)


@contextlib.contextmanager
def _mounted(megabytes: int) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="toolcrib-disk-"))
    try:
        asked = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=755", "tmpfs", folder]
        subprocess.run(asked, check=True, capture_output=True, text=True)
        try:
            yield folder
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)
    finally:
        folder.rmdir()


def _on_disk(server: Postgres, folder: Path) -> None:
    """Keep the trial's database in a folder of the disk; the server's log of changes stays where it is."""
    folder.mkdir()
    if server.control.owner is not None:
        os.chown(folder, *server.control.owner)
    with server.connect() as connection:
        connection.execute(sql.SQL("CREATE TABLESPACE small LOCATION {}").format(sql.Literal(str(folder))))
        connection.execute(sql.SQL("CREATE DATABASE {} TABLESPACE small").format(sql.Identifier(_DATABASE)))
