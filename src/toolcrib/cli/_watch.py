"""`toolcrib watch`: the open calls and runs in a database, as they change."""

from __future__ import annotations

import threading
from typing import Annotated

import typer

from toolcrib.cli._activity_view import activity_table, show_activities
from toolcrib.cli._database import DatabaseOption, database_errors
from toolcrib.cli._formatting import console
from toolcrib.cli._runs import DatabaseArgument, kept_log
from toolcrib.cli._status import exit_on_error


def watch(
    named: DatabaseArgument = None,
    once: Annotated[bool, typer.Option("--once", help="Show what runs now, and end.")] = False,
    database: DatabaseOption = None,
) -> None:
    """Show what runs in a database: for how long, at what cost, what waits for a person, what ended last.

    It goes on until Ctrl-C. Where stdout is not a terminal, it writes a line for each change.
    """
    name = named or database
    with exit_on_error():
        log = kept_log(name)
        with database_errors(name):
            try:
                if once:
                    screen = console()
                    screen.print(activity_table(log, screen.width))
                else:
                    show_activities(log, console(), threading.Event())
            except KeyboardInterrupt:
                return
