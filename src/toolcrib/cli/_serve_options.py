"""Options of `toolcrib serve` as values, and tokens from their files or variables."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import typer

from toolcrib.pipeline import ErrorPolicy

Transport = Literal["stdio", "http"]
ApproveBy = Literal["store", "elicit"]

_VARIABLE = "TOOLCRIB_TOKENS"


@dataclass(frozen=True, slots=True)
class HttpFlags:
    """The options of `serve` over HTTP."""

    host: str | None = None
    port: int | None = None
    path: str | None = None
    public_url: str | None = None
    tokens: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    allowed_hosts: Sequence[str] = ()
    allowed_origins: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class OAuthFlags:
    """The options of `serve` about the authorization server.

    Attributes:
        scopes: The scopes that every request needs.
        tool_scopes: The scopes that tools need, by name or pattern.
    """

    issuer: str | None = None
    audience: Sequence[str] = ()
    jwks: str | None = None
    introspect: str | None = None
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    scopes: Sequence[str] = ()
    tool_scopes: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    principal_claim: str | None = None

    @property
    def given(self) -> dict[str, Any]:
        """The arguments of an `AuthorizationServer` that are given."""
        names = ("issuer", "audience", "jwks", "introspect", "client_id", "client_secret", "scopes", "principal_claim")
        return {name: value for name in names if (value := getattr(self, name))}


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """The options of `serve`; the file of servers may have values for those that are None.

    Attributes:
        search: Whether a few tools are listed, and the others found.
        wait: The seconds that a call waits for its answer before the client is asked to come back.
        store: Whether calls with an effect that need no approval are recorded in the database, too.
        telemetry: Whether events go to the process's providers of OpenTelemetry.
        errors: The text that clients are shown of a tool's unexpected exception; None for the default of the transport.
    """

    target: str
    transport: Transport
    http: HttpFlags
    oauth: OAuthFlags
    name: str | None
    code_mode: bool
    search: bool
    approve_by: ApproveBy | None
    wait: float | None
    database: str | None
    record: str | None
    store: bool
    telemetry: bool
    errors: ErrorPolicy | None


def tokens_of(given: Sequence[str]) -> dict[str, str]:
    """Return the secret of each principal: of `NAME=SECRET`, `NAME=@FILE`, and of the environment.

    Raises:
        BadParameter: One of them is something else, or its file cannot be read.
    """
    tokens: dict[str, str] = {}
    for text in (*os.environ.get(_VARIABLE, "").split(), *given):
        name, equals, secret = text.partition("=")
        if not (name and equals and secret):
            raise typer.BadParameter("write NAME=SECRET, or NAME=@FILE", param_hint="--token")
        if name in tokens:
            raise typer.BadParameter(f"two tokens are given for {name}", param_hint="--token")
        tokens[name] = secret_of(secret)
    return tokens


def scopes_of(given: Sequence[str]) -> dict[str, list[str]]:
    """Return the scopes of each tool: of `TOOL=SCOPE`, or `TOOL=SCOPE,SCOPE`.

    Raises:
        BadParameter: One of them is something else.
    """
    scopes: dict[str, list[str]] = {}
    for text in given:
        name, equals, several = text.partition("=")
        if not (name and equals and several):
            raise typer.BadParameter("write TOOL=SCOPE, or TOOL=SCOPE,SCOPE", param_hint="--tool-scope")
        scopes.setdefault(name, []).extend(several.split(","))
    return scopes


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
