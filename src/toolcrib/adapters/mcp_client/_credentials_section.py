"""Credentials in a file of servers: what a server's section says, and where the gateway keeps them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from toolcrib.credentials import ApiKeys, Credentials, CredentialStore, OAuth, SqliteCredentialStore
from toolcrib.errors import CredentialKeyError, TargetError

__all__ = ["CredentialsOptions", "CredentialsSection", "GatewayCredentials", "Vault"]

_PAGES: Final = "http://127.0.0.1:8976/consent"


class _Checked(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _OAuthSection(_Checked):
    """The options of `OAuth`; a secret is in an environment variable."""

    scopes: list[str] = Field(default_factory=list[str])
    client_id: str = ""
    client_secret_env: str | None = None
    issuer: str = ""
    client_document: str = ""
    endpoints: dict[str, str] | None = None
    client_name: str = "toolcrib"
    list_as: str | None = None


class _ApiKeySection(_Checked):
    """The options of `ApiKeys`."""

    header: str = "Authorization"
    prefix: str | None = None
    query: str = ""
    list_as: str | None = None


class CredentialsSection(_Checked):
    """The credentials of a server's section.

    Attributes:
        oauth: Each principal consents to a token of their own; True, or options.
        api_key: Each principal has a key of their own; True, or options.
        api_key_env: An environment variable with one key for all principals.
        header: The header of that one key.
    """

    oauth: bool | _OAuthSection = False
    api_key: bool | _ApiKeySection = False
    api_key_env: str | None = None
    header: str | None = None

    @property
    def is_kept(self) -> bool:
        """Whether each principal has their own."""
        return bool(self.oauth or self.api_key)

    def problem(self) -> str:
        """Return what is wrong with it as a whole; empty where nothing is."""
        given = [name for name in ("oauth", "api_key", "api_key_env") if getattr(self, name)]
        if len(given) != 1:
            return f"it has one of oauth, api_key and api_key_env, and has {' and '.join(given) or 'none'}"
        if self.header is not None and self.api_key_env is None:
            return "header goes with api_key_env; for api_key write it there"
        return ""


class GatewayCredentials(_Checked):
    """The credentials of the gateway's section.

    Attributes:
        database: A SQLite file, by this one.
        pages: The address of the consent pages: of this machine, or of the gateway itself as people reach it.
    """

    database: str = "credentials.db"
    pages: str = _PAGES


@dataclass(frozen=True, slots=True)
class CredentialsOptions:
    """Where a gateway keeps credentials, and where its consent pages are."""

    database: Path
    pages: str


class Vault:
    """The credential store of a file, opened when a server needs it."""

    def __init__(self, options: CredentialsOptions) -> None:
        self._options = options
        self._store: CredentialStore | None = None

    def credentials(
        self,
        section: CredentialsSection,
        variable: Callable[[str, str], str],
        wrong: Callable[[str, str], TargetError],
    ) -> Credentials:
        """Return the credentials of a server.

        Args:
            section: The section, which has credentials of each principal.
            variable: Returns the environment variable that a field names.
            wrong: Makes the error for a field.
        """
        try:
            store, pages = self._opened(), self._options.pages
            if section.oauth:
                given = _OAuthSection() if section.oauth is True else section.oauth
                options: dict[str, Any] = given.model_dump(exclude={"client_secret_env"})
                name = given.client_secret_env
                secret = "" if name is None else variable("toolcrib.credentials.oauth.client_secret_env", name)
                return OAuth(store, pages=pages, client_secret=secret, **options)
            keys = _ApiKeySection() if isinstance(section.api_key, bool) else section.api_key
            return ApiKeys(store, pages=pages, **keys.model_dump())
        except (CredentialKeyError, OSError, ValueError) as error:
            raise wrong("toolcrib.credentials", str(error)) from None

    def _opened(self) -> CredentialStore:
        if self._store is None:
            self._store = SqliteCredentialStore(self._options.database)
        return self._store
