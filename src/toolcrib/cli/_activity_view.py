"""Activity view: what runs in a log of events, as a table that changes with it, or as a line for each change."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, cast

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from toolcrib.calls import now
from toolcrib.cli._formatting import cell_text, table_of
from toolcrib.record import QUIET, Activity, ActivityFilter, EventLog, brief_event

__all__ = ["activity_table", "show_activities"]

_EVERY = 0.5  # seconds
_CELL = 50  # characters of a cell of the table: an id has fewer
_MOST_OPEN, _MOST_WAITING, _MOST_ENDED = 40, 20, 5
_STYLES = {"running": "cyan", "suspended": "yellow", "quiet": "dim", "completed": "green", "failed": "red"}


@dataclass(frozen=True, slots=True)
class Shown:
    """One call or run as a row.

    Attributes:
        state: How it stands; `quiet` for one that runs, and of which nothing came for a minute.
        depth: Inside how many others of the rows it goes on.
        seconds: How long it has run, or ran.
        at: The value that a call gave last or how far it says it has come, or what an open one waits for.
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


def show_activities(log: EventLog, screen: Console, ended: threading.Event) -> None:
    """Show what runs until `ended` is set: as a table on a terminal, elsewhere as a line for each change."""
    if not screen.is_terminal:
        _print_changes(log, screen, ended)
        return
    with Live(activity_table(log), console=screen, auto_refresh=False) as live:
        while not ended.wait(_EVERY):
            live.update(activity_table(log), refresh=True)
        live.update(activity_table(log), refresh=True)


def _print_changes(log: EventLog, screen: Console, ended: threading.Event) -> None:
    position = log.last()
    for one in _rows(log):
        screen.print(_line(one), soft_wrap=True)
    is_over = False
    while not is_over:
        is_over = ended.wait(_EVERY)
        for activity in log.changed(position):
            position = activity.last_position
            screen.print(_line(_row(log, activity, 0)), soft_wrap=True)


def _line(one: Shown) -> Text:
    return Text("  ".join(cell_text(text) for text in one.cells() if text))


def activity_table(log: EventLog) -> Table:
    """Return what is open, each with what goes on inside it, and what ended last."""
    table = table_of("what", "state", "for", "at", "model", "id")
    for one in _rows(log):
        what, state, *others = (cell_text(text, _CELL) for text in one.cells())
        what = "  " * one.depth + what.lstrip()
        table.add_row(Text(what), Text(state, style=_STYLES.get(state, "")), *(Text(text) for text in others))
    return table


def _rows(log: EventLog) -> Iterator[Shown]:
    """Yield what is open, each with what goes on or ended last inside it, and then what else ended last."""
    running = log.activities(ActivityFilter(statuses=("running",)), limit=_MOST_OPEN)
    waiting = log.activities(ActivityFilter(statuses=("suspended",)), limit=_MOST_WAITING)
    open_ones = (*running, *waiting)
    inside = ActivityFilter(parent_ids=tuple(one.id for one in open_ones))
    done = [] if not open_ones else log.activities(inside, limit=_MOST_OPEN)
    done = [one for one in done if one.ended_at is not None and one.source != "chat"][:_MOST_ENDED]
    turns = tuple(one.id for one in done if one.source == "turn")
    done += log.activities(ActivityFilter(sources=("call",), ids=turns)) if turns else []  # a call has its turn's id
    yield from _nested(log, sorted((*open_ones, *done), key=lambda one: one.first_position))
    ended = (one for one in log.activities(ActivityFilter(top=True), limit=100) if one.ended_at is not None)
    for one in sorted(ended, key=lambda one: one.last_position, reverse=True)[:_MOST_ENDED]:
        yield _row(log, one, 0)


def _nested(log: EventLog, several: Sequence[Activity]) -> Iterator[Shown]:
    turns = {one.id: one for one in several if one.source == "turn"}
    calls = {one.id for one in several if one.source == "call"}
    inside: dict[str, list[Activity]] = {}
    for one in several:
        if one.source == "turn" and one.id in calls:
            continue  # the call has the turn's id, and says more
        within = turns[one.id].parent_id if one.parent_id == one.id and one.id in turns else one.parent_id
        known = within != one.id and any(other.id == within for other in several)
        inside.setdefault(within if within and known else "", []).append(one)

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
    event = log.latest(one, "progressed", "yielded") if one.source == "call" else None
    return "" if event is None else brief_event(event)["text"]


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
