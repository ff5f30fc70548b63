"""`toolcrib runs` and `toolcrib trace`: the runs and calls in a database."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from difflib import get_close_matches
from functools import partial
from typing import Annotated, Any, cast

import typer
from rich.cells import cell_len
from rich.padding import Padding
from rich.text import Text

from toolcrib._numbers import count_text
from toolcrib.cli._database import DatabaseOption, check_kept, database_errors, open_log, shown_name
from toolcrib.cli._formatting import JsonOption, cell_text, console, print_json, say, table_of, write
from toolcrib.cli._status import Status, exit_on_error
from toolcrib.cli._times import time_of
from toolcrib.record import EventLog, RunFilter, RunSummary, TraceNode, ids_like, list_runs, trace_nodes

_OUTCOMES = ("completed", "failed", "rejected", "suspended", "resumed", "cancelled", "running", "lost")
_SYNONYMS = {
    "refused": "rejected",
    "denied": "rejected",
    "error": "failed",
    "ok": "completed",
    "done": "completed",
    "ended": "completed",
    "waiting": "suspended",
    "pending": "suspended",
    "paused": "suspended",
}
"""Outcomes by words that are used elsewhere."""
_STYLES = {"completed": "green", "failed": "red", "rejected": "yellow", "suspended": "yellow", "cancelled": "red"}

_WIDE = 120  # columns of a screen with room for all that is known of a run, and for a reason
_LEAVING = ("cost", "took")  # columns, left out in this order where there is no room
_REASON = 80  # characters of a call's reason
_MATCHING = 3  # calls of a run, each in a line

DatabaseArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[DATABASE]", help="The database, in place of --database: a file or a URL.", show_default=False
    ),
]
SinceOption = Annotated[
    str | None,
    typer.Option(
        "--since", metavar="TIME", help="Only with a call that began then or later: 30m, 2h, 7d, or 2030-01-31T12:00."
    ),
]
UntilOption = Annotated[
    str | None,
    typer.Option(
        "--until",
        metavar="TIME",
        help="Only with a call that began before then, or that day; as for --since.",
    ),
]
LimitOption = Annotated[int, typer.Option("--limit", metavar="N", min=1, help="At most this many.")]


def kept_log(database: str | None) -> EventLog:
    """Return the events in a database that is there already.

    Raises:
        DatabaseError: There is no such file, it holds nothing of ours, or it cannot be used.
        MissingExtraError: It is a Postgres server, and the extra `durable` is not installed.
    """
    check_kept(database)
    return open_log(database)


def runs(
    named: DatabaseArgument = None,
    principal: Annotated[
        str | None, typer.Option("--principal", metavar="NAME", help="Only with a call on behalf of NAME.")
    ] = None,
    tool: Annotated[str | None, typer.Option("--tool", metavar="NAME", help="Only with a call of this tool.")] = None,
    outcome: Annotated[
        list[str] | None,
        typer.Option(
            "--outcome", metavar="OUTCOME", help=f"Only with a call that is {', '.join(_OUTCOMES)}. May be repeated."
        ),
    ] = None,
    since: SinceOption = None,
    until: UntilOption = None,
    limit: LimitOption = 50,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the runs in a database, the latest first: their calls by outcome, and what waits.

    With --outcome the calls that ended so are listed too: with --json each with its tool, id, status, reason and time.
    """
    outcomes = tuple(word for text in outcome or () for word in text.split(","))
    if unknown := [word for word in outcomes if word not in _OUTCOMES]:
        word = unknown[0]
        near = [_SYNONYMS[word]] if word in _SYNONYMS else get_close_matches(word, _OUTCOMES, n=1)
        text = f"{word!r} is not one of {', '.join(_OUTCOMES)}" + (f". Did you mean {near[0]}?" if near else "")
        raise typer.BadParameter(text, param_hint="--outcome")
    begun = time_of(since, "--since"), time_of(until, "--until", to_end=True)
    wanted = RunFilter(principal or "", tool or "", outcomes, *begun)
    name = named or database
    with exit_on_error():
        log = kept_log(name)
        with database_errors(name):
            found = list_runs(log, wanted, limit=limit)
    if as_json:
        print_json([run.to_dict() for run in found])
    elif found:
        _print_runs(found, " or ".join(outcomes))
    else:
        say(f"there is no such run in {shown_name(name)}")


def _print_runs(found: list[RunSummary], outcome: str) -> None:
    screen = console()
    columns = [*_CELLS, *([outcome] if outcome else [])]
    if outcome:  # `waits for` would say the same once more
        columns = [
            name
            for name in columns
            if name in ("id", "for", outcome) or (screen.width >= _WIDE and name != "waits for")
        ]
    most = _REASON if screen.is_terminal else max(_REASON, screen.width)  # a pipe has the whole reason
    matching = partial(_matching, named=" or " in outcome, most=most)
    rows = [{name: _CELLS.get(name, matching)(run) for name in columns} for run in found]
    if not outcome:
        widths = {name: max(map(cell_len, (name, *(row[name].plain for row in rows)))) + 2 for name in columns}
        empty = [name for name in columns if not any(row[name] for row in rows)]
        for name in (*empty, *_LEAVING):
            if name in columns and sum(widths[column] for column in columns) > screen.width:
                columns.remove(name)
        if sum(widths[column] for column in columns) > screen.width:
            for row in rows:
                # the screen is too narrow for a row: which run it is, and below that its calls
                gap = " " * (widths["id"] - row["id"].cell_len)
                screen.print(Text.assemble(row["id"], gap, row["begun"], "  ", row["for"]), overflow="fold")
                waits = Text(", waits for ").append_text(row["waits for"]) if row["waits for"] else Text()
                below = Text.assemble(row["calls"], waits, *(["  by ", row["way in"]] if row["way in"] else []))
                screen.print(Padding(below, (0, 0, 0, 2)), overflow="fold")
            return
    table = table_of(*columns)
    table.columns[0].no_wrap = True  # an id is there to be copied
    for row in rows:
        table.add_row(*(row[name] for name in columns))
    screen.print(table)


