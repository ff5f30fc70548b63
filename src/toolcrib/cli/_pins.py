"""`toolcrib pins`: the tools of servers as they were first used or accepted, and the acceptance of changes."""

from __future__ import annotations

import importlib
from collections.abc import Collection
from typing import Annotated, Any

import typer

from toolcrib._run_sync import run_sync
from toolcrib.approvals import PinEntry, ToolPins
from toolcrib.cli._approvals import ByOption, YesOption, proven_approver
from toolcrib.cli._commands import Commands
from toolcrib.cli._database import DatabaseOption
from toolcrib.cli._find_toolset import open_toolset, tools_of
from toolcrib.cli._formatting import JsonOption, print_json, say, write
from toolcrib.cli._status import Status, confirm, exit_on_error
from toolcrib.cli._terminal import Terminal, escape_control
from toolcrib.toolsets import Toolset

_TARGET = "The tools, as for `list`: of Python, or of a file of MCP servers (mcp.json), with pins."

pins = Commands(
    name="pins",
    help="Changes of MCP servers since their first use, or since a person accepted them.",
    no_args_is_help=True,
)

TargetArgument = Annotated[str, typer.Argument(metavar="TARGET", help=_TARGET, show_default=False)]
ServerOption = Annotated[str | None, typer.Option("--server", metavar="NAME", help="Of this server alone.")]


@pins.command("list")
def list_pins(target: TargetArgument, server: ServerOption = None, as_json: JsonOption = False) -> None:
    """List the pins of TARGET's servers, and who accepted each; no server is connected to."""
    with exit_on_error():
        entries = [entry for store in _stores(tools_of(target)) for entry in run_sync(store.entries())]
        entries = [entry for entry in entries if server in (None, entry.server)]
    if as_json:
        print_json([_entry_data(entry) for entry in entries])
    elif entries:
        write("".join(escape_control(_entry_line(entry)) + "\n" for entry in entries))
    else:
        say("there are no pins yet: a server is pinned as it is when it is first used")


@pins.command()
def diff(target: TargetArgument, server: ServerOption = None, as_json: JsonOption = False) -> None:
    """Show the changes of TARGET's servers since their first use or acceptance; exit status 1 where there are any."""
    with exit_on_error():
        changes = run_sync(_changes(tools_of(target), server, ()))
    if as_json:
        print_json([_change_data(change) for change in changes])
    else:
        write(_text_of(changes) if changes else "nothing has changed\n")
    if changes:
        raise typer.Exit(Status.FAILED)


@pins.command()
def accept(
    target: TargetArgument,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="What to accept; all that has changed when left out."),
    ] = None,
    server: ServerOption = None,
    name: ByOption = None,
    yes: YesOption = False,
    database: DatabaseOption = None,
) -> None:
    """Accept what the servers of TARGET have changed, as it is shown; at a terminal, or with an approver's token."""
    with exit_on_error():
        by = proven_approver(name, database)
        toolset = tools_of(target)
        run_sync(_accepted(toolset, server, names or (), by, yes))


@pins.command()
def forget(
    target: TargetArgument,
    server: Annotated[str, typer.Argument(metavar="SERVER", help="The server, as `list` shows it.")],
    name: ByOption = None,
    database: DatabaseOption = None,
) -> None:
    """Forget a server: it is kept as it is when it is used next."""
    with exit_on_error():
        proven_approver(name, database)
        known = [run_sync(store.forget(server)) for store in _stores(tools_of(target))]
        if not any(known):
            say(f"nothing is kept of a server `{server}`; `toolcrib pins list` shows what is")
            raise typer.Exit(Status.FAILED)
        write(f"{escape_control(server)} is forgotten\n")


def _servers() -> Any:
    return importlib.import_module("toolcrib.adapters.mcp_client")  # of an extra, which its error names


def _stores(toolset: Toolset) -> list[ToolPins]:
    found: list[ToolPins] = _servers().pin_stores(toolset)
    if not found:
        say(
            "no MCP server of it is pinned: name a file of servers, or tools of `connect(..., pins=...)`, whose `pins` "
            "is the name of a SQLite file"
        )
        raise typer.Exit(Status.MISUSED)
    return found


async def _changes(toolset: Toolset, server: str | None, names: Collection[str]) -> list[Any]:
    """Return the changed definitions; ends the command for a name that has not changed."""
    _stores(toolset)
    async with open_toolset(toolset):
        found: list[Any] = _servers().pinned_changes(toolset)
    found = [change for change in found if server in (None, change.server)]
    unknown = sorted({*names} - {change.name for change in found})
    if unknown:
        say(f"`{unknown[0]}` has not changed; `toolcrib pins diff` shows what has")
        raise typer.Exit(Status.MISUSED)
    return [change for change in found if not names or change.name in names]


async def _accepted(toolset: Toolset, server: str | None, names: Collection[str], by: str, yes: bool) -> None:
    changes = await _changes(toolset, server, names)
    if not changes:
        write("nothing has changed\n")
        return
    if not yes:
        Terminal().say(_text_of(changes))
        await confirm(
            f"accept {'this' if len(changes) == 1 else 'all of this'}?",
            undone="nothing was accepted",
            meant="all of the above is right",
        )
    for change in changes:
        await change.accept(by)
        write(escape_control(f"accepted the {change.kind} `{change.name}` of {change.server}, as {by}") + "\n")


def _text_of(changes: Collection[Any]) -> str:
    return "".join(f"{escape_control(line)}\n" for change in changes for line in _lines_of(change))


def _lines_of(change: Any) -> list[str]:
    state = "is new" if change.before is None else "has changed"
    lines = [f"    {line}" for line in change.lines()]
    return [f"the {change.kind} `{change.name}` of {change.server} {state}:", *lines]


def _change_data(change: Any) -> dict[str, Any]:
    names = ("server", "kind", "name", "before", "now")
    return {**{name: getattr(change, name) for name in names}, "difference": change.lines()}


def _entry_line(entry: PinEntry) -> str:
    return f"{entry.server}: {entry.kind} {entry.name}, by {entry.by} at {entry.at:%Y-%m-%d %H:%M}"


def _entry_data(entry: PinEntry) -> dict[str, Any]:
    return {**{name: getattr(entry, name) for name in ("server", "kind", "name", "by")}, "at": entry.at.isoformat()}
