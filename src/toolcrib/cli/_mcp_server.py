"""MCP server of the command `serve`, and the states of the servers behind it. Needs the extra `mcp`."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shlex
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, replace
from datetime import timedelta
from functools import partial
from importlib import import_module
from typing import Any

import typer

from toolcrib._passwords import hide_passwords
from toolcrib._run_sync import run_sync
from toolcrib.adapters.mcp_client import ServerStatus, server_of, server_statuses
from toolcrib.adapters.mcp_server import (
    AuthorizationServer,
    HttpEndpoint,
    HttpOptions,
    McpServer,
    ServerOptions,
    build_server,
    serve_endpoints,
    serve_stdio,
)
from toolcrib.calls import now
from toolcrib.cli._database import (
    absolute_database,
    database_name,
    database_or,
    database_url,
    open_approvals,
    open_server_states,
)
from toolcrib.cli._find_toolset import file_and_endpoint, is_file_of_servers, name_of, tools_of
from toolcrib.cli._formatting import say, say_cannot_listen
from toolcrib.cli._install import serve_command
from toolcrib.cli._run import recorder_of
from toolcrib.cli._serve import ServeOptions
from toolcrib.cli._status import Status
from toolcrib.cli._telemetry import telemetry_sink
from toolcrib.database import SqliteError
from toolcrib.errors import ServerError, ToolcribError, UnknownTool
from toolcrib.gateway import GatewayFile, GatewayOptions, read_gateway
from toolcrib.pipeline import Durability, Run, local_user
from toolcrib.record import BatchSink, JsonLinesSink, SelectingSink, Sink
from toolcrib.serving import ServerStates
from toolcrib.toolsets import Toolset, sources_of

_log = logging.getLogger("toolcrib.adapters")
_LOOK_SECONDS, _SAY_SECONDS = 1.0, 10.0  # between two looks at the servers; between two signs of life


class GatewayStates:
    """The states of this process's servers, kept in a database.

    Args:
        toolsets: The tools that it serves, at each of its endpoints.
        name: The name of the gateway.
        states: The store of the states; None where the console cannot read it.
    """

    def __init__(self, toolsets: Sequence[Toolset], name: str, states: ServerStates | None) -> None:
        self._toolsets, self._states = toolsets, states if any(map(sources_of, toolsets)) else None
        self._gateway = f"{name} (process {os.getpid()} on {socket.gethostname()})"

    async def during(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` to its end, and keep the states meanwhile."""
        saying = asyncio.create_task(self._say_always(), name="toolcrib: states of servers")
        try:
            await work
        finally:
            saying.cancel()
            await asyncio.wait({saying})
            self.forget()

    def forget(self) -> None:
        """Remove the state of the gateway, as it ends."""
        if self._states is not None:
            self._try(partial(self._states.forget, self._gateway))

    async def _say_always(self) -> None:
        last, waited = list[dict[str, Any]](), _SAY_SECONDS
        while self._states is not None:
            found = [_view(status) for toolset in self._toolsets for status in server_statuses(toolset)]
            if found != last or waited >= _SAY_SECONDS:
                await asyncio.to_thread(self._try, partial(self._states.keep, self._gateway, found))
                last, waited = found, 0.0
            await asyncio.sleep(_LOOK_SECONDS)
            waited += _LOOK_SECONDS

    def _try(self, work: Callable[[], None]) -> None:
        try:
            work()
        except SqliteError as error:  # the console shows old states; the calls go on
            _log.warning("the states of the servers are not kept for the console: %s", error)


def _view(status: ServerStatus) -> dict[str, Any]:
    """Return a status as JSON shapes."""
    since = None if status.since is None else status.since.isoformat()
    next_try = (now() + timedelta(seconds=status.retry_in)).isoformat(timespec="seconds") if status.retry_in else None
    view = {**asdict(status), "since": since, "changed": list(status.changed), "next_try": next_try}
    del view["retry_in"]
    return view


