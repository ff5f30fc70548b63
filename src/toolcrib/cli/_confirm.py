"""The question to a person before an action that cannot be undone."""

from __future__ import annotations

import typer

from toolcrib.cli._status import Status
from toolcrib.cli._terminal import Terminal


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
