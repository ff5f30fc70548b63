"""Access tokens that callers of this process came with, in memory alone: what is exchanged on their behalf."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Final

_MOST: Final = 10_000  # principals


class SubjectTokens:
    """The newest access token of each principal, until it ends.

    Attributes:
        is_wanted: Whether any is kept: nothing is, until credentials of this process exchange them.
    """

    def __init__(self) -> None:
        self.is_wanted = False
        self._tokens: OrderedDict[str, tuple[str, float]] = OrderedDict()

    def keep(self, principal: str, token: str, expires_at: float | None) -> None:
        """Keep the token of a request that was checked.

        Args:
            principal: Whose request it is.
            token: The access token.
            expires_at: When it ends, in seconds since 1970; None where that is not known.
        """
        if not self.is_wanted:
            return
        self._tokens[principal] = token, float("inf") if expires_at is None else float(expires_at)
        self._tokens.move_to_end(principal)
        if len(self._tokens) > _MOST:
            self._tokens.popitem(last=False)

    def token_of(self, principal: str) -> str | None:
        """Return the token of a principal, if there is one that has not ended."""
        token, expires_at = self._tokens.get(principal, ("", 0.0))
        if expires_at > time.time():
            return token
        self._tokens.pop(principal, None)
        return None

    def principals(self) -> tuple[str, ...]:
        """Return the principals with a token, those who came last at the end."""
        return tuple(principal for principal in [*self._tokens] if self.token_of(principal) is not None)


subject_tokens: Final = SubjectTokens()
"""Those of this process."""
