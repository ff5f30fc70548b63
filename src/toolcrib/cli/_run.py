"""What every command that runs tools has in common: the target, the answers, the record, the exit status."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Generator
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import Any, TypeVar

import typer

from toolcrib._run_sync import run_sync
from toolcrib.cli._approver import Answers, approver_of
from toolcrib.cli._database import open_events
from toolcrib.cli._find_toolset import toolset_of
from toolcrib.cli._formatting import say
from toolcrib.cli._target import load
from toolcrib.cli._terminal import Terminal
from toolcrib.errors import DatabaseError, SandboxError, ToolcribError
from toolcrib.pipeline import Run
from toolcrib.record import Sink
from toolcrib.toolsets import Toolset

__all__ = [
    "CliRun",
    "RunOptions",
    "Status",
    "known_tools",
    "one_sentence",
    "open_run",
    "opened",
    "recorder_of",
    "text_of",
    "tools_of",
]

T = TypeVar("T")


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
    answers: Answers
    timeout: float | None = None
    json: bool = False
    record: str | None = None


@dataclass(frozen=True, slots=True)
class CliRun:
    """A target that is ready to run, and the run that its calls belong to.

    Attributes:
        answers: What the flags say about approval.
        json: Whether stdout is for one JSON document and nothing else.
        terminal: Where a person watches and answers.
    """

    toolset: Toolset
    run: Run
    answers: Answers
    json: bool
    terminal: Terminal

    def wait(self, work: Callable[[CliRun], Coroutine[Any, Any, T]]) -> T:
        """Open the toolset and run `work` with it to its end; with `json`, what it prints goes to stderr."""
        with redirect_stdout(sys.stderr) if self.json else nullcontext():
            return run_sync(self._opened(work))

    async def _opened(self, work: Callable[[CliRun], Coroutine[Any, Any, T]]) -> T:
        async with opened(self.toolset) as toolset:
            answers = self.answers.named(toolset)
            self.run.approver = approver_of(answers, toolset, self.terminal if Terminal.present() else None)
            return await work(replace(self, toolset=toolset, answers=answers))


@contextmanager
def one_sentence() -> Generator[None]:
    """End the command with one sentence: with status 2 where it cannot be carried out, 130 on Ctrl-C."""
    try:
        yield
    except SandboxError as error:
        say(str(error))
        raise typer.Exit(Status.FAILED) from None
    except ToolcribError as error:
        say(str(error))
        raise typer.Exit(Status.MISUSED) from None
    except KeyboardInterrupt:
        say("interrupted")
        raise typer.Exit(Status.INTERRUPTED) from None


def tools_of(target: str) -> Toolset:
    """Return the toolset that a target means; raises TargetError."""
    return toolset_of(target, load(target))


def known_tools(target: str) -> Toolset:
    """Return the toolset that a target means with all its tools known: members that list themselves are asked."""

    async def known(toolset: Toolset) -> Toolset:
        async with opened(toolset) as bound:
            return bound

    return run_sync(known(tools_of(target)))


def opened(toolset: Toolset) -> AbstractAsyncContextManager[Toolset]:
    """Open what has to be opened; a tool that is not available now is shown, and refuses by itself."""
    return nullcontext(toolset) if toolset.is_open else toolset.open(hide_unavailable=False)


@contextmanager
def open_run(options: RunOptions, terminal: Terminal | None = None, watcher: Sink | None = None) -> Generator[CliRun]:
    """Load the target and prepare a run of its tools; the record file is closed at the end."""
    toolset = tools_of(options.target)
    answers = options.answers.named(toolset) if toolset.is_open else options.answers
    with recorder_of(options.record) as recorder:
        sinks = tuple(sink for sink in (recorder, watcher) if sink is not None)
        run = Run(sinks=sinks, entry="cli", hook_errors="fail")
        yield CliRun(toolset, run, answers, options.json, terminal or Terminal())


@contextmanager
def recorder_of(name: str | None) -> Generator[Sink | None]:
    """Give the body the sink that --record names; None without one."""
    if name is None:
        yield None
        return
    with ExitStack() as stack:
        try:
            sink = stack.enter_context(open_events(name))
        except OSError as error:
            if isinstance(error, DatabaseError):
                raise
            say(f"cannot write the record to {name}: {error.strerror}")
            raise typer.Exit(Status.MISUSED) from None
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
