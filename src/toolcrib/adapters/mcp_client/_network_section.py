"""Parts of a file of servers about the gateway on the network: where it listens, and whose tokens it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["AuthSection", "HttpSection", "NetworkOptions", "network_options_of"]


class _Checked(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class HttpSection(_Checked):
    """Where the gateway listens over HTTP.

    Attributes:
        public_url: The whole URL of the endpoint as clients write it, behind a proxy.
        allowed_hosts: Further names of this server.
        allowed_origins: Pages that may use it.
    """

    host: str | None = None
    port: Annotated[int | None, Field(ge=0, le=65535)] = None
    path: str | None = None
    public_url: str | None = None
    allowed_hosts: list[str] = Field(default_factory=list[str])
    allowed_origins: list[str] = Field(default_factory=list[str])


class AuthSection(_Checked):
    """The authorization server whose tokens are accepted.

    Attributes:
        jwks: The address of its keys, where its metadata does not say it.
        introspect: The address where it is asked about each token.
        client_secret_env: The environment variable with the secret for `introspect`.
        scopes: The scopes that every request needs.
    """

    issuer: str
    audience: str | list[str] = Field(default_factory=list[str])
    jwks: str | None = None
    introspect: str | None = None
    client_id: str | None = None
    client_secret_env: str | None = None
    client_auth: Literal["basic", "post"] = "basic"
    scopes: list[str] = Field(default_factory=list[str])
    principal_claim: str | None = None
    algorithms: list[str] | None = None


@dataclass(frozen=True, slots=True)
class NetworkOptions:
    """What a file says of the gateway on the network; what it leaves out is None, or empty.

    Attributes:
        tokens: The bearer token of each principal, by name.
        scoped: Whether it says that tools need scopes.
        authorization_server: The arguments of an `AuthorizationServer`; None where the file names none.
    """

    host: str | None = None
    port: int | None = None
    path: str | None = None
    public_url: str | None = None
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    tokens: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    scoped: bool = False
    authorization_server: Mapping[str, Any] | None = field(default=None, repr=False)


def network_options_of(
    http: HttpSection,
    auth: AuthSection | None,
    tokens_env: Mapping[str, str],
    scoped: bool,
    expanded: Callable[[str, str], str],
    variable: Callable[[str, str], str],
) -> NetworkOptions:
    """Return the options of the parts of a file.

    Args:
        http: Where it listens.
        auth: The authorization server.
        tokens_env: The environment variable with the token of each principal, by the principal's name.
        scoped: Whether tools need scopes.
        expanded: Replaces the variables in the text of a field.
        variable: Returns the value of an environment variable that a field names.
    """

    def text(name: str, given: str | None) -> str | None:
        return None if given is None else expanded(f"toolcrib.{name}", given)

    known: dict[str, Any] | None = None
    if auth is not None:
        known = auth.model_dump(exclude={"client_secret_env"}, exclude_none=True)
        for name in ("issuer", "jwks", "introspect", "client_id"):
            if name in known:
                known[name] = text(f"auth.{name}", known[name])
        if auth.client_secret_env is not None:
            known["client_secret"] = variable("toolcrib.auth.client_secret_env", auth.client_secret_env)
    return NetworkOptions(
        host=text("http.host", http.host),
        port=http.port,
        path=http.path,
        public_url=text("http.public_url", http.public_url),
        allowed_hosts=tuple(http.allowed_hosts),
        allowed_origins=tuple(http.allowed_origins),
        tokens={name: variable(f"toolcrib.tokens_env.{name}", given) for name, given in tokens_env.items()},
        scoped=scoped,
        authorization_server=known,
    )
