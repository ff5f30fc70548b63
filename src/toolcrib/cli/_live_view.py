"""Open calls and runs in the terminal, as a changing table or a line for each change: `LiveView`, and `watch`."""

from __future__ import annotations

import atexit
import sys
import threading
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Never, Self

import typer
from rich.console import Console, Group, OverflowMethod, RenderableType
from rich.constrain import Constrain
from rich.live import Live
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from toolcrib._numbers import count_text
from toolcrib.calls import ActivityEvent, CallEvent, now
from toolcrib.cli._database import DatabaseOption, database_errors
from toolcrib.cli._formatting import cell_text, console, table_of
from toolcrib.cli._runs import DatabaseArgument, kept_log
from toolcrib.cli._status import exit_on_error
from toolcrib.record import Activity, ActivityFilter, EventLog, KeptEvent, SqliteSink, brief_event

_EVERY = 0.5  # seconds
_CELL = 50  # characters of a cell of the table: an id has fewer
_BAR = 8  # characters of a bar of progress
_ID = 22  # characters that tell ids apart: those of one process begin with the same 17
_NARROW, _ROOMY, _WIDE = 76, 90, 120  # columns of a terminal: none fits, a bar fits beside its words, all fits
_OTHERS = ("at", "model", "id")  # columns that a narrow terminal has no room for
_MOST_REQUESTS = 10_000  # of a program to a model, whose usage is summed
_MOST_OPEN, _MOST_WAITING, _MOST_ENDED = 40, 20, 5
_STYLES = {"running": "cyan", "suspended": "yellow", "quiet": "dim", "completed": "green", "failed": "red"}


@dataclass(frozen=True, slots=True)
class Shown:
    """One call or run as a row.

    Attributes:
        state: Its status; `quiet` for a running one without an event for a minute.
        depth: The number of other rows that it is inside of.
        seconds: The time that it has run, or ran.
        at: The last value or progress of a call, or the reason for which an open one waits.
        usage: The tokens and the cost of its requests to a model so far.
        done: The part that a call says is done, and the total that it grows to.
    """

    activity: Activity
    state: str
    depth: int
    seconds: float
    at: str
    usage: str
    done: tuple[float, float] | None

    def cells(self) -> list[str]:
        """Return the row's texts."""
        title = f"{'  ' * self.depth}{self.activity.source} {self.activity.name}"
        return [title, self.state, _time(self.seconds), self.at, self.usage, self.activity.id]

    def bars(self) -> list[ProgressBar]:
        """Return a bar of how far a call has come, if it says of how much."""
        return [] if self.done is None else [ProgressBar(self.done[1], self.done[0], width=_BAR)]


def show_activities(log: EventLog, screen: Console, ended: threading.Event) -> None:
    """Show what runs until `ended` is set: as a table on a terminal, elsewhere as a line for each change."""
    if not screen.is_terminal:
        _print_changes(log, screen, ended)
        return
    is_shared = sys.stdout.isatty()  # else what the program prints is for a file or another program
    with Live(console=screen, auto_refresh=False, redirect_stdout=is_shared) as live:
        is_over = False
        while not is_over:
            live.update(_frame(log, screen), refresh=True)
            is_over = ended.wait(_EVERY)
        live.update(_frame(log, screen), refresh=True)


def _frame(log: EventLog, screen: Console) -> Constrain:
    """Return the table with the last columns of the terminal left free, where it writes a ^C that is typed."""
    width = screen.width - 2
    return Constrain(activity_table(log, width), width)


def _print_changes(log: EventLog, screen: Console, ended: threading.Event) -> None:
    position, running = log.last(), dict[tuple[str, str, str], Shown]()

    def show(row: Shown) -> None:
        screen.print(Text("  ".join(cell_text(text) for text in row.cells() if text)), soft_wrap=True)
        running.pop(row.activity.key, None)
        if row.activity.status == "running":
            running[row.activity.key] = row

    for row in _rows(log):
        show(row)
    is_over = False
    while not is_over:
        is_over = ended.wait(_EVERY)
        for activity in log.changed(position):
            position = activity.last_position
            show(_row(log, activity, 0))
        for before in [*running.values()][-_MOST_OPEN:]:  # no event says that nothing comes any more
            if _state(log, before.activity) != before.state:
                show(_row(log, before.activity, 0))


