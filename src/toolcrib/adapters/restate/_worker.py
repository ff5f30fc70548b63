"""Worker of agents on Restate: the endpoint that the server calls, and the look at answers."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

import restate
from hypercorn.asyncio import serve as serve_http  # pyright: ignore[reportUnknownVariableType] -- its types are partial
from hypercorn.config import Config
from restate.server import install_shutdown_hook

from toolcrib._numbers import require_seconds
from toolcrib.adapters.restate._agent import RestateAgent
from toolcrib.adapters.restate._client import RestateClient
from toolcrib.clock import SYSTEM_CLOCK, Clock
from toolcrib.durable import outlast
from toolcrib.errors import explain_options

_log = logging.getLogger("toolcrib.durable")
_MANY = 2**31 - 1
_GRACE = 3.0  # seconds that turns have to end once the worker is stopped


def endpoint(agents: Sequence[RestateAgent], identity_keys: Sequence[str] = ()) -> Any:
    """Return the ASGI application that a Restate server calls to run the turns of these agents.

    It has to be served over HTTP/2: a turn and the server talk to each other while its tool runs.

    Args:
        identity_keys: Public keys of the server; calls that it has not signed are refused.
    """
    services = [agent.service for agent in agents]
    return restate.app(services, protocol="bidi", identity_keys=list(identity_keys) or None)


@explain_options()
async def serve(
    agents: Sequence[RestateAgent],
    *,
    host: str = "127.0.0.1",
    port: int = 9080,
    answers: float = 1.0,
    identity_keys: Sequence[str] = (),
    until: Callable[[], Awaitable[object]] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> None:
    """Run the turns of these agents for a Restate server, and let those go on whose answers are in the store.

    Register its URL once, with `RestateClient.register`. Who reaches the port can have turns run: give the keys of the
    server, or let no one else reach it.

    Args:
        host: The address that it listens on.
        port: The port.
        answers: Seconds between two looks for answers that were given elsewhere, as in the console.
        identity_keys: Public keys of the server; calls that it has not signed are refused.
        until: Awaited, and then it ends; without it, at SIGINT and SIGTERM.
        clock: The clock of the looks.
    """
    require_seconds("serve", "answers", answers)
    config = Config()
    config.bind, config.loglevel = [f"{host}:{port}"], "WARNING"
    config.h2_max_concurrent_streams = config.keep_alive_max_requests = _MANY
    config.keep_alive_timeout, config.graceful_timeout = _MANY, 2 * _GRACE
    clients = {id(agent.client): agent.client for agent in agents}
    looks = [asyncio.create_task(_keep_continuing(client, answers, clock)) for client in clients.values()]
    try:
        ends, ended = asyncio.Event(), asyncio.Event()

        async def stopped() -> None:
            await (until or _signal)()
            ends.set()
            asyncio.get_running_loop().call_later(_GRACE, ended.set)
            asyncio.get_running_loop().call_later(3 * _GRACE, _cut, requests)

        requests = set[asyncio.Task[Any]]()
        app = _until(ended, endpoint(agents, identity_keys), requests)
        try:
            await serve_http(app, config, mode="asgi", shutdown_trigger=stopped)
        except ExceptionGroup as errors:
            if not ends.is_set():
                raise
            _log.debug("connections broke as the worker ended: %s", errors)
    finally:
        for look in looks:
            look.cancel()
        await asyncio.gather(*looks, return_exceptions=True)


def _cut(requests: set[asyncio.Task[Any]]) -> None:
    """Cancel requests until none is left: one that was cancelled before may wait once more, to say so to the server."""
    for request in requests:
        request.cancel()
    if requests:
        asyncio.get_running_loop().call_later(1.0, _cut, requests)


def _until(ended: asyncio.Event, app: Any, requests: set[asyncio.Task[Any]]) -> Any:
    """Return an application that disconnects its requests once it ends: the SDK waits for that, also when cancelled."""

    async def run(scope: Any, receive: Callable[[], Awaitable[Any]], send: Any) -> None:
        if (task := asyncio.current_task()) is not None:
            requests.add(task)
            task.add_done_callback(requests.discard)

        async def received() -> Any:
            waits = [asyncio.ensure_future(receive()), asyncio.ensure_future(ended.wait())]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                return waits[0].result() if waits[0].done() else {"type": "http.disconnect"}
            finally:
                for wait in waits:
                    wait.cancel()

        await app(scope, received, send)

    return run


async def _signal() -> None:
    """Wait for SIGINT or SIGTERM, beside the SDK, whose handler takes the place of one that is not a hook of it."""
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # on Windows Ctrl-C ends it at once
            install_shutdown_hook(asyncio.get_running_loop(), stopped.set, number)
    await stopped.wait()


async def _keep_continuing(client: RestateClient, seconds: float, clock: Clock) -> None:
    """Continue what is answered, at each look, however long the server or the store is away, or whatever one raises."""
    is_away = False
    while True:
        try:
            await outlast(client.continue_answered)
            is_away = False
        except Exception as error:  # the server's, or the store's
            if not is_away:
                _log.warning("answers are not passed on: %s: %s", type(error).__name__, error)
            is_away = True
        await clock.sleep(seconds)
