"""OAuth 2.1 of a resource server: access tokens checked by one authorization server; and logins by OpenID Connect.

Nothing here follows an address that a token names. Needs the extra `mcp`, which brings the libraries for JWT and HTTP.
"""

from __future__ import annotations

from toolcrib._extras import Extra

with Extra("checking tokens of an authorization server", "mcp", ("anyio", "httpx2", "jwt")):
    from toolcrib.serving.oauth._authorization_server import (
        ALGORITHMS,
        AuthorizationServer,
        CheckedToken,
        TokenRefused,
        known_ids,
    )
    from toolcrib.serving.oauth._fetch import AuthorizationServerUnavailable, metadata_path, metadata_url
    from toolcrib.serving.oauth._openid import Departure, LoggedIn, OpenIDClient, OpenIDProvider
    from toolcrib.serving.oauth._token_check import TokenCheck, token_check

__all__ = [
    "ALGORITHMS",
    "AuthorizationServer",
    "AuthorizationServerUnavailable",
    "CheckedToken",
    "Departure",
    "LoggedIn",
    "OpenIDClient",
    "OpenIDProvider",
    "TokenCheck",
    "TokenRefused",
    "known_ids",
    "metadata_path",
    "metadata_url",
    "token_check",
]
