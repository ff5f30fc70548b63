"""How calls and tools look on a screen, and as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any, cast

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from toolcrib.calls import CallRecord, Outcome, Suspended, cut
from toolcrib.cli._terminal import visible
from toolcrib.toolsets import Toolset

__all__ = ["arguments_text", "calls_table", "outcome_json", "print_json", "say", "tools_json", "tools_table", "write"]

_WIDE = 200  # characters of one cell
_STYLES = {"completed": "green", "failed": "red", "rejected": "yellow", "suspended": "yellow", "cancelled": "red"}


def say(text: str) -> None:
    """Write one line for a person, to stderr."""
    typer.echo(visible(text) if sys.stderr.isatty() else text, err=True)


def write(text: str) -> None:
    """Write a result to stdout, at once; a terminal gets its control characters written out."""
    shown = visible(text) if sys.stdout.isatty() else text
    encoding = sys.stdout.encoding
    sys.stdout.write(shown.encode(encoding, "backslashreplace").decode(encoding))  # half a surrogate pair is no error
    sys.stdout.flush()


def print_json(data: Any) -> None:
    """Write one JSON document to stdout."""
    write(json.dumps(data, ensure_ascii=False, indent=2) + "\n")


# --- tools


def _marks(toolset: Toolset, name: str) -> list[str]:
    entry = toolset[name]
    options, tool = entry.tool.options, entry.tool
    marks = {
        "approval": bool(entry.approvals),
        "streams": tool.is_streaming,
        "locked": options.lock is not False,
        "off": entry.off,
        "no function": tool.fn is None,
    }
    return [mark for mark, holds in marks.items() if holds] + [f"#{tag}" for tag in sorted(tool.tags)]


def tools_json(toolset: Toolset) -> list[dict[str, Any]]:
    """Return what `list` shows, as JSON shapes."""
    return [
        {"name": e.name, "description": e.description, "signature": e.tool.signature, "marks": _marks(toolset, e.name)}
        for e in toolset
    ]


def tools_table(toolset: Toolset) -> Table:
    """Return the tools with what is special about each."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("tool", "what it does", "marks"):
        table.add_column(column, overflow="fold")
    for entry in toolset:
        signature, marks = visible(entry.tool.signature), ", ".join(_marks(toolset, entry.name))
        table.add_row(
            Text(entry.name + signature.removeprefix(entry.tool.name)), Text(visible(entry.description)), marks
        )
    return table


# --- calls


def arguments_text(arguments: Any) -> str:
    """Return arguments as they would be written in a call."""
    if not isinstance(arguments, Mapping):
        return "" if arguments is None else json.dumps(arguments, ensure_ascii=False)
    named = cast("Mapping[str, Any]", arguments)
    return ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in named.items())


def calls_table(records: Iterable[CallRecord]) -> Table:
    """Return the calls of a run, in the order they ended."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("tool")
    table.add_column("arguments", overflow="fold")
    table.add_column("outcome", overflow="fold")
    table.add_column("ms", justify="right")
    for record in records:
        kind = str(record.outcome["kind"])
        arguments = arguments_text(record.arguments if record.arguments is not None else record.requested)
        outcome = Text(_brief(_told(record)), style=_STYLES[kind])
        table.add_row(Text(visible(record.tool)), Text(_brief(arguments)), outcome, f"{record.duration_ms:.1f}")
    return table


def _told(record: CallRecord) -> str:
    outcome = record.outcome
    match outcome["kind"]:
        case "completed":
            value = outcome["value"]
            return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        case "failed":
            return f"failed: {outcome['message']}"
        case "rejected":
            return f"rejected: {outcome['reason']}"
        case kind:
            return str(kind)


def _brief(text: str) -> str:
    return visible(" ".join(cut(text, _WIDE).split()))


def outcome_json(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome as JSON shapes, without the real arguments that a suspended call is resumed from."""
    data = outcome.to_dict()
    if isinstance(outcome, Suspended):
        data.pop("prepared", None)
    return data


def console() -> Console:
    """Return a console on stdout that prints what it is given and nothing clever."""
    return Console(highlight=False, markup=False, emoji=False)
