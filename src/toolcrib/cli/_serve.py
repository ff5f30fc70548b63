"""The command `serve`: the tools of a target, for any MCP client."""

from __future__ import annotations

import importlib
from typing import Annotated, Any, Final

import typer

from toolcrib.cli._database import DatabaseOption
from toolcrib.cli._serve_options import (
    ApproveBy,
    HttpFlags,
    OAuthFlags,
    ServeOptions,
    Transport,
    scopes_of,
    secret_of,
    tokens_of,
)
from toolcrib.cli._status import exit_on_error
from toolcrib.cli._telemetry import TelemetryOption
from toolcrib.pipeline import ErrorPolicy

_TARGET = "The tools to serve, as for `list`."
_TOKEN = "A client over HTTP; @FILE reads the secret from a file, TOOLCRIB_TOKENS from the environment."
_SECRET = "The secret of this server there; @FILE reads it from a file, TOOLCRIB_CLIENT_SECRET from the environment."
_PUBLIC = "The whole URL of the endpoint behind a proxy: https://tools.example.org/mcp."
_AUDIENCE = "The audience that tokens must name; the endpoint's URL when left out."
_OVER_HTTP: Final = "Over HTTP"
_OAUTH: Final = "OAuth: whose tokens are accepted over HTTP"
_ERRORS = "What clients are shown of an unexpected error; masked over HTTP and the message over stdio when left out."
_STORE = "Note calls with an effect that need no approval, too; after a crash, an equal call is asked about."
ListOption = list[str] | None


def serve(
    target: Annotated[str, typer.Argument(metavar="TARGET", help=_TARGET, show_default=False)],
    transport: Annotated[Transport, typer.Option(metavar="stdio|http", help="The transport to clients.")] = "stdio",
    http: Annotated[bool, typer.Option("--http", help="Serve over HTTP: --transport http.")] = False,
    host: Annotated[
        str | None,
        typer.Option(help="Where to listen; 127.0.0.1 when left out.", rich_help_panel=_OVER_HTTP),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="8000 when left out; any free one for 0.", rich_help_panel=_OVER_HTTP),
    ] = None,
    path: Annotated[
        str | None,
        typer.Option(metavar="/PATH", help="/mcp when left out.", rich_help_panel=_OVER_HTTP),
    ] = None,
    public_url: Annotated[str | None, typer.Option(metavar="URL", help=_PUBLIC, rich_help_panel=_OVER_HTTP)] = None,
    token: Annotated[ListOption, typer.Option(metavar="NAME=SECRET", help=_TOKEN, rich_help_panel=_OVER_HTTP)] = None,
    allow_host: Annotated[
        ListOption,
        typer.Option(metavar="NAME", help="Another host name of this server.", rich_help_panel=_OVER_HTTP),
    ] = None,
    allow_origin: Annotated[
        ListOption, typer.Option(metavar="URL", help="A page that may use it.", rich_help_panel=_OVER_HTTP)
    ] = None,
    issuer: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The authorization server, as tokens name it.", rich_help_panel=_OAUTH),
    ] = None,
    audience: Annotated[ListOption, typer.Option(metavar="TEXT", help=_AUDIENCE, rich_help_panel=_OAUTH)] = None,
    jwks: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Its keys, where its metadata names none.", rich_help_panel=_OAUTH),
    ] = None,
    introspect: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Ask this address about each token, not by keys.", rich_help_panel=_OAUTH),
    ] = None,
    client_id: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="For --introspect: this server's client id.", rich_help_panel=_OAUTH),
    ] = None,
    client_secret: Annotated[
        str | None,
        typer.Option(
            metavar="SECRET", envvar="TOOLCRIB_CLIENT_SECRET", show_envvar=False, help=_SECRET, rich_help_panel=_OAUTH
        ),
    ] = None,
    scope: Annotated[
        ListOption, typer.Option(metavar="SCOPE", help="A scope that every request needs.", rich_help_panel=_OAUTH)
    ] = None,
    tool_scope: Annotated[
        ListOption,
        typer.Option(metavar="TOOL=SCOPE", help="A scope that a tool (or files_*) needs.", rich_help_panel=_OAUTH),
    ] = None,
    principal_claim: Annotated[
        str | None,
        typer.Option(metavar="CLAIM", help="The claim that names the principal; sub.", rich_help_panel=_OAUTH),
    ] = None,
    name: Annotated[str | None, typer.Option(help="The server's name.", show_default=False)] = None,
    code_mode: Annotated[bool, typer.Option("--code-mode", help="Serve one tool, which runs programs.")] = False,
    search: Annotated[bool, typer.Option("--search", help="List a few tools; models search the rest.")] = False,
    approve_by: Annotated[
        ApproveBy | None, typer.Option(metavar="store|elicit", help="The approver; the store when left out.")
    ] = None,
    wait: Annotated[
        float | None, typer.Option(metavar="SECONDS", min=0, help="How long a call waits for its answer; 0 at first.")
    ] = None,
    database: DatabaseOption = None,
    record: Annotated[
        str | None, typer.Option(metavar="FILE", help="Append each call's record to this file, or its events to a .db.")
    ] = None,
    store: Annotated[bool, typer.Option("--store", help=_STORE)] = False,
    telemetry: TelemetryOption = False,
    errors: Annotated[ErrorPolicy | None, typer.Option(metavar="message|masked", help=_ERRORS)] = None,
) -> None:
    """Serve the tools of TARGET over MCP, until the client disconnects or Ctrl-C."""
    if code_mode and search:
        raise typer.BadParameter("programs find tools by themselves: leave out --search", param_hint="--search")
    options = ServeOptions(
        target=target,
        transport="http" if http else transport,
        http=HttpFlags(host, port, path, public_url, tokens_of(token or ()), allow_host or (), allow_origin or ()),
        oauth=OAuthFlags(
            issuer=issuer,
            audience=audience or (),
            jwks=jwks,
            introspect=introspect,
            client_id=client_id,
            client_secret=None if client_secret is None else secret_of(client_secret, "--client-secret"),
            scopes=scope or (),
            tool_scopes=scopes_of(tool_scope or ()),
            principal_claim=principal_claim,
        ),
        name=name,
        code_mode=code_mode,
        search=search,
        approve_by=approve_by,
        wait=wait,
        database=database,
        record=record,
        store=store,
        telemetry=telemetry,
        errors=errors,
    )
    http_only = (public_url, path, issuer, audience, jwks, introspect, client_id, scope, tool_scope, principal_claim)
    if options.transport == "stdio" and any(http_only):
        raise typer.BadParameter("OAuth, --path and --public-url are for HTTP: add --http", param_hint="--transport")
    with exit_on_error():
        module: Any = importlib.import_module("toolcrib.cli._mcp_server")  # of an extra, which its error names
        module.serve_target(options)
