"""Calls and tools, as text for a screen and as JSON."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, cast

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from toolcrib import calls as _calls
from toolcrib.cli._terminal import escape_control
from toolcrib.toolsets import Toolset

JsonOption = Annotated[bool, typer.Option("--json", help="Write one JSON document to stdout, and nothing else.")]

_PIPED = 2_000  # columns of a pipe or a file
_WIDE = 120  # characters of one cell
_LONG = 100  # characters of a result on one line
_ROWS = (50, 10)  # calls shown of a program that made many: the first and the last
_STYLES = {"completed": "green", "failed": "red", "rejected": "yellow", "suspended": "yellow", "cancelled": "red"}


def say(text: str) -> None:
    """Write one line for a person, to stderr."""
    print(escape_control(text) if sys.stderr.isatty() else text, file=sys.stderr)  # which a live view stands in for


def say_cannot_listen(host: str, port: int, error: OSError, option: str = "--port") -> None:
    """Write to stderr why a server cannot listen on an address, and by which option it gets another one."""
    is_of_system = error.errno is not None and not isinstance(error, socket.gaierror)
    problem = os.strerror(error.errno or 0) if is_of_system else error.strerror or str(error)
    say(f"cannot listen on {host}:{port}: {problem}. Give another address, as with {option} {port + 1}")


def write(text: str) -> None:
    """Write a result to stdout, at once; for a terminal, with control characters escaped."""
    shown = escape_control(text) if sys.stdout.isatty() else text
    encoding = sys.stdout.encoding
    sys.stdout.write(
        shown.encode(encoding, "backslashreplace").decode(encoding)
    )  # half a surrogate pair is not an error
    sys.stdout.flush()


def print_json(data: Any) -> None:
    """Write one JSON document to stdout."""
    write(json.dumps(data, ensure_ascii=False, indent=2) + "\n")


def table_of(*columns: str, no_wrap: bool = False) -> Table:
    """Return a table without rows or lines; its cells are folded unless `no_wrap`."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=no_wrap)
    return table


def cell_text(text: str, most: int = _WIDE) -> str:
    """Return a text for a cell: on one line, with control characters escaped, and no longer than `most` characters."""
    line = escape_control(" ".join(text[: 2 * most].split()))
    return line if len(line) <= most and len(text) <= 2 * most else line[: most - 1] + "…"


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
    """Return the rows of `list`, as JSON shapes."""
    return [
        {"name": e.name, "description": e.description, "signature": e.tool.signature, "marks": _marks(toolset, e.name)}
        for e in toolset
    ]


def tools_table(toolset: Toolset) -> Table:
    """Return the tools with their marks as a table."""
    table = table_of("tool", "what it does", "marks")
    for entry in toolset:
        signature, marks = escape_control(entry.tool.signature), ", ".join(_marks(toolset, entry.name))
        table.add_row(
            Text(entry.name + signature.removeprefix(entry.tool.name)), Text(escape_control(entry.description)), marks
        )
    return table


# --- calls


def arguments_text(arguments: Any) -> str:
    """Return arguments as they would be written in a call."""
    if not isinstance(arguments, Mapping):
        return "" if arguments is None else json.dumps(arguments, ensure_ascii=False)
    named = cast("Mapping[str, Any]", arguments)
    return ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in named.items())


def calls_table(calls: Sequence[Mapping[str, Any]]) -> Table:
    """Return a program's calls in the order they were made: `ExecutionResult.tool_calls`, each with its `approval`.

    Of very many the first and the last are shown, and how many are between them.
    """
    asked = any("approval" in call for call in calls)
    table = table_of("tool", "arguments", "outcome", *(["answered by"] if asked else []))
    table.add_column("ms", justify="right")
    first, last = _ROWS
    between = range(first, len(calls) - last)
    for index, call in enumerate(calls):
        if index in between:
            if index == first:
                table.add_row(Text(f"({len(between)} more)"))
            continue
        kind = str(call["outcome"])
        outcome = Text(cell_text(_outcome_text(call)), style=_STYLES[kind])
        if kind == "completed":
            outcome.no_wrap, outcome.overflow = True, "ellipsis"
        took = f"{call['duration_ms']:.1f}" if "duration_ms" in call else ""
        arguments = Text(cell_text(arguments_text(call["arguments"])))
        answered = [escape_control(call["approval"]["approver"]) if "approval" in call else ""] if asked else []
        table.add_row(Text(escape_control(call["name"])), arguments, outcome, *answered, took)
    return table


def _outcome_text(call: Mapping[str, Any]) -> str:
    kind = str(call["outcome"])
    if kind == "completed" and "result" in call:
        result = call["result"]
        return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    return str(call.get("error", kind))


def result_text(value: Any) -> str:
    """Return a result for a person: a text as it is, anything else as JSON."""
    if isinstance(value, str):
        return value + "\n"
    line = json.dumps(value, ensure_ascii=False)
    return (line if len(line) <= _LONG else json.dumps(value, ensure_ascii=False, indent=2)) + "\n"


def outcome_json(outcome: _calls.Outcome) -> dict[str, Any]:
    """Return an outcome as JSON shapes, without the real arguments that a suspended call is resumed from."""
    data = outcome.to_dict()
    if isinstance(outcome, _calls.Suspended):
        data.pop("call", None)
    return data


def console(*, stderr: bool = False) -> Console:
    """Return a console on stdout or stderr that prints text as it is; a pipe or a file has wide lines."""
    narrow = (sys.stderr if stderr else sys.stdout).isatty() or "COLUMNS" in os.environ
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, width=None if narrow else _PIPED)
