"""A Restate server on loopback, from npm, for the tests of durable work."""

from __future__ import annotations

import os
import platform
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import httpx2

from tests.npm.programs import MODULES, NotInstalledError

_STARTS = 60.0  # seconds
_CPUS = {"aarch64": "arm64", "arm64": "arm64", "x86_64": "x64"}


class RestateServer:
    """A server that runs: the URLs of its two doors."""

    def __init__(self, ingress: int, admin: int, start: Callable[[], subprocess.Popen[bytes]]) -> None:
        self.ingress, self.admin = f"http://127.0.0.1:{ingress}", f"http://127.0.0.1:{admin}"
        self._start = start
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, also anew."""
        self._process = self._start()
        _wait_until_it_answers(f"{self.admin}/health", self._process)

    def kill(self) -> None:
        """End it at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def restart(self, seconds: float) -> None:
        """Kill it, and start it again after so long."""
        self.kill()
        time.sleep(seconds)
        self.start()


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextmanager
def restate_server(folder: Path, **settings: str) -> Generator[RestateServer]:
    """Run a server that keeps its data in a folder.

    Args:
        settings: Settings of its invoker, such as `http2_keep_alive_interval`.

    Raises:
        NotInstalledError: It is not there, or not for this machine.
    """
    package = f"@restatedev/restate-server-{sys.platform}-{_CPUS.get(platform.machine(), 'unknown')}"
    program = MODULES / package / "bin" / "restate-server"
    if not program.exists():
        raise NotInstalledError(package)
    ingress, admin, node = free_port(), free_port(), free_port()
    options = {
        "RESTATE_ADMIN__BIND_ADDRESS": f"127.0.0.1:{admin}",
        "RESTATE_BIND_ADDRESS": f"127.0.0.1:{node}",
        "RESTATE_DEFAULT_NUM_PARTITIONS": "2",
        "RESTATE_DISABLE_TELEMETRY": "true",
        "RESTATE_INGRESS__BIND_ADDRESS": f"127.0.0.1:{ingress}",
        "RESTATE_LISTEN_MODE": "tcp",
        "RESTATE_LOG_FILTER": "warn",
        "RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE": "64 MB",
    }
    options |= {f"RESTATE_WORKER__INVOKER__{name.upper()}": value for name, value in settings.items()}
    command = [str(program), "--no-logo", "--node-name", "tests", "--base-dir", str(folder / "data")]
    with (folder / "server.log").open("wb") as log:
        start = partial(subprocess.Popen, command, env={**os.environ, **options}, stdout=log, stderr=log)
        server = RestateServer(ingress, admin, start)
        try:
            server.start()
            yield server
        finally:
            server.kill()


def _wait_until_it_answers(url: str, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + _STARTS
    while True:
        try:
            httpx2.get(url).raise_for_status()
            return
        except httpx2.HTTPError:
            if process.poll() is not None or time.monotonic() > end:
                raise
        time.sleep(0.1)