def activity_table(log: EventLog, width: int) -> Table:
    """Return a table of the open activities, each with its inner ones, and of the last that ended.

    Texts are cut and not folded, so that a row keeps its height: of an id its beginning is left, by which `trace` finds
    it. On a narrow terminal there are no ids, and how far it has come and its usage stand below what it is. A bar has a
    column of its own where there is room, and else the place of its words.
    """
    is_narrow = width < _NARROW
    rows = [*_rows(log)]
    has_bars = width >= _ROOMY and any(row.done for row in rows)
    others = () if is_narrow else ("done", *_OTHERS) if has_bars else _OTHERS
    table = table_of("what", "state", "for", *others)
    for column in (table.columns[1], table.columns[2]):
        column.no_wrap = True
    if not is_narrow:
        table.columns[-1].no_wrap, table.columns[-1].max_width = True, None if width > _WIDE else _ID
    for row in rows:
        title, state, took, at, model, id = (cell_text(text, _CELL) for text in row.cells())
        edge, bars = "  " * row.depth, row.bars()
        lines: list[RenderableType] = [_cut(edge + title.lstrip())]
        if is_narrow:
            lines += [Padding(bar, (0, 0, 0, len(edge) + 2)) for bar in bars]
            lines += [_cut(f"{edge}  {text}") for text in (at, model) if text]
        come: list[RenderableType] = [*(bars if bars or not has_bars else [Text()]), _cut(at)]
        rest = [] if is_narrow else [*(come if has_bars else come[:1]), _cut(model), _cut(id, "crop")]
        table.add_row(Group(*lines), Text(state, style=_STYLES.get(state, "")), took, *rest)
    return table


def activity_summary(log: EventLog, seconds: float) -> str:
    """Return one line about all that a log has: the calls, how many failed or wait, the time, tokens and cost."""
    calls = {status: number for (source, status), number in log.counts().items() if source == "call"}
    words = {"failed": "failed", "rejected": "rejected", "suspended": "waiting for a person"}
    parts = [f"{calls[status]:,} {text}" for status, text in words.items() if status in calls]
    usage = _usage_text(log, log.activities(ActivityFilter(sources=("chat",)), limit=_MOST_REQUESTS))
    return ", ".join(filter(None, [count_text(sum(calls.values()), "call"), *parts, _time(seconds), usage]))


def _cut(text: str, overflow: OverflowMethod = "ellipsis") -> Text:
    return Text(text, no_wrap=True, overflow=overflow)


def _rows(log: EventLog) -> Iterator[Shown]:
    """Yield the open activities, each with its inner ones, and then the last that ended."""
    running = log.activities(ActivityFilter(statuses=("running",)), limit=_MOST_OPEN)
    waiting = log.activities(ActivityFilter(statuses=("suspended",)), limit=_MOST_WAITING)
    open_ones = (*running, *waiting)
    inside = ActivityFilter(parent_ids=tuple(activity.id for activity in open_ones))
    done = [] if not open_ones else log.activities(inside, limit=_MOST_OPEN)
    done = [activity for activity in done if activity.ended_at is not None and activity.source != "chat"][:_MOST_ENDED]
    turns = tuple(activity.id for activity in done if activity.source == "turn")
    done += log.activities(ActivityFilter(sources=("call",), ids=turns)) if turns else []  # a call has its turn's id
    yield from _nested(log, sorted((*open_ones, *done), key=lambda activity: activity.first_position))
    ended = (
        activity for activity in log.activities(ActivityFilter(top=True), limit=100) if activity.ended_at is not None
    )
    for activity in sorted(ended, key=lambda activity: activity.last_position, reverse=True)[:_MOST_ENDED]:
        yield _row(log, activity, 0)


def _nested(log: EventLog, several: Sequence[Activity]) -> Iterator[Shown]:
    turns = {activity.id: activity for activity in several if activity.source == "turn"}
    calls = {activity.id for activity in several if activity.source == "call"}
    inside: dict[str, list[Activity]] = {}
    for activity in several:
        if activity.source == "turn" and activity.id in calls:
            continue  # the call has the turn's id, and says more
        within = (
            turns[activity.id].parent_id
            if activity.parent_id == activity.id and activity.id in turns
            else activity.parent_id
        )
        known = within != activity.id and any(other.id == within for other in several)
        inside.setdefault(within if within and known else "", []).append(activity)

    def rows(parent: str, depth: int) -> Iterator[Shown]:
        for activity in inside.pop(parent, []):
            yield _row(log, activity, depth)
            yield from rows(activity.id, depth + 1)

    yield from rows("", 0)


