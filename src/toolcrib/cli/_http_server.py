"""Options of a server over HTTP, of the command line and of the file of servers. Needs the extra `mcp`."""

from __future__ import annotations

from typing import Any

import typer

from toolcrib.adapters.mcp_server import AuthorizationServer, HttpOptions
from toolcrib.cli._formatting import say
from toolcrib.cli._serve_options import HttpFlags, OAuthFlags
from toolcrib.cli._status import Status
from toolcrib.gateway import GatewayOptions


def http_options(flags: HttpFlags, oauth: OAuthFlags, file: GatewayOptions) -> HttpOptions:
    """Return where a server listens, and whose tokens it takes: as the flags say, and else as the file does.

    Raises:
        Exit: They do not go together; it was said why.
    """
    issued = {**({} if file.auth is None else file.auth.of_server), **oauth.given}
    if issued.keys() == {"client_secret"}:  # the environment has it, and nothing asks for it
        issued = {}
    try:
        if issued and "issuer" not in issued:
            raise ValueError(
                f"{', '.join(sorted(issued))}: of which authorization server? Give its address with --issuer URL"
            )
        server = AuthorizationServer(**issued) if issued else None
        if server is None and (file.scopes or file.groups or oauth.tool_scopes):
            raise ValueError(
                "tools that need scopes or groups are for tokens of an authorization server, as no other has them: "
                "give its address with --issuer URL"
            )
        return _options(flags, file, {**file.tokens_env, **flags.tokens}, server)
    except ValueError as error:
        known = server_is_known(issued, flags, file)
        say(str(error) if known else f"{error}. Give tokens with --token NAME=SECRET, or --issuer URL")
        raise typer.Exit(Status.MISUSED) from None


def server_is_known(issued: dict[str, Any], flags: HttpFlags, file: GatewayOptions) -> bool:
    """Return whether an option or the file says whose tokens are accepted."""
    return bool(issued or flags.tokens or file.tokens_env or file.scopes or file.groups)


def _options(
    flags: HttpFlags, file: GatewayOptions, tokens: dict[str, str], server: AuthorizationServer | None
) -> HttpOptions:
    def first(name: str) -> dict[str, Any]:
        flag = getattr(flags, name)
        found = getattr(file.http, name) if flag is None else flag
        return {} if found is None else {name: found}

    return HttpOptions(
        **first("host"),
        **first("port"),
        **first("path"),
        **first("public_url"),
        tokens=tokens,
        authorization_server=server,
        allowed_hosts=(*file.http.allowed_hosts, *flags.allowed_hosts),
        allowed_origins=(*file.http.allowed_origins, *flags.allowed_origins),
    )
