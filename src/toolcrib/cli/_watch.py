"""`toolcrib watch`: what runs in a database now, as it changes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, cast

import typer
from rich.live import Live
from rich.table import Table
from rich.text import Text

from toolcrib.calls import now
from toolcrib.cli._database import DatabaseOption, database_errors
from toolcrib.cli._formatting import cell_text, console, table_of, write
from toolcrib.cli._run import exit_on_error
from toolcrib.cli._runs import DatabaseArgument, kept_log
from toolcrib.record import QUIET, Activity, ActivityFilter, EventLog
from toolcrib.schema import Progress

__all__ = ["watch"]

_EVERY = 0.5  # seconds
_MOST_OPEN, _MOST_WAITING, _MOST_ENDED = 40, 20, 5
_STYLES = {"running": "cyan", "suspended": "yellow", "quiet": "dim", "completed": "green", "failed": "red"}


@dataclass(frozen=True, slots=True)
class Shown:
    """One call or run as a row.

    Attributes:
        state: How it stands; `quiet` for one that runs, and of which nothing came for a minute.
        depth: Inside how many others of the rows it goes on.
        seconds: How long it has run, or ran.
        at: How far a call says it has come, or what an open one waits for.
        usage: The tokens and the cost of its requests to a model so far.
    """

    activity: Activity
    state: str
    depth: int
    seconds: float
    at: str
    usage: str

    def cells(self) -> list[str]:
        """Return the row's texts."""
        what = f"{'  ' * self.depth}{self.activity.source} {self.activity.name}"
        return [what, self.state, _time(self.seconds), self.at, self.usage, self.activity.id]


def watch(
    named: DatabaseArgument = None,
    once: Annotated[bool, typer.Option("--once", help="Show what runs now, and end.")] = False,
    database: DatabaseOption = None,
) -> None:
    """Show what runs in a database: for how long, at what cost, what waits for a person, what ended last.

    It goes on until Ctrl-C. Where stdout is no terminal, it writes a line for each change.
    """
    name = named or database
    with exit_on_error():
        log = kept_log(name)
        with database_errors(name):
            try:
                _show(log, once)
            except KeyboardInterrupt:
                return


def _show(log: EventLog, once: bool) -> None:
    screen = console()
    if once:
        screen.print(_table(log))
    elif screen.is_terminal:
        with Live(_table(log), console=screen, auto_refresh=False) as live:
            while True:
                time.sleep(_EVERY)
                live.update(_table(log), refresh=True)
    else:
        _write_changes(log)


def _write_changes(log: EventLog) -> None:
    position = log.last()
    for one in _rows(log):
        write(_line(one))
    while True:
        time.sleep(_EVERY)
        for activity in log.changed(position):
            position = activity.last_position
            write(_line(_row(log, activity, 0)))


def _line(one: Shown) -> str:
    return "  ".join(cell_text(text) for text in one.cells() if text) + "\n"


def _table(log: EventLog) -> Table:
    table = table_of("what", "state", "for", "at", "model", "id")
    for one in _rows(log):
        what, state, *others = (cell_text(text) for text in one.cells())
        what = "  " * one.depth + what.lstrip()
        table.add_row(Text(what), Text(state, style=_STYLES.get(state, "")), *(Text(text) for text in others))
    return table


def _rows(log: EventLog) -> Iterator[Shown]:
    """Yield what is open, each with what goes on inside it, and then what ended last."""
    running = log.activities(ActivityFilter(statuses=("running",)), limit=_MOST_OPEN)
    waiting = log.activities(ActivityFilter(statuses=("suspended",)), limit=_MOST_WAITING)
    yield from _nested(log, sorted((*running, *waiting), key=lambda one: one.first_position))
    ended = (one for one in log.activities(ActivityFilter(top=True), limit=100) if one.ended_at is not None)
    for one in sorted(ended, key=lambda one: one.last_position, reverse=True)[:_MOST_ENDED]:
        yield _row(log, one, 0)


def _nested(log: EventLog, open_ones: Sequence[Activity]) -> Iterator[Shown]:
    ids = {one.id for one in open_ones}
    inside: dict[str, list[Activity]] = {}
    for one in open_ones:
        parent = one.parent_id if one.parent_id in ids and one.parent_id != one.id else ""
        inside.setdefault(parent or "", []).append(one)

    def rows(parent: str, depth: int) -> Iterator[Shown]:
        for one in inside.pop(parent, []):
            yield _row(log, one, depth)
            yield from rows(one.id, depth + 1)

    yield from rows("", 0)


def _row(log: EventLog, one: Activity, depth: int) -> Shown:
    state, at = one.status, ""
    if one.ended_at is None:
        is_quiet = now() - datetime.fromisoformat(log.last_event_at(one)) > QUIET
        state = "quiet" if state == "running" and is_quiet else state
        at = _at(log, one)
    ended = now() if one.ended_at is None else datetime.fromisoformat(one.ended_at)
    seconds = (ended - datetime.fromisoformat(one.started_at)).total_seconds()
    return Shown(one, state, depth, max(0.0, seconds), at, _usage(log, one))


def _at(log: EventLog, one: Activity) -> str:
    if one.status == "suspended":
        return "waits for a person"
    event = log.latest(one, "progressed") if one.source == "call" else None
    return "" if event is None else str(Progress(**event.data["data"]))


def _usage(log: EventLog, one: Activity) -> str:
    """Return the tokens and the cost of a run's requests to a model, or of one request."""
    if one.source not in ("agent", "chat"):
        return ""
    asked = [one] if one.source == "chat" else log.activities(ActivityFilter(sources=("chat",), parent_id=one.id))
    tokens, cost = 0, Decimal(0)
    for each in asked:
        event = log.latest(each, "closed")
        said: Any = None if event is None else event.data["data"].get("usage")
        if isinstance(said, Mapping):
            usage = cast("Mapping[str, Any]", said)
            tokens += int(usage["input_tokens"]) + int(usage["output_tokens"])
            cost += Decimal(usage["cost"] or 0)
    shown = [f"{tokens:,} tokens"] if tokens else []
    return ", ".join([*shown, *([f"${cost:.4f}"] if cost else [])])


def _time(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
