"""The run of a command: its target, approval flags, record and exit status."""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Callable, Coroutine, Generator
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import typer

from toolcrib._passwords import hide_passwords
from toolcrib._run_sync import run_sync
from toolcrib.cli._api import api_place, is_api, toolset_of_api
from toolcrib.cli._approver import ApprovalFlags, approver_of
from toolcrib.cli._database import open_events
from toolcrib.cli._find_toolset import toolset_of
from toolcrib.cli._formatting import say
from toolcrib.cli._target import load
from toolcrib.cli._terminal import Terminal
from toolcrib.errors import DatabaseError, SandboxError, ServerError, ToolcribError
from toolcrib.pipeline import Channel, Run
from toolcrib.record import Sink
from toolcrib.toolsets import Toolset

__all__ = [
    "CliRun",
    "RunOptions",
    "Status",
    "exit_on_error",
    "gateway_options_of",
    "is_file_of_servers",
    "is_servers",
    "listed_tools",
    "name_of",
    "open_run",
    "open_toolset",
    "recorder_of",
    "text_of",
    "tools_of",
]

T = TypeVar("T")
_SERVER_FILES = (".json", ".jsonc", ".toml")


class Status(IntEnum):
    """The exit status of a command."""

    DONE = 0
    FAILED = 1
    MISUSED = 2
    SUSPENDED = 3
    INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options that `call` and `exec` share."""

    target: str
    flags: ApprovalFlags
    json: bool = False
    record: str | None = None


@dataclass(frozen=True, slots=True)
class CliRun:
    """A target that is ready to run, and the run that its calls belong to.

    Attributes:
        flags: The flags that decide about approval.
        json: Whether stdout is for one JSON document and nothing else.
        terminal: The terminal of the person who runs the command.
    """

    toolset: Toolset
    run: Run
    flags: ApprovalFlags
    json: bool
    terminal: Terminal

    def wait(self, work: Callable[[CliRun], Coroutine[Any, Any, T]]) -> T:
        """Open the toolset and run `work` with it to its end; with `json`, what it prints goes to stderr."""
        with redirect_stdout(sys.stderr) if self.json else nullcontext():
            return run_sync(self._run_open(work))

    async def _run_open(self, work: Callable[[CliRun], Coroutine[Any, Any, T]]) -> T:
        async with open_toolset(self.toolset) as toolset:
            flags = self.flags.named(toolset)
            approver = approver_of(flags, toolset, self.terminal if Terminal.is_interactive() else None)
            run = self.run.view(approver=approver)
            return await work(replace(self, toolset=flags.gated(toolset), run=run, flags=flags))


@contextmanager
def exit_on_error() -> Generator[None]:
    """End the command with one sentence for an error: status 2 where it cannot be carried out, 130 on Ctrl-C."""
    try:
        yield
    except (SandboxError, ServerError) as error:
        say(str(error))
        raise typer.Exit(Status.FAILED) from None
    except ToolcribError as error:
        say(str(error))
        raise typer.Exit(Status.MISUSED) from None
    except KeyboardInterrupt:
        say("interrupted")
        raise typer.Exit(Status.INTERRUPTED) from None


def tools_of(target: str) -> Toolset:
    """Return the toolset of a target; raises TargetError.

    It is a Python object, an OpenAPI document, a file of MCP servers, or the address of one.
    """
    if is_api(target):
        return toolset_of_api(target)
    if is_servers(target):
        servers: Any = importlib.import_module("toolcrib.adapters.mcp_client")  # of an extra, which its error names
        if Path(target).suffix in _SERVER_FILES:
            return servers.toolset_of_file(Path(target))
        return servers.connect(target)
    return toolset_of(target, load(target))


def is_servers(target: str) -> bool:
    """Return whether a target is a file of MCP servers, or the address of one."""
    is_one = target.startswith(("http://", "https://")) or Path(target).suffix in _SERVER_FILES
    return is_one and not is_api(target)


def is_file_of_servers(target: str) -> bool:
    """Return whether a target is a file of MCP servers."""
    return is_servers(target) and Path(target).suffix in _SERVER_FILES and "://" not in target


def gateway_options_of(target: str) -> Any:
    """Return what a file of MCP servers says of the gateway as a whole; raises TargetError."""
    servers: Any = importlib.import_module("toolcrib.adapters.mcp_client")  # of an extra, which its error names
    return servers.gateway_options(Path(target))


def name_of(target: str) -> str:
    """Return the name of a target: that of the file, the module or the host."""
    if is_api(target):
        return Path(urlsplit(api_place(target)).path).stem
    if is_servers(target):
        return urlsplit(target).hostname or Path(target).stem
    place = target.partition(":")[0]
    return Path(place).stem if place.endswith((".py", ".pyw")) else place.rpartition(".")[2]


def listed_tools(target: str) -> Toolset:
    """Return the toolset of a target, with the tools that its members list."""

    async def opened(toolset: Toolset) -> Toolset:
        async with open_toolset(toolset) as bound:
            return bound

    return run_sync(opened(tools_of(target)))


def open_toolset(toolset: Toolset) -> AbstractAsyncContextManager[Toolset]:
    """Open a toolset if it is not open; a tool that is not available now is listed, and its calls are refused."""
    return nullcontext(toolset) if toolset.is_open else toolset.open(hide_unavailable=False)


@contextmanager
def open_run(options: RunOptions, terminal: Terminal | None = None, view: Sink | None = None) -> Generator[CliRun]:
    """Load the target and prepare a run of its tools; the record file is closed at the end."""
    toolset = tools_of(options.target)
    flags = options.flags.named(toolset) if toolset.is_open else options.flags
    with recorder_of(options.record) as recorder:
        sinks = tuple(sink for sink in (recorder, view) if sink is not None)
        run = Run(sinks=sinks, channel=Channel(entry="cli", hook_errors="fail"))
        # what a tool raised is on stderr in a line; its traceback is in the record, and in a log that the target opens
        logging.getLogger("toolcrib.tools").addHandler(logging.NullHandler())
        yield CliRun(toolset, run, flags, options.json, terminal or Terminal())


@contextmanager
def recorder_of(name: str | None) -> Generator[Sink | None]:
    """Give the sink that --record names; None without one."""
    if name is None:
        yield None
        return
    try:
        sink = open_events(name)
    except DatabaseError:
        raise
    except OSError as error:
        say(f"cannot write the record to {hide_passwords(name)}: {error.strerror}")
        raise typer.Exit(Status.MISUSED) from None
    with sink:
        yield sink


def text_of(name: str) -> str:
    """Return the text of a file, or of stdin for `-`."""
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        return data.decode("utf-8")
    except OSError as error:
        say(f"cannot read {name}: {error.strerror}")
    except UnicodeDecodeError:
        say(f"cannot read {'stdin' if name == '-' else name}: it is not UTF-8 text")
    raise typer.Exit(Status.MISUSED)