def _row(log: EventLog, activity: Activity, depth: int) -> Shown:
    ended = now() if activity.ended_at is None else datetime.fromisoformat(activity.ended_at)
    seconds = (ended - datetime.fromisoformat(activity.started_at)).total_seconds()
    event = log.latest(activity, "progressed", "yielded") if activity.source == "call" else None
    return Shown(
        activity,
        _state(log, activity),
        depth,
        max(0.0, seconds),
        _at(activity, event),
        _usage(log, activity),
        _done(activity, event),
    )


def _state(log: EventLog, activity: Activity) -> str:
    status, quiet_since = log.state(activity)
    return "quiet" if quiet_since is not None and status == "running" else status


def _done(activity: Activity, event: KeptEvent | None) -> tuple[float, float] | None:
    if event is None or event.kind != "progressed" or activity.status == "suspended":
        return None
    report: Mapping[str, float | None] = event.data["data"]
    done, total = report["progress"], report["total"]
    return (done, total) if done is not None and total else None


def _at(activity: Activity, event: KeptEvent | None) -> str:
    if activity.status == "suspended":
        return "waits for a person"
    return "" if event is None else brief_event(event)["text"]


def _usage(log: EventLog, activity: Activity) -> str:
    """Return the tokens and the cost of a run's requests to a model, or of one request."""
    if activity.source not in ("agent", "chat"):
        return ""
    asked = (
        [activity]
        if activity.source == "chat"
        else log.activities(ActivityFilter(sources=("chat",), parent_id=activity.id))
    )
    return _usage_text(log, asked)


def _usage_text(log: EventLog, asked: Sequence[Activity]) -> str:
    usage = log.usage(asked, "closed")
    if usage is None:
        return ""
    tokens, cost = usage["input_tokens"] + usage["output_tokens"], Decimal(usage["cost"] or 0)
    shown = [count_text(tokens, "token")] if tokens else []
    return ", ".join([*shown, *([f"${cost:.4f}"] if cost else [])])


def _time(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


class LiveView:
    """Shows on stderr what runs: for how long, how far it has come, its tokens and cost, and what ended last.

    A sink: `Agent(..., sinks=[LiveView()])`, `Run(sinks=[LiveView()])`, `Engine(sinks=[LiveView()])`. It appears with
    the first event, and stays as it is at `close`, the end of `with`, or the end of the process, with a line below it
    about all calls: how many, failed and waiting for a person, the time, tokens and cost. Where stderr is not a
    terminal, it writes a line for each change. The events are kept in a temporary file until it is closed.
    """

    def __init__(self, *given: Never) -> None:
        if given:
            raise TypeError(
                f"LiveView() takes nothing, and got {type(given[0]).__name__}. It is a sink: give it to what it shows, "
                "as Agent(..., sinks=[LiveView()]) or Session(..., run=Run(sinks=[LiveView()]))"
            )
        self._folder = TemporaryDirectory(prefix="toolcrib-")
        self._sink = SqliteSink(Path(self._folder.name) / "live.db")
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._is_hidden = self._is_closed = False
        self._began: float | None = None

    def emit(self, event: CallEvent) -> None:
        """Show an event of a call; one that comes after the view is closed is left out."""
        if not self._is_closed:
            self._sink.emit(event)
            self._show()

    def emit_activity(self, event: ActivityEvent) -> None:
        """Show an event of an activity; the same."""
        if not self._is_closed:
            self._sink.emit_activity(event)
            self._show()

    @contextmanager
    def paused(self) -> Generator[None]:
        """Leave the terminal to other code for the body: a question to a person."""
        self._hide()
        try:
            yield
        finally:
            self._is_hidden = False

    def close(self) -> None:
        """Show how all of it stands now, and end; closing twice does nothing."""
        if self._is_closed:
            return
        self._is_closed = True
        self._hide()
        if self._began is not None:
            summary = activity_summary(self._sink.log(), time.monotonic() - self._began)
            console(stderr=True).print(summary, style="bold")
        self._sink.close()
        self._folder.cleanup()
        atexit.unregister(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _show(self) -> None:
        if self._thread is not None or self._is_hidden:  # asked for every event
            return
        with self._lock:
            if self._thread is None and not self._is_closed:
                atexit.register(self.close)
                self._ended.clear()
                self._began = self._began or time.monotonic()
                shown = self._sink.log(), console(stderr=True), self._ended
                self._thread = threading.Thread(target=show_activities, args=shown, name="toolcrib: live", daemon=True)
                self._thread.start()

    def _hide(self) -> None:
        self._is_hidden = True
        with self._lock:
            if self._thread is not None:
                self._sink.flush()
                self._ended.set()
                self._thread.join()
                self._thread = None


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
