"""Bearer tokens, each by the name of its holder."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping

_SHORTEST = 16  # characters


def check_tokens(tokens: Mapping[str, str]) -> None:
    """Check that tokens are secrets, one for each holder.

    Raises:
        ValueError: A token is short, not a word of ASCII, or held by two.
    """
    for name, token in tokens.items():
        if len(token) < _SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
            raise ValueError(
                f"the token{name and f' of {name}'} must have at least {_SHORTEST} characters, of ASCII and without "
                'spaces; make one with: python -c "import secrets; print(secrets.token_urlsafe())"'
            )
    if len(set(tokens.values())) < len(tokens):
        raise ValueError("two names have the same token: give each its own")


class TokenTable:
    """Finds the holder of a token; the time that takes says nothing about any token.

    Args:
        tokens: The token of each holder, by name.
    """

    def __init__(self, tokens: Mapping[str, str]) -> None:
        self._hashes = tuple((name, _hash(token)) for name, token in tokens.items())

    def holder(self, token: str) -> str | None:
        """Return the name of a token's holder; None for an unknown token."""
        given, found = _hash(token), None
        for name, known in self._hashes:
            if hmac.compare_digest(given, known):
                found = name
        return found


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
