"""`toolcrib replay`: the outcomes of recorded calls under other tools or another policy."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from toolcrib._numbers import count_text
from toolcrib._passwords import hide_passwords
from toolcrib._run_sync import run_sync
from toolcrib.cli._database import DatabaseOption, database_errors
from toolcrib.cli._find_toolset import open_toolset, tools_of
from toolcrib.cli._formatting import JsonOption, arguments_text, cell_text, console, print_json, say, table_of
from toolcrib.cli._runs import DatabaseArgument, SinceOption, kept_log
from toolcrib.cli._status import Status, exit_on_error
from toolcrib.cli._times import time_of
from toolcrib.provenance import Provenance
from toolcrib.record import EventLog
from toolcrib.replay import Difference, Replay, replay
from toolcrib.toolsets import Toolset

_MOST_LINES = 100


def replay_command(
    named: DatabaseArgument = None,
    tools: Annotated[
        str | None,
        typer.Option(
            "--tools", metavar="TARGET", help="The tools as they would be, as for `call`.", show_default=False
        ),
    ] = None,
    policy: Annotated[
        Path | None,
        typer.Option("--policy", metavar="FILE", help="The policy as it would be, a TOML file.", show_default=False),
    ] = None,
    without_hooks: Annotated[
        bool, typer.Option("--without-hooks", help="Do not run decision hooks and pre hooks, which may do anything.")
    ] = False,
    since: SinceOption = None,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", min=1, help="Only the runs of the latest N calls.")
    ] = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Replay recorded calls through changed tools or a changed policy, executing none, and list what would differ."""
    if tools is None:
        raise typer.BadParameter(_without_tools(named or database, policy), param_hint="--tools")
    name = named or database
    with exit_on_error():
        rules = None if policy is None else _policy(policy)
        toolset = tools_of(tools)
        log = kept_log(name)
        logging.getLogger("toolcrib.tools").addHandler(logging.NullHandler())  # a hook that fails is in the report
        with database_errors(name):
            found = run_sync(
                _replayed(log, toolset, rules, time_of(since, "--since"), limit, asks_hooks=not without_hooks)
            )
    if as_json:
        print_json(found.to_dict())
    else:
        _print(found)
    raise typer.Exit(Status.FAILED if found.differences else Status.DONE)


def _without_tools(database: str | None, policy: Path | None) -> str:
    """Return the error for a missing TARGET, with the command to run.

    The database does not say where the tools are: importing what it names would run the code of its writer.
    """
    words = [
        "toolcrib",
        "replay",
        *([hide_passwords(database)] if database else []),
        *(["--policy", str(policy)] if policy else []),
    ]
    why = "the calls go through the tools" if policy is None else "a policy goes by what the tools' code declares"
    return f"{why}: name them as `call`, `serve` or `worker` was given them: {shlex.join(words)} --tools TARGET"


def _policy(path: Path) -> Provenance:
    try:
        return Provenance.load(path)
    except OSError as error:
        say(f"cannot read the policy {path}: {error.strerror}")
        raise typer.Exit(Status.MISUSED) from None


async def _replayed(
    log: EventLog,
    toolset: Toolset,
    policy: Provenance | None,
    since: datetime | None,
    limit: int | None,
    *,
    asks_hooks: bool,
) -> Replay:
    async with open_toolset(toolset) as bound:
        return await replay(log, bound, provenance=policy, asks_hooks=asks_hooks, since=since, limit=limit)


def _print(found: Replay) -> None:
    screen = console()
    if found.differences:
        counted = table_of("tool", "change", "calls")
        for (tool, change), number in found.summary().items():
            counted.add_row(Text(cell_text(tool)), Text(cell_text(change)), str(number))
        screen.print(counted)
        screen.print()
        screen.print(_lines(found.differences))
    if found.undecided:
        screen.print("\nundecided:")
        screen.print(_lines(found.undecided))
    of = f"{count_text(found.calls, 'call')} of {count_text(found.runs, 'run')}"
    summary = f"{of}: {len(found.differences):,} would differ"
    say(f"{summary}, {len(found.undecided):,} undecided" if found.undecided else summary)
    for remark in found.remarks:
        say(f"note: {remark}")


def _lines(several: Sequence[Difference]) -> object:
    table = table_of("call", "tool", "arguments", "change", "why")
    for difference in several[:_MOST_LINES]:
        arguments = arguments_text(difference.call.attempts[0].arguments)
        cells = (difference.call.id, difference.call.tool, cell_text(arguments, 60), difference.change, difference.why)
        table.add_row(*(Text(cell_text(cell, 200)) for cell in cells))
    if len(several) > _MOST_LINES:
        table.add_row(Text(f"({len(several) - _MOST_LINES:,} more; --json has them all)"))
    return table
