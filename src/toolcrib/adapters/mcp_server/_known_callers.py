"""Callers of a server over HTTP that have to be known: how their tokens are checked, and how a refusal is answered."""

from __future__ import annotations

import time
from typing import Any

from mcp.server.auth.provider import AccessToken, TokenVerifier
from pydantic import AnyHttpUrl, ValidationError

from toolcrib._subject_tokens import subject_tokens
from toolcrib.adapters.mcp_server._bearer import Challenge, CheckBearer, VerifiedAccess, principal_of
from toolcrib.adapters.mcp_server._http_options import HttpOptions
from toolcrib.serving.http import TokenTable
from toolcrib.serving.oauth import TokenCheck, TokenRefused, metadata_url, token_check


class KnownCallers:
    """How the tokens of requests are checked.

    Attributes:
        check: Checks a token.
        challenge: What a client is answered that has no good token.
        metadata: What clients are shown of the authorization server (RFC 9728); None where there is none.
    """

    check: CheckBearer

    def __init__(self, options: HttpOptions) -> None:
        self.challenge = Challenge()
        self.metadata: dict[str, Any] | None = None
        self._tokens: TokenCheck | None = None
        auth = options.auth
        if options.authorization_server is not None:
            server = options.authorization_server
            self._tokens = token_check(server, options.resource)
            self.check = _Checked(self._tokens)
            self._describe(options.resource, server.issuer, tuple(server.scopes))
        elif options.token_verifier is not None:
            is_checked = auth is not None and auth.validate_token_resource is not False  # unset counts as True here
            resource = auth.resource_server_url if auth is not None and is_checked else None
            self.check = _Verified(options.token_verifier, resource)
            scopes = () if auth is None else tuple(auth.required_scopes or ())
            self.challenge = Challenge(scopes=scopes)
            if auth is not None and auth.resource_server_url is not None:
                self._describe(str(auth.resource_server_url), str(auth.issuer_url), scopes)
        else:
            self.check = _Held(TokenTable(options.tokens))

    async def is_ready(self) -> bool:
        """Return whether tokens can be checked now."""
        return self._tokens is None or await self._tokens.is_ready()

    async def close(self) -> None:
        """Close the connections to the authorization server."""
        if self._tokens is not None:
            await self._tokens.close()

    def _describe(self, resource: str, issuer: str, scopes: tuple[str, ...]) -> None:
        self.challenge = Challenge(metadata_url(resource), scopes)
        self.metadata = {
            "resource": resource,
            "authorization_servers": [issuer],
            **({"scopes_supported": list(scopes)} if scopes else {}),
            "bearer_methods_supported": ["header"],
        }


class _Held:
    """Checks the tokens of `HttpOptions.tokens`."""

    def __init__(self, tokens: TokenTable) -> None:
        self._tokens = tokens

    async def __call__(self, token: str) -> AccessToken:
        holder = self._tokens.holder(token)
        if holder is None:
            raise TokenRefused("the token is not known")
        return AccessToken(token="", client_id=holder, scopes=[])


class _Checked:
    """Checks the tokens of `HttpOptions.authorization_server`."""

    def __init__(self, tokens: TokenCheck) -> None:
        self._tokens = tokens

    async def __call__(self, token: str) -> AccessToken:
        known = await self._tokens.check(token)
        subject_tokens.keep(known.principal, token, known.expires_at)
        return VerifiedAccess(
            token="",
            client_id=known.client_id,
            subject=known.subject,
            scopes=sorted(known.access.scopes),
            claims={"iss": known.issuer},
            principal=known.principal,
            access=known.access,
        )


class _Verified:
    """Checks tokens by a verifier of the SDK's, and whom they are for."""

    def __init__(self, verifier: TokenVerifier, resource: AnyHttpUrl | None) -> None:
        self._verifier, self._resource = verifier, resource

    async def __call__(self, token: str) -> AccessToken:
        found = await self._verifier.verify_token(token)
        if found is None:
            raise TokenRefused("the token is not valid")
        if found.expires_at is not None and found.expires_at < time.time():
            raise TokenRefused("the token has expired")
        if self._resource is not None and not _is_for(found.resource, self._resource):
            raise TokenRefused("the token is for another audience")
        subject_tokens.keep(principal_of(found), token, found.expires_at)
        return found


def _is_for(resource: str | None, url: AnyHttpUrl) -> bool:
    try:
        given = str(AnyHttpUrl(resource or ""))
    except ValidationError:
        return False
    return given.removesuffix("/") == str(url).removesuffix("/")
