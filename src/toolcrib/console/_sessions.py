"""Sessions: who logged in from which browser, until they log out."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time

from toolcrib.console._options import ConsoleOptions

__all__ = ["SESSION_SECONDS", "Sessions"]

SESSION_SECONDS = 7 * 24 * 3600
"""How long a login is good for."""


class Sessions:
    """Makes what a browser keeps of a login, and knows it again.

    It does not tell the token, is no other login's, and is good after a restart of the server, too: for a week, as long
    as the token is the same, and until the browser logs out. Which ones have ended is forgotten at a restart.

    Args:
        options: Whose tokens there are.
    """

    def __init__(self, options: ConsoleOptions) -> None:
        self._options = options
        self._ended: dict[str, int] = {}

    def begin(self, holder: str) -> str:
        """Return what the browser of a token's holder keeps from now on."""
        said = f"{secrets.token_hex(8)}.{int(time.time()) + SESSION_SECONDS}"
        return f"{said}.{_signature(self._options.tokens[holder], said)}"

    def holder(self, session: str) -> str | None:
        """Return whose login this is; None when it is nobody's, or over."""
        said, _, signature = session.rpartition(".")
        name, _, until = said.partition(".")
        found = None
        for holder, token in self._options.tokens.items():
            if hmac.compare_digest(signature.encode("utf-8", "replace"), _signature(token, said).encode()):
                found = holder
        if found is None or int(until) <= time.time() or name in self._ended:
            return None
        return found

    def end(self, session: str) -> None:
        """Let a login be good for nothing any more."""
        if self.holder(session) is not None:
            name, until, _ = session.split(".")
            self._ended = {kept: over for kept, over in self._ended.items() if over > time.time()}
            self._ended[name] = int(until)


def _signature(token: str, said: str) -> str:
    text = f"toolcrib console session {said}".encode("utf-8", "replace")
    return hmac.new(token.encode(), text, hashlib.sha256).hexdigest()
