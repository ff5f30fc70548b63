"""MCP server of the command `serve`. Needs the extra `mcp`."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from typing import Any

import typer

from toolcrib.adapters.mcp_server import HttpOptions, McpServer, ServerOptions, build_server, serve_http, serve_stdio
from toolcrib.cli._database import open_approvals, shown_name
from toolcrib.cli._formatting import say
from toolcrib.cli._run import Status, name_of, recorder_of, tools_of
from toolcrib.cli._serve_options import ServeOptions
from toolcrib.cli._telemetry import telemetry_sink
from toolcrib.record import BatchSink, JsonLinesSink, Sink

__all__ = ["serve_target"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def serve_target(given: ServeOptions) -> None:
    """Serve until the client disconnects, or a signal stops it; raises what the target or the database raises."""
    http = _http(given) if given.transport == "http" else None
    with nullcontext() if http is not None else _clean_stdout():
        toolset = tools_of(given.target)
    telemetry = telemetry_sink() if given.telemetry else None
    watching = () if telemetry is None else (telemetry,)
    with recorder_of(given.record) as recorder:
        options = _options(given, watching if recorder is None else (recorder, *watching))
        if http is None:
            leave = partial(_leave, options, None if telemetry is None else telemetry.flush)
            _run(_over_stdio(given, build_server(toolset, options), leave))
        else:
            _run(_over_http(given, serve_http(toolset, options, http, started=lambda url: _announce(given, url)), http))


def _options(given: ServeOptions, sinks: tuple[Sink, ...]) -> ServerOptions:
    return ServerOptions(
        name=given.name or name_of(given.target),
        approve_by=given.approve_by,
        approvals=open_approvals(given.database),
        answered_in=f"the console, or the approvals of {shown_name(given.database)}",
        wait=given.wait,
        sinks=sinks,
        code_mode=given.code_mode,
        search=given.search,
        errors=given.errors,
    )


def _http(given: ServeOptions) -> HttpOptions:
    try:
        return HttpOptions(
            host=given.host,
            port=given.port,
            tokens=given.tokens,
            allowed_hosts=given.allowed_hosts,
            allowed_origins=given.allowed_origins,
        )
    except ValueError as error:
        say(f"{error}. Give tokens with --token NAME=SECRET" if not given.tokens else str(error))
        raise typer.Exit(Status.MISUSED) from None


# --- until it is stopped


def _run(work: Coroutine[Any, Any, None]) -> None:
    """Run to the end, or to the first Ctrl-C or SIGTERM."""
    with suppress(KeyboardInterrupt):
        asyncio.run(work)


async def _over_http(given: ServeOptions, work: Coroutine[Any, Any, None], http: HttpOptions) -> None:
    task = asyncio.ensure_future(work)
    with _stopping(task):
        try:
            await task
        except asyncio.CancelledError:
            say("stopped")
        except OSError as error:
            say(f"cannot listen on {http.host}:{http.port}: {error.strerror or error}")
            raise typer.Exit(Status.MISUSED) from None


async def _over_stdio(given: ServeOptions, server: McpServer, leave: Callable[[], None]) -> None:
    closed = asyncio.Event()
    task = asyncio.ensure_future(serve_stdio(server, ended=closed.set))
    with _stopping(task):
        _announce(given, None)
        done = asyncio.ensure_future(closed.wait())
        await asyncio.wait([task, done], return_when=asyncio.FIRST_COMPLETED)
        if not task.done() and task.cancelling():
            leave()
        done.cancel()
        with suppress(asyncio.CancelledError):
            await task
        if task.cancelling():  # stdin had ended as well, so that nothing was left to leave
            say("stopped")


def _leave(options: ServerOptions, flush: Callable[[], None] | None) -> None:
    """End the process although a thread waits for the next line of stdin, which cannot be stopped."""
    for sink in options.sinks:
        if isinstance(sink, BatchSink | JsonLinesSink):
            sink.close()
    if flush is not None:
        flush()
    say("stopped")
    sys.stderr.flush()
    os._exit(Status.DONE)


@contextmanager
def _stopping(task: asyncio.Future[None]) -> Generator[None]:
    """Have a signal cancel a task while the body runs."""
    loop = asyncio.get_running_loop()
    if sys.platform == "win32":  # its event loop takes no signals: Ctrl-C interrupts it
        yield
        return
    for number in _SIGNALS:
        loop.add_signal_handler(number, task.cancel)
    try:
        yield
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)


@contextmanager
def _clean_stdout() -> Generator[None]:
    """Send what the body prints to stderr: stdout is for the protocol."""
    sys.stdout.flush()
    stdout = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(stdout, 1)
        os.close(stdout)


# --- messages for the person


def _announce(given: ServeOptions, url: str | None) -> None:
    """Say on stderr where the tools are served, how clients connect, and how calls are approved."""
    if url is None:
        say(f"serving {given.target} over stdio; a client starts this command itself:")
        say(json.dumps({"mcpServers": {name_of(given.target): _command(given)}}))
    else:
        say(f"serving {given.target} on {url}")
        if given.tokens:
            say(f"with a bearer token of {', '.join(given.tokens)}")
    if given.approve_by == "store":
        where = "" if given.database is None else f" --database {shown_name(given.database)}"
        say(f"calls that need approval are answered with: toolcrib approvals list{where}")


def _command(given: ServeOptions) -> dict[str, Any]:
    return {"command": "toolcrib", "args": sys.argv[1:] or ["serve", given.target]}