_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def serve_target(
    given: ServeOptions, tokens: Mapping[str, str], issued: Mapping[str, Any], scopes: Mapping[str, Sequence[str]]
) -> None:
    """Serve until the client disconnects, or a signal stops it; raises what the target or the database raises.

    Args:
        given: The options of the command line.
        tokens: Its secret of each principal.
        issued: Its arguments of an `AuthorizationServer`.
        scopes: Its scopes of tools, by name or pattern.
    """
    targets = _targets_of(given)
    file = _file_of(given.target)
    files = [_file_of(target.target).options for target in targets]
    https = [_http_options(*about, tokens, issued, scopes) for about in zip(targets, files, strict=True)]
    https = https if given.is_http else []
    with nullcontext() if https else _clean_stdout():
        toolsets = [_scoped(tools_of(target.target), scopes) for target in targets]
    telemetry = telemetry_sink() if targets[0].telemetry else None
    with recorder_of(targets[0].record) as recorder:
        watching = ((recorder, file.unrecorded), (telemetry, file.untraced))
        options = [
            _options(
                target,
                of_file,
                tuple(_without(sink, toolset, left_out) for sink, left_out in watching if sink is not None),
            )
            for target, of_file, toolset in zip(targets, files, toolsets, strict=True)
        ]
        database = targets[0].database
        states = GatewayStates(toolsets, options[0].name, open_server_states(database))
        pages = _consent_pages(file, database)
        if https:
            https[0] = https[0] if pages is None or pages.is_local else replace(https[0], routes=pages.routes())
            served = [HttpEndpoint(*parts) for parts in zip(toolsets, options, https, strict=True)]
            started = partial(_announce, given, database, http=https[0])
            work = _over_http(serve_endpoints(served, started=started), https[0])
        else:
            flush = None if telemetry is None else telemetry.flush
            leave = partial(_leave, recorder, flush, states)
            started = partial(_announce, given, database)
            work = _over_stdio(build_server(toolsets[0], options[0]), leave, started)
        _run(states.during(work if pages is None or not pages.is_local else pages.beside(work)))


def _file_of(target: str) -> GatewayFile:
    """Read a file of servers: the gateway, or the endpoint that the target names."""
    if not is_file_of_servers(target):
        return GatewayFile()
    path, endpoint = file_and_endpoint(target)
    return read_gateway(path, endpoint=endpoint)


def _targets_of(given: ServeOptions) -> list[ServeOptions]:
    """Return the options of each endpoint: of a file that has several each as a target, of anything else the one.

    Raises:
        Exit: Several are not served so; it was said why.
    """
    file = _file_of(given.target)
    several = [replace(given, target=f"{given.target}#{path}") for path in file.endpoints]
    if several and not given.is_http:
        say(
            f"{given.target} has several endpoints, which are served over HTTP: add --http, or name one of them, "
            f"as in {several[0].target}"
        )
        raise typer.Exit(Status.MISUSED)
    if several and (given.path is not None or given.public_url is not None):
        say(f"{given.target} says the path of each endpoint: leave out --path and --public-url")
        raise typer.Exit(Status.MISUSED)
    return [_completed(target, _file_of(target.target).options) for target in several or [given]]


def _completed(given: ServeOptions, file: GatewayOptions) -> ServeOptions:
    """Return the options of the command line, and where it says nothing those of the file."""
    database = database_or(given.database, file.approvals.database)
    record = given.record
    if record is None and file.record is not False:
        record = database_url(database) if file.record is True else file.record
    return replace(
        given,
        name=given.name or file.name,
        approve_by=given.approve_by or file.approvals.by,
        wait=file.approvals.wait if given.wait is None else given.wait,
        database=database,
        record=record,
        telemetry=given.telemetry or file.telemetry,
        errors=given.errors or file.errors,
        search=given.search or file.search,
        code_mode=given.code_mode or file.code_mode,
    )


