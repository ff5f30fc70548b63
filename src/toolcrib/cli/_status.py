"""Exit status of a command, the sentence that ends it with an error, its question to a person, and a file it reads."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path

import typer

from toolcrib.cli._formatting import say
from toolcrib.cli._terminal import Terminal
from toolcrib.errors import SandboxError, ServerError, ToolcribError


class Status(IntEnum):
    """The exit status of a command."""

    DONE = 0
    FAILED = 1
    MISUSED = 2
    SUSPENDED = 3
    INTERRUPTED = 130


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


async def confirm(question: str, *, undone: str, meant: str) -> None:
    """Ask the person at the terminal before an action; end the command at any answer but yes.

    Args:
        undone: The sentence that it was not done.
        meant: The statement that `--yes` makes, where there is no terminal.
    """
    terminal = Terminal()
    if not terminal.is_interactive():
        terminal.say(f"{undone}: there is no terminal to confirm it on. Add --yes if {meant}")
        raise typer.Exit(Status.MISUSED)
    if (await terminal.ask(f"{question} [y]es, [n]o: ") or "").lower() not in ("y", "yes"):
        terminal.say(undone)
        raise typer.Exit(Status.FAILED)