def _matching(run: RunSummary, *, named: bool, most: int) -> Text:
    """Return the calls with the chosen outcomes: of each the tool and the reason.

    Args:
        named: Whether each has its outcome, as one of several that were chosen.
        most: The most characters of a line.
    """
    calls = [(f"{call['tool']} {call['status']}" if named else call["tool"], call["reason"]) for call in run.matching]
    texts = list(dict.fromkeys(": ".join(filter(None, call)) for call in calls))
    more = [f"and {len(texts) - _MATCHING} more"] if len(texts) > _MATCHING else []
    return Text("\n".join([*(cell_text(text, most) for text in texts[:_MATCHING]), *more]))


def _cost(usage: Mapping[str, Any] | None) -> str:
    """Return the cost of a run, or its tokens where the cost is not known."""
    if usage is None:
        return ""
    if usage.get("cost") is not None:
        return f"${float(usage['cost']):.4f}"
    tokens = int(usage.get("input_tokens") or 0) + int(usage.get("output_tokens") or 0)
    return count_text(tokens, "token") if tokens else ""


_CELLS: Mapping[str, Callable[[RunSummary], Text]] = {
    "id": lambda run: Text(cell_text(run.id)),
    "way in": lambda run: Text(cell_text(", ".join(run.names) or run.entry)),
    "for": lambda run: Text(cell_text(run.principal or "")),
    "begun": lambda run: Text(datetime.fromisoformat(run.started_at).astimezone().isoformat(" ", "seconds")[:19]),
    "took": lambda run: Text("" if run.duration_ms is None else _took(run.duration_ms)),
    "calls": lambda run: Text(", ".join(f"{count} {status}" for status, count in run.calls.items())),
    "waits for": lambda run: Text(
        cell_text(", ".join(dict.fromkeys(call["tool"] for call in run.waiting))), style="yellow"
    ),
    "cost": lambda run: Text(_cost(run.usage)),
}
"""The columns of `toolcrib runs`, each with its cell for a run."""


def trace(
    id: Annotated[
        str,
        typer.Argument(metavar="ID", help="A run's, activity's or call's id, or how it begins.", show_default=False),
    ],
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a run or a call as a tree: what it called, and what happened to each call."""
    with exit_on_error():
        log = kept_log(database)
        with database_errors(database):
            found, near = ids_like(log, id)
            node = trace_nodes(log, found[0]) if len(found) == 1 else None
    if node is None:
        where = shown_name(database)
        if found:
            say(f"several ids in {where} begin with {id}: {', '.join(found)}. Give more of the id")
        elif near:
            say(f"there is no run or call {id} in {where}. Did you mean {' or '.join(near)}?")
        else:
            say(f"there is no run or call {id} in {where}; `toolcrib runs` lists the runs")
        raise typer.Exit(Status.MISUSED)
    if as_json:
        print_json(node.to_dict())
    else:
        write("\n".join(_lines(node)) + "\n")


def _lines(node: TraceNode, depth: int = 0) -> Iterator[str]:
    """Yield a node with its events, and what went on inside it, indented."""
    edge = "  " * depth
    words = [node.kind, *([node.name] if node.name not in ("", node.kind) else []), node.id, node.status]
    took = [] if node.duration_ms is None else [_took(node.duration_ms)]
    about = [f"for {node.principal}"] if node.principal else []
    about += [f"by {node.entry}"] if node.entry and depth == 0 else []
    yield f"{edge}{cell_text('  '.join([*words, *took, *about]), 400)}"
    began = datetime.fromisoformat(node.started_at)
    for event in node.events:
        after = (datetime.fromisoformat(event["at"]) - began).total_seconds()
        yield f"{edge}  {after:8.3f}s {event['kind']:<9} {cell_text(event['text'], 400)}".rstrip()
        for origin in _origins(event):
            yield f"{edge}             {cell_text(origin, 400)}"
    for child in node.inside:
        yield from _lines(child, depth + 1)


def _origins(event: Mapping[str, Any]) -> Iterator[str]:
    """Yield where the arguments come from, as far as the record says it."""
    if event["kind"] != "decided":
        return
    for origin in cast("list[Mapping[str, Any]]", event["data"].get("origins") or ()):
        yield f"{origin['path'] or 'arguments'}: {origin['value']!r} is {origin['kind']} {_place(origin)}".rstrip()


def _place(origin: Mapping[str, Any]) -> str:
    parts = (origin.get("tool"), origin.get("call_id"), origin.get("place"))
    return f"from {' '.join(str(part) for part in parts if part)}" if parts[0] else ""


def _took(milliseconds: float) -> str:
    """Return a duration for a person."""
    if milliseconds < 1_000:
        return f"{milliseconds:.1f} ms"
    seconds = milliseconds / 1_000
    return f"{seconds:.1f} s" if seconds < 120 else str(timedelta(seconds=round(seconds)))