def _consent_pages(file: GatewayFile, database: str | None) -> Any:
    """Return the consent pages, where a server has credentials of each principal."""
    if file.credentials is None:
        return None
    pages: Any = import_module("toolcrib.cli._consent_pages")  # of an extra, which its error names
    return pages.ConsentPages(file.credentials, open_approvals(database))


def _without(sink: Sink, toolset: Toolset, servers: frozenset[str]) -> Sink:
    """Return a sink that is not given the calls of some servers."""
    return SelectingSink(sink, lambda tool: server_of(toolset, tool) not in servers) if servers else sink


def _options(given: ServeOptions, file: GatewayOptions, sinks: tuple[Sink, ...]) -> ServerOptions:
    policy, approvals = file.policy, open_approvals(given.database)
    store, features = approvals if given.store else None, () if policy is None else (policy,)
    limits = file.limits.of_calls
    database = hide_passwords(
        database_name(given.database)
    )  # as it was given: a client is told no path of this machine
    options = ServerOptions(
        name=given.name or name_of(given.target),
        instructions=file.instructions or "",
        approve_by=given.approve_by or "store",
        elicit_always=file.approvals.elicit_always,
        approvals=approvals,
        answered_in=file.approvals.place or f"the console, or the approvals of {database}",
        wait=given.wait or 0.0,
        run=None
        if policy is None and store is None
        else lambda principal: Run(limits=limits, features=features, durability=Durability(store)),
        limits=limits,
        sinks=sinks,
        code_mode=given.code_mode,
        search=given.search,
        errors=given.errors,
    )
    return options if file.limits.pending is None else replace(options, max_pending=file.limits.pending)


def _http_options(
    given: ServeOptions,
    file: GatewayOptions,
    tokens: Mapping[str, str],
    issued: Mapping[str, Any],
    scopes: Mapping[str, Sequence[str]],
) -> HttpOptions:
    """Return where a server listens, and whose tokens it takes: as the command says, and else as the file does.

    Raises:
        Exit: They do not go together; it was said why.
    """

    def first(name: str) -> dict[str, Any]:
        option = getattr(given, name)
        found = getattr(file.http, name) if option is None else option
        return {} if found is None else {name: found}

    issued = {**({} if file.auth is None else file.auth.of_server), **issued}
    if issued.keys() == {"client_secret"}:  # the environment has it, and nothing asks for it
        issued = {}
    try:
        if issued and "issuer" not in issued:
            raise ValueError(
                f"{', '.join(sorted(issued))}: of which authorization server? Give its address with --issuer URL"
            )
        server = AuthorizationServer(**issued) if issued else None
        if server is None and (file.scopes or file.groups or scopes):
            raise ValueError(
                "tools that need scopes or groups are for tokens of an authorization server, as no other has them: "
                "give its address with --issuer URL"
            )
        return HttpOptions(
            **first("host"),
            **first("port"),
            **first("path"),
            **first("public_url"),
            tokens={**file.tokens_env, **tokens},
            authorization_server=server,
            allowed_hosts=(*file.http.allowed_hosts, *(given.allow_host or ())),
            allowed_origins=(*file.http.allowed_origins, *(given.allow_origin or ())),
        )
    except ValueError as error:
        known = issued or tokens or file.tokens_env or file.scopes or file.groups
        say(str(error) if known else f"{error}. Give tokens with --token NAME=SECRET, or --issuer URL")
        raise typer.Exit(Status.MISUSED) from None


def _scoped(toolset: Toolset, scopes: Mapping[str, Sequence[str]]) -> Toolset:
    """Return a toolset whose tools need the scopes of the command line, too."""
    try:
        return toolset.with_scopes(scopes) if scopes else toolset
    except (UnknownTool, ValueError) as error:
        say(f"--tool-scope: {error}")
        raise typer.Exit(Status.MISUSED) from None


