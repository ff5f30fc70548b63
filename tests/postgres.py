"""A Postgres server of the tests' own: Debian's, on loopback, with its data in a folder that goes with it."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from tests.networks import free_port

_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "300",
    # What is kept here need not outlive the machine.
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "shared_buffers": "64MB",
    "log_min_messages": "fatal",
}


class Control:
    """The process of a server.

    Attributes:
        owner: The user and the group that it runs as; None for those of this process.
    """

    def __init__(self, start: Callable[[], subprocess.Popen[bytes]], owner: tuple[int, int] | None) -> None:
        self._start, self.owner = start, owner
        self.process = start()

    def start(self) -> None:
        self.process = self._start()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)  # ends its sessions, too
        self.process.wait(60)


@dataclass(frozen=True, slots=True)
class Postgres:
    """A server that runs."""

    port: int
    password: str
    control: Control

    def url(self, database: str = "postgres", *, create: bool = True, template: str = "template1") -> str:
        """Return the URL of a database on it, which is made when it is missing, as a copy of the template."""
        if create and database != "postgres":
            with self.connect() as connection:
                found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [database]).fetchone()
                if found is None:
                    names = sql.Identifier(database), sql.Identifier(template)
                    connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(*names))
        return f"postgresql://crib:{self.password}@127.0.0.1:{self.port}/{database}"

    def empty(self, database: str) -> None:
        """Remove all rows of a database's own tables; which version of them it has stays."""
        with self.connect(database) as connection:
            tables = connection.execute(
                "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'toolcrib_versions'"
            ).fetchall()
            names = sql.SQL(", ").join(sql.Identifier(name) for (name,) in tables)
            connection.execute(sql.SQL("TRUNCATE {} RESTART IDENTITY").format(names))

    def restart(self, seconds: float = 0.0) -> None:
        """Stop the server, which ends its sessions at once, and start it again after so long."""
        self.control.stop()
        time.sleep(seconds)
        self.control.start()

    def connect(self, database: str = "postgres") -> psycopg.Connection[Any]:
        """Return a connection that commits by itself."""
        return psycopg.connect(self.url(database, create=False), autocommit=True)


def programs() -> Path | None:
    """Return the folder of the server's programs; None where there is none."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[4]))
    if debian:
        return debian[-1].parent
    found = shutil.which("initdb")
    return Path(found).resolve().parent if found else None


def absence() -> tuple[str, bool]:
    """Return why there is no server, and whether it could be installed here."""
    if os.geteuid() == 0 and shutil.which("apt-get"):
        return "There is no Postgres server here: install it with `.ci/packages postgresql`", True
    return "There is no Postgres server here, and installing one takes root and Debian's apt-get", False


@contextmanager
def running(**settings: str) -> Iterator[Postgres]:
    """Run a server until the end of the block."""
    folder = programs()
    if folder is None:
        raise RuntimeError(absence()[0])
    data = Path(tempfile.mkdtemp(prefix="toolcrib-postgres-"))
    control: Control | None = None
    try:
        password, who = secrets.token_hex(8), _server_user(data)
        _make_cluster(folder, data, password, who)
        port = free_port()
        asked = {**_SETTINGS, "port": str(port), **settings}
        control = Control(lambda: _start(folder, data, asked, who), (who["user"], who["group"]) if who else None)
        server = Postgres(port, password, control)
        _wait_for(server, control.process, data / "log")
        yield server
    finally:
        if control is not None:
            control.stop()
        shutil.rmtree(data, ignore_errors=True)


def _server_user(data: Path) -> dict[str, Any]:
    """Return who runs the server, as arguments of Popen: it refuses to be run by root."""
    if os.geteuid() != 0:
        return {}
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    entry = names.get("postgres") or names["nobody"]
    os.chown(data, entry.pw_uid, entry.pw_gid)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def _make_cluster(folder: Path, data: Path, password: str, who: dict[str, Any]) -> None:
    secret = data / "password"
    secret.write_text(password)
    secret.chmod(0o644)  # inside a folder that only its owner can enter
    asked = [
        "--username=crib",
        f"--pwfile={secret}",
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        "--locale=C",
        "--no-sync",
    ]
    made = subprocess.run(
        [folder / "initdb", *asked, "--no-sync", data / "cluster"],
        capture_output=True,
        text=True,
        check=False,
        cwd=data,
        **who,
    )
    if made.returncode:
        raise RuntimeError(f"initdb failed: {made.stdout}{made.stderr}")


def _start(folder: Path, data: Path, settings: dict[str, str], who: dict[str, Any]) -> subprocess.Popen[bytes]:
    options = [f"--{name}={value}" for name, value in settings.items()]
    with (data / "log").open("wb") as log:
        return subprocess.Popen(
            [folder / "postgres", "-D", data / "cluster", *options], stdout=log, stderr=log, cwd=data, **who
        )


def _wait_for(server: Postgres, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            server.connect().close()
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the Postgres server did not start: {log.read_text()[-2000:]}") from None
            time.sleep(0.02)
        else:
            return
