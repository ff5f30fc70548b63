"""Credentials of each principal for other servers: obtained by OAuth, stored encrypted, refreshed and revoked.

Nothing here runs a tool, serves a page, or is shown to a model. Needs the extra `credentials`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib._extras import Extra
from toolcrib._lazy_names import lazy_names

with Extra("credentials for other servers", "credentials", ("cryptography", "httpx2")):
    import cryptography as _cryptography
    import httpx2 as _httpx2

from toolcrib.credentials._api_keys import ApiKeys
from toolcrib.credentials._auth import Credentials, PrincipalAuth, server_key
from toolcrib.credentials._consent import Arrival, ConsentFlow, Departure
from toolcrib.credentials._guarded_http import AddressError
from toolcrib.credentials._keys import CredentialKeys, new_key
from toolcrib.credentials._oauth import OAuth
from toolcrib.credentials._store import (
    CredentialStore,
    KeptCredential,
    MemoryCredentialStore,
    SqliteCredentialStore,
)
from toolcrib.credentials._token_exchange import IdJag, TokenExchange

if TYPE_CHECKING:
    from toolcrib.credentials._postgres import PostgresCredentialStore
else:
    __getattr__, __dir__ = lazy_names(__name__, {"._postgres": "PostgresCredentialStore"})

__all__ = [
    "AddressError",
    "ApiKeys",
    "Arrival",
    "ConsentFlow",
    "CredentialKeys",
    "CredentialStore",
    "Credentials",
    "Departure",
    "IdJag",
    "KeptCredential",
    "MemoryCredentialStore",
    "OAuth",
    "PostgresCredentialStore",
    "PrincipalAuth",
    "SqliteCredentialStore",
    "TokenExchange",
    "new_key",
    "server_key",
]

del _cryptography, _httpx2
