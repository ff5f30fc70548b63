"""The command `serve`: the tools of a target, for any MCP client."""

from __future__ import annotations

import importlib
from typing import Annotated, Any

import typer

from toolcrib.cli._database import DatabaseOption
from toolcrib.cli._run import exit_on_error
from toolcrib.cli._serve_options import ApproveBy, ServeOptions, Transport, tokens_of
from toolcrib.cli._telemetry import TelemetryOption
from toolcrib.pipeline import ErrorPolicy

__all__ = ["serve"]

_TARGET = "The tools to serve, as for `list`."
_TOKEN = "A client over HTTP; @FILE reads the secret from a file, TOOLCRIB_TOKENS from the environment."
_ERRORS = "What clients are shown of an unexpected error; masked over HTTP and the message over stdio when left out."
ListOption = list[str] | None


def serve(
    target: Annotated[str, typer.Argument(metavar="TARGET", help=_TARGET, show_default=False)],
    transport: Annotated[Transport, typer.Option(metavar="stdio|http", help="The transport to clients.")] = "stdio",
    host: Annotated[str, typer.Option(help="Where to listen; beyond this machine, tokens are needed.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Any free one for 0.")] = 8000,
    token: Annotated[ListOption, typer.Option(metavar="NAME=SECRET", help=_TOKEN)] = None,
    allow_host: Annotated[ListOption, typer.Option(metavar="NAME", help="Another name this server goes by.")] = None,
    allow_origin: Annotated[ListOption, typer.Option(metavar="URL", help="A page that may use it.")] = None,
    name: Annotated[str | None, typer.Option(help="The server's name.", show_default=False)] = None,
    code_mode: Annotated[bool, typer.Option("--code-mode", help="Serve one tool, which runs programs.")] = False,
    search: Annotated[bool, typer.Option("--search", help="List a few tools; the rest is found.")] = False,
    approve_by: Annotated[ApproveBy, typer.Option(metavar="store|elicit", help="The approver.")] = "store",
    wait: Annotated[float, typer.Option(metavar="SECONDS", min=0, help="How long a call waits for its answer.")] = 0.0,
    database: DatabaseOption = None,
    record: Annotated[
        str | None, typer.Option(metavar="FILE", help="Append each call's record to this file, or its events to a .db.")
    ] = None,
    telemetry: TelemetryOption = False,
    errors: Annotated[ErrorPolicy | None, typer.Option(metavar="message|masked", help=_ERRORS)] = None,
) -> None:
    """Serve the tools of TARGET over MCP, until the client disconnects or Ctrl-C."""
    if code_mode and search:
        raise typer.BadParameter("programs find tools by themselves: leave out --search", param_hint="--search")
    options = ServeOptions(
        target=target,
        transport=transport,
        host=host,
        port=port,
        tokens=tokens_of(token or ()),
        allowed_hosts=allow_host or (),
        allowed_origins=allow_origin or (),
        name=name,
        code_mode=code_mode,
        search=search,
        approve_by=approve_by,
        wait=wait,
        database=database,
        record=record,
        telemetry=telemetry,
        errors=errors,
    )
    with exit_on_error():
        module: Any = importlib.import_module("toolcrib.cli._mcp_server")  # of an extra, which its error names
        module.serve_target(options)
