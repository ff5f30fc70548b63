"""The commands `install` and `import`: servers put into the settings of MCP clients, and taken from there."""

from __future__ import annotations

import difflib
import importlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from toolcrib.cli._database import absolute_database
from toolcrib.cli._find_toolset import absolute_target, is_file_of_servers, name_of, tools_of
from toolcrib.cli._formatting import say, write
from toolcrib.cli._private_file import write_private
from toolcrib.cli._status import exit_on_error
from toolcrib.errors import TargetError, closest


def _of_applications(*parts: str) -> Path:
    """Return a file in the folder where this system keeps the settings of applications."""
    home = Path.home()
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA") or home / "AppData/Roaming").joinpath(*parts)
    if sys.platform == "darwin":
        return home.joinpath("Library", "Application Support", *parts)
    return Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config").joinpath(*parts)


@dataclass(frozen=True, slots=True)
class _Client:
    """A client.

    Attributes:
        key: Where its file has the servers.
        user: The file of the user.
        project: The file of a project, in its folder; None where it has none.
    """

    key: str
    user: Callable[[], Path]
    project: str | None


CLIENTS: Mapping[str, _Client] = {
    "claude-desktop": _Client("mcpServers", lambda: _of_applications("Claude", "claude_desktop_config.json"), None),
    "claude-code": _Client("mcpServers", lambda: Path.home() / ".claude.json", ".mcp.json"),
    "cursor": _Client("mcpServers", lambda: Path.home() / ".cursor" / "mcp.json", ".cursor/mcp.json"),
    "vscode": _Client("servers", lambda: _of_applications("Code", "User", "mcp.json"), ".vscode/mcp.json"),
}


def serve_command(target: str, *options: str) -> dict[str, Any]:
    """Return the server of a client that serves a target; the command means the same in any folder."""
    command = shutil.which("toolcrib", path=str(Path(sys.executable).parent)) or shutil.which("toolcrib")
    words = [sys.executable, "-m", "toolcrib"] if command is None else [str(Path(command).absolute())]
    return {"command": words[0], "args": [*words[1:], "serve", absolute_target(target), *options]}


class SettingsFile:
    """A file with servers in it, as it was read.

    Attributes:
        path: The file.
        servers: The servers by name, to be changed and then written.
    """

    def __init__(self, path: Path, key: str) -> None:
        self.path, self._key = path, key
        self._before = path.read_text("utf-8-sig") if path.exists() else ""
        self._document: dict[str, Any] = {}
        if self._before.strip():
            module: Any = importlib.import_module("toolcrib.gateway")  # of an extra, which its error names
            self._document = module.read_document(path)
        self.servers: dict[str, Any] = cast("dict[str, Any]", self._document.setdefault(key, {}))
        if not isinstance(cast("object", self.servers), dict):
            raise TargetError(str(path), f"`{key}` is not an object with servers by name")

    def text(self) -> str:
        """Return the file with the servers as they are now."""
        return json.dumps(self._document, ensure_ascii=False, indent=2) + "\n"

    def changes(self) -> str:
        """Return how the file would change, as a diff."""
        before, after = self._before.splitlines(keepends=True), self.text().splitlines(keepends=True)
        return "".join(difflib.unified_diff(before, after, str(self.path), str(self.path)))

    def write(self) -> Path | None:
        """Write the file; return the copy of what it was before, None for a new one.

        Raises:
            TargetError: It has comments, which would be lost; or it cannot be written.
        """
        if self._before.strip() and not _is_plain(self._before):
            mend = "It is left as it is; put the lines of --dry-run there by hand"
            raise TargetError(str(self.path), f"it has comments, which would be lost. {mend}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            copy = None
            if self.path.exists():
                copy = self.path.with_name(f"{self.path.name}.{datetime.now().strftime('%Y%m%d-%H%M%S-%f')}.bak")
                shutil.copy2(self.path, copy)
            write_private(self.path.resolve(), self.text().encode())
        except OSError as error:
            raise TargetError(str(self.path), f"it cannot be written: {error.strerror or error}") from None
        return copy


def settings_of(client: str, *, project: bool) -> SettingsFile:
    """Return the file of a client: of the user, or of the project in the current folder.

    Raises:
        typer.BadParameter: There is no such client, or it has no such file.
    """
    known = CLIENTS.get(client)
    if known is None:
        raise typer.BadParameter(f"there is no client {client!r}. {closest(client, CLIENTS)}", param_hint="CLIENT")
    if project and known.project is None:
        raise typer.BadParameter(f"{client} has no file for a project; leave it out", param_hint="--project")
    return SettingsFile(Path(known.project or "") if project else known.user(), known.key)


def _is_plain(text: str) -> bool:
    """Return whether a text is JSON without comments."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


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
