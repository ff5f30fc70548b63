"""Credentials in a file of servers: what a server's section says, and where the gateway keeps them."""

from __future__ import annotations

from typing import Any, Final, Literal, Self

from pydantic import Field, model_validator

from toolcrib.credentials import (
    ApiKeys,
    Credentials,
    CredentialStore,
    IdJag,
    OAuth,
    SqliteCredentialStore,
    TokenExchange,
)
from toolcrib.errors import CredentialKeyError
from toolcrib.gateway._fields import FilePath, FilePlace, Part, Secret, Text, refuse

_PAGES: Final = "http://127.0.0.1:8976/consent"


class _OAuthSection(Part):
    """The options of `OAuth`; a secret is in an environment variable."""

    scopes: list[str] = Field(default_factory=list[str])
    client_id: str = ""
    client_secret_env: Secret | None = Field(default=None, repr=False)
    issuer: str = ""
    client_document: str = ""
    endpoints: dict[str, str] | None = None
    client_name: str = "toolcrib"
    list_as: str | None = None


class _ApiKeySection(Part):
    """The options of `ApiKeys`."""

    header: str = "Authorization"
    prefix: str | None = None
    query: str = ""
    list_as: str | None = None


class _IdJagSection(Part):
    """The options of `IdJag`; a secret is in an environment variable."""

    issuer: Text
    token: Text
    client_id: Text
    client_secret_env: Secret | None = Field(default=None, repr=False)


class _ExchangeSection(Part):
    """The options of `TokenExchange`; a secret is in an environment variable."""

    token: Text
    client_id: Text
    client_secret_env: Secret | None = Field(default=None, repr=False)
    audience: str = ""
    scopes: list[str] = Field(default_factory=list[str])
    subject: Literal["access_token", "id_token", "jwt"] = "access_token"
    resource: bool = True
    id_jag: _IdJagSection | None = None
    list_as: str | None = None

    def credentials(self) -> TokenExchange:
        """Return the token exchange of these options; raises ValueError for an address that cannot be used."""
        options: dict[str, Any] = self.model_dump(exclude={"client_secret_env", "id_jag"})
        last = self.id_jag
        fields: dict[str, Any] = {} if last is None else last.model_dump(exclude={"client_secret_env"})
        id_jag = None if last is None else IdJag(**fields, client_secret=last.client_secret_env or "")
        return TokenExchange(**options, client_secret=self.client_secret_env or "", id_jag=id_jag)


class CredentialsSection(Part):
    """The credentials of a server's section.

    Attributes:
        oauth: Each principal consents to a token of their own; True, or options.
        api_key: Each principal has a key of their own; True, or options.
        exchange: The token that a caller came with is exchanged for one of the server.
        api_key_env: One key for all principals, from an environment variable.
        header: The header of that one key.
    """

    oauth: bool | _OAuthSection = False
    api_key: bool | _ApiKeySection = False
    exchange: _ExchangeSection | None = None
    api_key_env: Secret | None = Field(default=None, repr=False)
    header: str | None = None

    @property
    def is_kept(self) -> bool:
        """True if each principal has credentials of their own, which are stored."""
        return bool(self.oauth or self.api_key)

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        ways = [name for name in ("oauth", "api_key", "exchange", "api_key_env") if getattr(self, name)]
        if len(ways) != 1:
            refuse(
                f"it must have one of oauth, api_key, exchange and api_key_env, and has {' and '.join(ways) or 'none'}"
            )
        if self.header is not None and self.api_key_env is None:
            refuse("header goes with api_key_env; for api_key write it there")
        return self


class CredentialPlace(Part):
    """The store of a gateway's credentials, and the address of its consent pages.

    Attributes:
        database: A SQLite file, by the file of servers.
        pages: The address of the consent pages: of this machine, or of the gateway itself as people reach it.
    """

    database: FilePath = Field(default="credentials.db", validate_default=True)
    pages: Text = _PAGES


class Vault:
    """The credential store of a file, opened when a server needs it."""

    def __init__(self, place: CredentialPlace) -> None:
        self._place = place
        self._store: CredentialStore | None = None

    def credentials(self, place: FilePlace, section: CredentialsSection) -> Credentials:
        """Return the credentials of each principal for a server; raises TargetError."""
        try:
            if section.exchange is not None:
                return section.exchange.credentials()
            if self._store is None:
                self._store = SqliteCredentialStore(self._place.database)
            if section.oauth:
                oauth = _OAuthSection() if section.oauth is True else section.oauth
                options: dict[str, Any] = oauth.model_dump(exclude={"client_secret_env"})
                secret = oauth.client_secret_env or ""
                return OAuth(self._store, pages=self._place.pages, client_secret=secret, **options)
            keys = _ApiKeySection() if isinstance(section.api_key, bool) else section.api_key
            return ApiKeys(self._store, pages=self._place.pages, **keys.model_dump())
        except (CredentialKeyError, OSError, ValueError) as error:
            raise place.wrong("toolcrib.credentials", str(error)) from None
