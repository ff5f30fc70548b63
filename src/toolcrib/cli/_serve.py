"""The command `serve`: the tools of a target, for any MCP client; its options, and secrets from files or variables."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer

from toolcrib.cli._database import DatabaseOption
from toolcrib.cli._status import exit_on_error
from toolcrib.cli._telemetry import TelemetryOption
from toolcrib.pipeline import ErrorPolicy

_VARIABLE = "TOOLCRIB_TOKENS"
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


def _over_http(help: str, metavar: str | None = None, panel: str = _OVER_HTTP, **more: Any) -> Any:
    return typer.Option(help=help, metavar=metavar, rich_help_panel=panel, **more)


def _oauth(help: str, metavar: str, **more: Any) -> Any:
    return _over_http(help, metavar, _OAUTH, **more)


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """The options of `serve`; the file of servers may have values for those that are None."""

    target: Annotated[str, typer.Argument(metavar="TARGET", help=_TARGET, show_default=False)]
    transport: Annotated[
        Literal["stdio", "http"], typer.Option(metavar="stdio|http", help="The transport to clients.")
    ] = "stdio"
    http: Annotated[bool, typer.Option("--http", help="Serve over HTTP: --transport http.")] = False
    host: Annotated[str | None, _over_http("Where to listen; 127.0.0.1 when left out.")] = None
    port: Annotated[int | None, _over_http("8000 when left out; any free one for 0.", min=0, max=65535)] = None
    path: Annotated[str | None, _over_http("/mcp when left out.", "/PATH")] = None
    public_url: Annotated[str | None, _over_http(_PUBLIC, "URL")] = None
    token: Annotated[ListOption, _over_http(_TOKEN, "NAME=SECRET")] = field(default=None, repr=False)
    allow_host: Annotated[ListOption, _over_http("Another host name of this server.", "NAME")] = None
    allow_origin: Annotated[ListOption, _over_http("A page that may use it.", "URL")] = None
    issuer: Annotated[str | None, _oauth("The authorization server, as tokens name it.", "URL")] = None
    audience: Annotated[ListOption, _oauth(_AUDIENCE, "TEXT")] = None
    jwks: Annotated[str | None, _oauth("Its keys, where its metadata names none.", "URL")] = None
    introspect: Annotated[str | None, _oauth("Ask this address about each token, not by keys.", "URL")] = None
    client_id: Annotated[str | None, _oauth("For --introspect: this server's client id.", "NAME")] = None
    client_secret: Annotated[
        str | None, _oauth(_SECRET, "SECRET", envvar="TOOLCRIB_CLIENT_SECRET", show_envvar=False)
    ] = field(default=None, repr=False)
    scope: Annotated[ListOption, _oauth("A scope that every request needs.", "SCOPE")] = None
    tool_scope: Annotated[ListOption, _oauth("A scope that a tool (or files_*) needs.", "TOOL=SCOPE")] = None
    principal_claim: Annotated[str | None, _oauth("The claim that names the principal; sub.", "CLAIM")] = None
    name: Annotated[str | None, typer.Option(help="The server's name.", show_default=False)] = None
    code_mode: Annotated[bool, typer.Option("--code-mode", help="Serve one tool, which runs programs.")] = False
    search: Annotated[bool, typer.Option("--search", help="List a few tools; models search the rest.")] = False
    approve_by: Annotated[
        Literal["store", "elicit"] | None,
        typer.Option(metavar="store|elicit", help="The approver; the store when left out."),
    ] = None
    wait: Annotated[
        float | None, typer.Option(metavar="SECONDS", min=0, help="How long a call waits for its answer; 0 at first.")
    ] = None
    database: DatabaseOption = None
    record: Annotated[
        str | None, typer.Option(metavar="FILE", help="Append each call's record to this file, or its events to a .db.")
    ] = None
    store: Annotated[bool, typer.Option("--store", help=_STORE)] = False
    telemetry: TelemetryOption = False
    errors: Annotated[ErrorPolicy | None, typer.Option(metavar="message|masked", help=_ERRORS)] = None

    @property
    def is_http(self) -> bool:
        """True if it is served over HTTP."""
        return self.http or self.transport == "http"

    @property
    def tokens(self) -> dict[str, str]:
        """The secret of each principal: of `NAME=SECRET`, `NAME=@FILE`, and of the environment.

        Raises:
            BadParameter: One of them is something else, or its file cannot be read.
        """
        tokens: dict[str, str] = {}
        for text in (*os.environ.get(_VARIABLE, "").split(), *(self.token or ())):
            name, equals, secret = text.partition("=")
            if not (name and equals and secret):
                raise typer.BadParameter("write NAME=SECRET, or NAME=@FILE", param_hint="--token")
            if name in tokens:
                raise typer.BadParameter(f"two tokens are given for {name}", param_hint="--token")
            tokens[name] = secret_of(secret)
        return tokens

    @property
    def tool_scopes(self) -> dict[str, Sequence[str]]:
        """The scopes of each tool, by name or pattern: of `TOOL=SCOPE`, or `TOOL=SCOPE,SCOPE`.

        Raises:
            BadParameter: One of them is something else.
        """
        scopes: dict[str, list[str]] = {}
        for text in self.tool_scope or ():
            name, equals, several = text.partition("=")
            if not (name and equals and several):
                raise typer.BadParameter("write TOOL=SCOPE, or TOOL=SCOPE,SCOPE", param_hint="--tool-scope")
            scopes.setdefault(name, []).extend(several.split(","))
        return {**scopes}

    @property
    def issued(self) -> dict[str, Any]:
        """The arguments of an `AuthorizationServer` that are given; raises BadParameter where a file cannot be read."""
        secret = None if self.client_secret is None else secret_of(self.client_secret, "--client-secret")
        names = ("issuer", "audience", "jwks", "introspect", "client_id", "principal_claim")
        values = {name: getattr(self, name) for name in names} | {"client_secret": secret, "scopes": self.scope}
        return {name: value for name, value in values.items() if value}


def serve(*, options: ServeOptions) -> None:
    """Serve the tools of TARGET over MCP, until the client disconnects or Ctrl-C."""
    if options.code_mode and options.search:
        raise typer.BadParameter("programs find tools by themselves: leave out --search", param_hint="--search")
    tokens, issued, tool_scopes = options.tokens, options.issued, options.tool_scopes
    http_only = options.public_url or options.path or tool_scopes or issued.keys() - {"client_secret"}
    if http_only and not options.is_http:
        raise typer.BadParameter("OAuth, --path and --public-url are for HTTP: add --http", param_hint="--transport")
    with exit_on_error():
        module: Any = importlib.import_module("toolcrib.cli._mcp_server")  # of an extra, which its error names
        module.serve_target(options, tokens, issued, tool_scopes)


def secret_of(text: str, option: str = "--token") -> str:
    """Return a secret as given, or the contents of the file of `@FILE`.

    Raises:
        BadParameter: The file cannot be read.
    """
    if not text.startswith("@"):
        return text
    file = text[1:]
    try:
        return Path(file).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise typer.BadParameter(f"cannot read {file}: {why}", param_hint=option) from None
