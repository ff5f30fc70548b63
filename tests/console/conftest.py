"""A console over a file that the test fills, served on a free port; and one browser for the session."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from toolcrib.approvals import SqliteApprovalStore
from toolcrib.console import ConsoleApp, ConsoleOptions, console_app
from toolcrib.record import SqliteSink, sqlite_events
from toolcrib.serving import http


@dataclass
class Reply:
    """What the console answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Console:
    """A running console, and what it shows."""

    port: int
    path: Path = Path()
    headers: dict[str, str] = field(default_factory=dict)
    source: str = "127.0.0.1"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    @property
    def store(self) -> SqliteApprovalStore:
        return SqliteApprovalStore(self.path)

    def get(self, path: str, **headers: str | None) -> Reply:
        return self.ask("GET", path, None, **headers)

    def post(self, path: str, body: Any, **headers: str | None) -> Reply:
        """Post JSON as the console's own page does."""
        if "x_toolcrib_csrf" not in headers:
            headers["x_toolcrib_csrf"] = self.get("/api/state").json.get("csrf")
        return self.ask("POST", path, json.dumps(body).encode(), **{"content_type": "application/json", **headers})

    def ask(self, method: str, path: str, body: bytes | None, **headers: str | None) -> Reply:
        """Send a request as it is; a header that is None is left out."""
        given = {**self.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60, source_address=(self.source, 0))
        try:
            connection.putrequest(method, path, skip_host="host" in given)
            if body is not None:
                connection.putheader("content-length", str(len(body)))
            for name, value in given.items():
                if value is not None:
                    connection.putheader(name, value)
            connection.endheaders(body)
            reply = connection.getresponse()
            return Reply(reply.status, dict(reply.getheaders()), reply.read())
        finally:
            connection.close()


@contextmanager
def serving(path: Path, options: ConsoleOptions | None = None, port: int = 0) -> Generator[Console]:
    """Serve a console over a file while the body runs."""
    app = console_app(sqlite_events(path), SqliteApprovalStore(path), options or ConsoleOptions())
    with serve_app(app, port) as listening:
        yield Console(listening, path)


@dataclass
class Mounted:
    """A console that is mounted in another application."""

    console: ConsoleApp
    outer: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.outer(scope, receive, send)

    async def close(self) -> None:
        await self.console.close()


@contextmanager
def serve_app(app: ConsoleApp, port: int = 0, inside: ASGIApp | None = None) -> Generator[int]:
    """Serve a console, or the application that it is mounted in, in a thread; the body is given the port."""
    started, served = threading.Event(), app if inside is None else Mounted(app, inside)
    stops: list[Callable[[], object]] = []

    async def serve() -> None:
        task = asyncio.ensure_future(http.serve_app(served, listener, http.HttpLimits(), started=started.set))
        stops.append(partial(asyncio.get_running_loop().call_soon_threadsafe, task.cancel))
        await asyncio.wait([task])

    with http.listen("127.0.0.1", port) as listener:
        thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
        thread.start()
        try:
            assert started.wait(60)
            yield listener.socket.getsockname()[1]
        finally:
            stops[0]()
            thread.join(60)
            assert not thread.is_alive()


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file for the tests of a module: each uses ids of its own."""
    return tmp_path_factory.mktemp("console") / "toolcrib.db"


@pytest.fixture(scope="module")
def sink(database: Path) -> Iterator[SqliteSink]:
    with SqliteSink(database) as made:
        yield made


@pytest.fixture(scope="module")
def console(database: Path) -> Iterator[Console]:
    with serving(database) as running:
        yield running


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[ConsoleOptions], Console]]:
    """Serve a console with options of the test's, and a file of its own."""
    with ExitStack() as stack:
        yield lambda options: stack.enter_context(serving(tmp_path_factory.mktemp("guarded") / "toolcrib.db", options))
