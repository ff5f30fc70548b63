"""A live view of an agent's turns, fed by its hooks."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from toolcrib import Agent, Turn
from toolcrib.turns import ContextItem, StopReason

STYLES = {
    StopReason.COMPLETED: "green",
    StopReason.SUSPENDED: "yellow",
    StopReason.CANCELLED: "dim",
    StopReason.TIMEOUT: "red",
    StopReason.ERROR: "red",
}


class Board:
    """A table with a line for each turn: what it is, how it stands, what it gave last.

    Enter it to show the table while the body runs.
    """

    def __init__(self, console: Console) -> None:
        self._turns: dict[Turn[Any], str] = {}
        self._live = Live(console=console, get_renderable=self._table, refresh_per_second=12)

    def watch(self, agent: Agent) -> None:
        """Show the agent's turns from now on."""

        @agent.after_put
        async def put(agent: Agent, turn: Turn[Any]) -> None:
            self._turns.setdefault(turn, "")

        @agent.on_turn_value
        async def value(agent: Agent, turn: Turn[Any], value: Any) -> None:
            if not isinstance(value, Turn | ContextItem):
                self._turns[turn] = str(value)

        @agent.on_error
        async def error(turn: Turn[Any], exc: Exception) -> None:
            self._turns[turn] = str(exc)

    @contextmanager
    def paused(self) -> Generator[None]:
        """Leave the terminal to other code for the body."""
        self._live.stop()
        try:
            yield
        finally:
            self._live.start()

    def __enter__(self) -> None:
        self._live.start()

    def __exit__(self, *error: object) -> None:
        self._live.stop()

    def _table(self) -> Table:
        table = Table("turn", "stands", "seconds", "last", box=None, header_style="dim")
        for turn, last in self._turns.items():
            given = ", ".join(f"{key}={value}" for key, value in turn.kwargs.items())
            table.add_row(Text(f"{turn.tool_name}({given})"), _state(turn), _seconds(turn), Text(last))
        return table


def _state(turn: Turn[Any]) -> str:
    if turn.is_running:
        return "[cyan]running[/]"
    if turn.stop_reason is None:
        return "[dim]waits[/]"
    return f"[{STYLES[turn.stop_reason]}]{turn.stop_reason.value}[/]"


def _seconds(turn: Turn[Any]) -> str:
    if turn.start_time is None or turn.end_time is None:
        return ""
    return f"{(turn.end_time - turn.start_time).total_seconds():.2f}"