# --- until it is stopped


def _run(work: Coroutine[Any, Any, None]) -> None:
    """Run to the end, or to the first Ctrl-C or SIGTERM."""
    with suppress(KeyboardInterrupt):
        run_sync(work)


async def _over_http(work: Coroutine[Any, Any, None], http: HttpOptions) -> None:
    task = asyncio.ensure_future(work)
    with _stopping(task):
        try:
            await task
        except asyncio.CancelledError:
            say("stopped")
        except ServerError:  # one behind this one, and an OSError, too
            raise
        except OSError as error:
            say_cannot_listen(http.host, http.port, error)
            raise typer.Exit(Status.MISUSED) from None


async def _over_stdio(
    server: McpServer, leave: Callable[[ToolcribError | None], None], started: Callable[[], None]
) -> None:
    closed: asyncio.Future[ToolcribError | None] = asyncio.get_running_loop().create_future()
    task = asyncio.ensure_future(serve_stdio(server, ended=closed.set_result))
    with _stopping(task):
        started()
        await asyncio.wait([task, closed], return_when=asyncio.FIRST_COMPLETED)
        fault = closed.result() if closed.done() else None
        if not task.done() and (task.cancelling() or fault is not None):
            leave(fault)
        with suppress(asyncio.CancelledError):
            await task
        if task.cancelling():  # stdin had ended as well, so that nothing was left to leave
            say("stopped")


def _leave(
    recorder: Sink | None, flush: Callable[[], None] | None, states: GatewayStates, fault: ToolcribError | None
) -> None:
    """End the process although a thread waits for the next line of stdin, which cannot be stopped."""
    states.forget()
    if isinstance(recorder, BatchSink | JsonLinesSink):
        recorder.close()
    if flush is not None:
        flush()
    say("stopped" if fault is None else str(fault))
    sys.stderr.flush()
    os._exit(Status.DONE if fault is None else Status.FAILED if isinstance(fault, ServerError) else Status.MISUSED)


@contextmanager
def _stopping(task: asyncio.Future[None]) -> Generator[None]:
    """Cancel a task on a signal while the body runs."""
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


def _announce(
    given: ServeOptions, database: str | None, url: str | None = None, http: HttpOptions | None = None
) -> None:
    """Print on stderr where the tools are served, how clients connect, and how calls are approved."""
    if url is None:
        say(f"serving {given.target} over stdio; a client starts this command itself:")
        say(json.dumps({"mcpServers": {name_of(given.target): serve_command(given.target, *_words(given, database))}}))
    else:
        say(f"serving {given.target} on {url}")
        if http is not None and http.tokens:
            say(f"with a bearer token of {', '.join(http.tokens)}")
        if http is not None and http.authorization_server is not None:
            say(f"with tokens of {http.authorization_server.issuer}")
        if http is not None and not http.known_callers:
            say(f"without tokens: every client on this machine is the one principal `{local_user()}`")
    if given.approve_by in (None, "store"):
        words = ["toolcrib", "approvals", "list", "--database", hide_passwords(absolute_database(database))]
        say(f"calls that need approval are answered with: {shlex.join(words)}")


def _words(given: ServeOptions, database: str | None) -> list[str]:
    """Return the options of `serve` over stdio as words that mean the same in any folder, but for a password."""
    name, record = absolute_database(database), given.record
    values = {
        "--name": given.name,
        "--approve-by": given.approve_by,
        "--wait": None if given.wait is None else f"{given.wait:g}",
        "--database": name if hide_passwords(name) == name else None,
        "--record": None if record is None else absolute_database(record),
        "--errors": given.errors,
    }
    flags = ("code_mode", "search", "store", "telemetry")
    words = [word for option, value in values.items() if value is not None for word in (option, value)]
    return words + [f"--{flag.replace('_', '-')}" for flag in flags if getattr(given, flag)]
