"""Tokens that name who comes."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping

from mcp.server.auth.provider import AccessToken

__all__ = ["TokenTable"]


class TokenTable:
    """Verifies bearer tokens against those that were given out; a `TokenVerifier` of the SDK.

    A token is compared with each of them, in a time that tells nothing of any.

    Args:
        tokens: The secret of each principal, by name.
    """

    def __init__(self, tokens: Mapping[str, str]) -> None:
        self._known = tuple((name, _hashed(secret)) for name, secret in tokens.items())

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return whose token it is, or None."""
        given, found = _hashed(token), None
        for name, secret in self._known:
            if hmac.compare_digest(given, secret):
                found = name
        return None if found is None else AccessToken(token="", client_id=found, scopes=[])


def _hashed(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
