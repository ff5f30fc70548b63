"""The commands `install` and `import`: servers put into the settings of MCP clients, and taken from there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, cast

import typer

from toolcrib.cli._clients import CLIENTS, SettingsFile, serve_command, settings_of
from toolcrib.cli._database import absolute_database
from toolcrib.cli._find_toolset import is_file_of_servers, name_of, tools_of
from toolcrib.cli._formatting import say, write
from toolcrib.cli._status import exit_on_error
from toolcrib.errors import TargetError

_CLIENT = f"One of {', '.join(CLIENTS)}."
ClientArgument = Annotated[str, typer.Argument(metavar="CLIENT", help=_CLIENT, show_default=False)]
ProjectOption = Annotated[
    bool, typer.Option("--project", help="The file of the project in this folder, and not that of the user.")
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show what would change, and write nothing.")]
ReplaceOption = Annotated[bool, typer.Option("--replace", help="Replace a server of the same name.")]


def install(
    client: ClientArgument,
    target: Annotated[str, typer.Argument(metavar="TARGET", help="What to serve, as for `serve`.", show_default=False)],
    name: Annotated[str | None, typer.Option(help="The server's name; TARGET's when left out.")] = None,
    project: ProjectOption = False,
    replace: ReplaceOption = False,
    dry_run: DryRunOption = False,
) -> None:
    """Configure CLIENT to start `toolcrib serve TARGET`; its settings are copied before they are changed."""
    with exit_on_error():
        tools_of(target)
        settings = settings_of(client, project=project)
        # a file of servers says where its approvals are; those of other tools are in this folder
        place = [] if is_file_of_servers(target) else ["--database", absolute_database(None)]
        entry = serve_command(target, *place)
        if client == "vscode":
            entry = {"type": "stdio", **entry}
        _put(settings, {name or name_of(target): entry}, replace=replace)
        _finish(settings, dry_run=dry_run)


def import_servers(
    client: ClientArgument,
    to: Annotated[Path, typer.Option("--to", metavar="FILE", help="The file for `serve`.")] = Path("mcp.json"),
    project: ProjectOption = False,
    replace: ReplaceOption = False,
    dry_run: DryRunOption = False,
) -> None:
    """Copy the servers of CLIENT to a file for `serve`, which is copied before it is changed."""
    with exit_on_error():
        settings = settings_of(client, project=project)
        found = {name: entry for name, entry in settings.servers.items() if not _is_own(entry)}
        if not found:
            raise TargetError(str(settings.path), "it has no servers to import")
        if to.suffix == ".toml":
            raise TargetError(str(to), "servers are imported to a JSON file; give --to NAME.json")
        settings_file = SettingsFile(to, "mcpServers")
        _put(settings_file, found, replace=replace)
        _finish(settings_file, dry_run=dry_run)


def _is_own(entry: Any) -> bool:
    """Return whether a server is one that `install` has put there."""
    server = cast("dict[str, Any]", entry) if isinstance(entry, dict) else {}
    command, args = server.get("command"), server.get("args")
    if not (isinstance(command, str) and isinstance(args, list)):
        return False
    words = cast("list[Any]", args)
    return (words[:1] == ["serve"] and Path(command).stem == "toolcrib") or words[:3] == ["-m", "toolcrib", "serve"]


def _put(settings: SettingsFile, entries: dict[str, Any], *, replace: bool) -> None:
    for name, entry in entries.items():
        if settings.servers.get(name, entry) != entry and not replace:
            mend = "take another name with --name, or replace it with --replace"
            raise TargetError(str(settings.path), f"it has another server `{name}`; {mend}")
    settings.servers.update(entries)


def _finish(settings: SettingsFile, *, dry_run: bool) -> None:
    changes = settings.changes()
    if dry_run:
        write(changes or "nothing would change\n")
        return
    if not changes:
        say(f"{settings.path} has it already")
        return
    copy = settings.write()
    say(f"wrote {settings.path}" + ("" if copy is None else f"; what it was is in {copy}"))
