"""Settings of OAuth for one server, and where its tokens come from: values, and their JSON shapes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from toolcrib.calls import StoredFields, versioned


@dataclass(frozen=True, slots=True)
class Endpoints:
    """An authorization server, as its metadata or the host says.

    Attributes:
        resource: The resource that tokens are for; empty where the server does not know of resources.
        says_issuer: Whether it says in every answer that it gave the answer.
        takes_documents: Whether the address of a client's metadata may be the client's id.
        methods: How clients may say who they are when they ask for a token.
    """

    issuer: str
    authorize: str
    token: str
    register: str = ""
    revoke: str = ""
    scopes: tuple[str, ...] = ()
    says_issuer: bool = False
    takes_documents: bool = False
    methods: tuple[str, ...] = ("client_secret_basic", "client_secret_post", "none")
    resource: str = ""

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Endpoints:
        """Return the endpoints that `asdict` described."""
        values: dict[str, Any] = {**data, "scopes": tuple(data["scopes"]), "methods": tuple(data["methods"])}
        return cls(**values)


@dataclass(frozen=True, slots=True)
class OAuthClient:
    """This host as a client of an authorization server.

    Attributes:
        method: How we say who we are when we ask for a token.
    """

    client_id: str
    secret: str = field(default="", repr=False)
    method: str = "none"


@dataclass(frozen=True, slots=True)
class Settings:
    """The host's settings of OAuth for a server.

    Attributes:
        resource: The address of the server.
        scopes: The scopes to ask for; those that the server names when empty.
        client: A client that was registered before; one registers itself when None.
        issuer: The only authorization server that a client which was registered before is shown to.
        document: The address of the client's metadata, which is its id where the server takes that.
        endpoints: The authorization server; it is looked for when None.
        offline: Whether to ask for a refresh token where that has a scope of its own.
    """

    resource: str
    scopes: tuple[str, ...] = ()
    client: OAuthClient | None = None
    issuer: str = ""
    document: str = ""
    endpoints: Endpoints | None = None
    offline: bool = True
    name: str = "toolcrib"

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON shapes."""
        return versioned("Settings", asdict(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Settings:
        """Return the settings that `to_dict` described."""
        data = StoredFields(cls, data)
        client, endpoints = data["client"], data["endpoints"]
        values: dict[str, Any] = {
            **data,
            "scopes": tuple(data["scopes"]),
            "client": None if client is None else OAuthClient(**client),
            "endpoints": None if endpoints is None else Endpoints.from_dict(endpoints),
        }
        return cls(**values)


@dataclass(frozen=True, slots=True)
class Token:
    """A principal's token for a server.

    Attributes:
        expires_at: In seconds since 1970; 0 where that is not known.
        endpoints: The authorization server that gave it: it is refreshed and revoked there and nowhere else.
    """

    access: str = field(repr=False)
    refresh: str = field(repr=False)
    expires_at: float
    endpoints: Endpoints
    client: OAuthClient

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON shapes."""
        return versioned("Token", asdict(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Token:
        """Return the token that `to_dict` described."""
        data = StoredFields(cls, data)
        client, endpoints = OAuthClient(**data["client"]), Endpoints.from_dict(data["endpoints"])
        return cls(data["access"], data["refresh"], data["expires_at"], endpoints, client)
