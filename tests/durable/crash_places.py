"""Places for the database of a crash trial: a file or a server, also on a small disk that can be filled."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from psycopg import sql

from tests.postgres import Postgres, running
from toolcrib.database._sqlite import (
    sqlite3,  # the one that the client uses: two in one process undo each other's locks
)

_DATABASE = "crash"
_PIECE = 65_536  # bytes
_LONGEST = 600.0  # seconds in which a file can be locked; a worker may stand still in a transaction


@dataclass(frozen=True, slots=True)
class Place:
    """Where the database of a trial is.

    Attributes:
        server: A Postgres server of the trial's own; None for a file.
        file: A SQLite file; None on a server.
        disk: A small disk that the database is on; None for one that is not to be filled.
    """

    server: Postgres | None = None
    file: Path | None = None
    disk: Path | None = None

    @property
    def database(self) -> str:
        """What workers are given."""
        return str(self.file) if self.server is None else self.server.url(_DATABASE)

    def outage(self, seconds: float) -> None:
        """Stop the server and start it again, or lock the file for writing as a backup or a stuck process would."""
        if self.server is not None:
            self.server.restart(seconds)
            return
        with contextlib.closing(sqlite3.connect(self.file, isolation_level=None, timeout=_LONGEST)) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            time.sleep(seconds)
            connection.execute("ROLLBACK")

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
        server = stack.enter_context(running())
        if small is not None:
            _on_disk(server, small / "postgres")
        yield Place(server, disk=small)


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
