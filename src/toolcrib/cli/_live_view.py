"""LiveView, a sink that shows this process's calls in the terminal, and `toolcrib watch`, which shows a database's."""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Never, Self

import typer

from toolcrib.calls import ActivityEvent, CallEvent
from toolcrib.cli._activity_view import activity_summary, activity_table, show_activities
from toolcrib.cli._database import DatabaseOption, database_errors
from toolcrib.cli._formatting import console
from toolcrib.cli._runs import DatabaseArgument, kept_log
from toolcrib.cli._status import exit_on_error
from toolcrib.record import SqliteSink


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
