"""The commands by name. Each is loaded from its module when it is named, or when the help of all shows it."""

from __future__ import annotations

from collections import UserDict
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup
from typer.main import get_group

from toolcrib.cli._commands import Commands

_RECORD, _SERVERS, _DURABLE = "The record", "Servers", "Durable work"
_COMMANDS: Final = {
    "new": ("_new", "new", None),
    "runs": ("_runs", "runs", _RECORD),
    "trace": ("_runs", "trace", _RECORD),
    "watch": ("_live_view", "watch", _RECORD),
    "replay": ("_replay", "replay_command", _RECORD),
    "serve": ("_serve", "serve", _SERVERS),
    "inspect": ("_inspect", "inspect", _SERVERS),
    "install": ("_install", "install", _SERVERS),
    "import": ("_install", "import_servers", _SERVERS),
    "console": ("_console", "console", _SERVERS),
    "worker": ("_worker", "worker", _DURABLE),
    "enqueue": ("_worker", "enqueue", _DURABLE),
    "list": ("_list", "list_tools", None),
    "schema": ("_schema", "schema", None),
    "call": ("_call", "call", None),
    "exec": ("_exec", "execute", None),
    "resume": ("_exec", "resume", None),
    "approvals": ("_approvals", "approvals", None),
    "pins": ("_pins", "pins", None),
    "credentials": ("_credentials", "credentials", _SERVERS),
    "db": ("_db", "db", _DURABLE),
    "workflows": ("_workflows", "workflows", _DURABLE),
    "workers": ("_workflows", "workers", _DURABLE),
    "schedules": ("_workflows", "schedules", _DURABLE),
}
"""The module of each command or group of commands, its name there, and the panel of the help that shows it."""


class _LoadedCommands(UserDict[str, Any]):
    """The commands of the table, each made when it is first asked for."""

    def __getitem__(self, name: str) -> Any:
        if self.data[name] is None:
            module, member, panel = _COMMANDS[name]
            command = getattr(import_module(f"toolcrib.cli.{module}"), member)
            alone = Commands()
            if isinstance(command, Commands):
                alone.add_typer(command, rich_help_panel=panel)
            else:
                alone.command(name, rich_help_panel=panel)(command)
            self.data[name] = get_group(alone).commands[name]
        return self.data[name]


_SYNONYMS: Final = {
    "calls": "'runs'",
    "run": "'call' or 'exec'",
}  # the command nearest in meaning, where another one is nearer in spelling


class _Group(TyperGroup):
    """All commands."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = _LoadedCommands(dict.fromkeys(_COMMANDS))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] in _SYNONYMS:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {_SYNONYMS[args[0]]}?")
        return super().resolve_command(ctx, args)


app = Commands(
    name="toolcrib",
    cls=_Group,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
"""The commands, as an application of Typer."""


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"toolcrib {version('toolcrib')}")
        raise typer.Exit


@app.callback()
def of_all_commands(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Run tools the way a model would: with their schema, hooks, approval, limits and record."""
