"""`toolcrib credentials`: those of principals for other servers. No command shows one, or takes one as an argument."""

from __future__ import annotations

import importlib
import sys
from dataclasses import asdict, astuple
from pathlib import Path
from typing import Annotated, Any

import typer

from toolcrib._numbers import count_text
from toolcrib._run_sync import run_sync
from toolcrib.cli._approver import user_name
from toolcrib.cli._commands import Commands
from toolcrib.cli._formatting import JsonOption, console, print_json, say, table_of
from toolcrib.cli._status import Status, exit_on_error

credentials = Commands(name="credentials", help="Credentials of principals for other servers.", no_args_is_help=True)

ServerArgument = Annotated[str, typer.Argument(metavar="SERVER", help="The server's address.", show_default=False)]
StoreOption = Annotated[Path, typer.Option("--store", metavar="FILE", help="The file with the credentials.")]
PrincipalOption = Annotated[
    str | None,
    typer.Option("--principal", metavar="NAME", help="The principal it belongs to; your user name when left out."),
]
_STORE = Path("credentials.db")


@credentials.command("list")
def show(
    store: StoreOption = _STORE,
    principal: Annotated[str | None, typer.Option("--principal", metavar="NAME", help="Only those of NAME.")] = None,
    as_json: JsonOption = False,
) -> None:
    """List who has credentials for which server, without the credentials."""
    with exit_on_error():
        found = run_sync(_opened(store).credentials(principal))
        if as_json:
            print_json([{**asdict(credential), "since": credential.since.isoformat()} for credential in found])
            return
        table = table_of("principal", "server", "kind", "since")
        for credential in found:
            table.add_row(*(*astuple(credential)[:-1], f"{credential.since:%Y-%m-%d %H:%M}"))
        console().print(table)


@credentials.command("add")
def add(server: ServerArgument, store: StoreOption = _STORE, principal: PrincipalOption = None) -> None:
    """Keep an API key for SERVER, which is asked for on the terminal, or read from stdin."""
    with exit_on_error():
        opened = _opened(store, create=True)
        is_typed = sys.stdin.isatty()
        key = typer.prompt("API key", hide_input=True) if is_typed else sys.stdin.readline()
        rooms = _rooms()
        try:
            run_sync(rooms.ApiKeys(opened).add(principal or user_name(), rooms.server_key(server), key))
        except ValueError as error:
            say(f"nothing was saved: {error}")
            raise typer.Exit(Status.MISUSED) from None
        say(f"kept for {principal or user_name()}")


@credentials.command("forget")
def forget(server: ServerArgument, store: StoreOption = _STORE, principal: PrincipalOption = None) -> None:
    """Remove the credentials for SERVER, and have a token revoked where it came from."""
    with exit_on_error():
        opened, rooms = _opened(store), _rooms()
        whose, key = principal or user_name(), rooms.server_key(server)
        is_removed = run_sync(rooms.ApiKeys(opened).forget(whose, key))
        is_removed = run_sync(rooms.OAuth(opened, pages="").forget(whose, key)) or is_removed
        say(f"{whose} has none for {key} now" if is_removed else f"{whose} had none for {key}")
        if not is_removed:
            raise typer.Exit(Status.FAILED)


@credentials.command("rotate-key")
def rotate_key(store: StoreOption = _STORE) -> None:
    """Make a new key in the keyring or the key file, encrypt all with it, and drop the old one.

    Of a key in TOOLCRIB_CREDENTIALS_KEY put the new one in front first: NEW,OLD.
    """
    with exit_on_error():
        opened = _opened(store)
        keys, drop = _rooms().CredentialKeys.rotated()
        changed = run_sync(opened.reseal(keys))
        drop()
        say(f"encrypted {count_text(changed, 'row')} with the new key")


def _rooms() -> Any:
    return importlib.import_module("toolcrib.credentials")  # of an extra, which its error names


def _opened(path: Path, *, create: bool = False) -> Any:
    if not create and not path.exists():
        say(f"there is no file {path}; name it with --store FILE")
        raise typer.Exit(Status.MISUSED)
    return _rooms().SqliteCredentialStore(path)
