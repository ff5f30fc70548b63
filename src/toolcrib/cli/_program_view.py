"""Live view of a program: its output as it comes, and below it the calls that run now."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from toolcrib.calls import CallEvent, cut
from toolcrib.cli._formatting import arguments_text, write
from toolcrib.cli._terminal import escape_control

_MAX_CALLS = 8  # calls shown at a time


class ProgramView:
    """Shows a run on a terminal; without one it only passes output on. A sink of call events.

    Args:
        console: The terminal, on stderr.
        live: Whether to show running calls, where `console` is a terminal.
    """

    def __init__(self, console: Console, *, live: bool) -> None:
        self._console = console
        self._running: dict[str, str] = {}
        self._line = ""  # printed so far without a line end: a live view can only stand below whole lines
        self._live: Live | None = None
        self._wanted = live and console.is_terminal

    def emit(self, event: CallEvent) -> None:
        """Show a call that begins or ends."""
        if event.kind == "started":
            arguments = arguments_text(event.data["arguments"])
            self._running[event.call_id] = escape_control(cut(f"{event.tool}({arguments})", 200)).replace("\n", " ")
        elif event.kind == "ended":
            self._running.pop(event.call_id, None)

    def output(self, text: str, stream: str = "stdout") -> None:
        """Show output of the program; its stderr is shown at the end, with the traceback."""
        if stream != "stdout":
            return
        if self._live is None or not sys.stdout.isatty():
            write(text)
            return
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            self._console.print(Text(escape_control(line)))

    @contextmanager
    def shown(self) -> Generator[None]:
        """Show the live view while the body runs."""
        if not self._wanted:
            yield
            return
        self._live = Live(
            console=self._console,
            get_renderable=self._render,
            refresh_per_second=10,
            transient=True,
            redirect_stdout=sys.stdout.isatty(),
        )
        try:
            with self._live:
                yield
        finally:
            self._live = None
            if self._line:
                write(self._line + "\n")
                self._line = ""

    @contextmanager
    def paused(self) -> Generator[None]:
        """Hide the live view while the body runs."""
        live = self._live
        if live is None:
            yield
            return
        live.stop()
        try:
            yield
        finally:
            live.start()

    def _render(self) -> RenderableType:
        running = list(self._running.values())
        shown = running[:_MAX_CALLS] or ["running"]
        more = [Text(f"  and {len(running) - _MAX_CALLS} more")] if len(running) > _MAX_CALLS else []
        return Group(*(self._spinner(text) for text in shown), *more)

    def _spinner(self, text: str) -> Spinner:
        spinner = Spinner("dots", Text(text, overflow="ellipsis", no_wrap=True))
        spinner.start_time = 0.0  # all of them turn together, though each is made anew
        return spinner
