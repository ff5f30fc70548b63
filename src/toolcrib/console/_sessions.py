"""Sessions of logged-in browsers, as signed cookies."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time

from toolcrib.console._options import ConsoleOptions

SESSION_SECONDS = 7 * 24 * 3600
"""How long a login is valid."""


class Sessions:
    """Makes the cookie of a login, and checks it.

    A cookie does not reveal the token, and belongs to one login. It is valid for a week, also after a restart of the
    server, while the token is the same and until the browser logs out; a restart forgets which logins have ended.

    Args:
        options: The tokens.
    """

    def __init__(self, options: ConsoleOptions) -> None:
        self._options = options
        self._ended: dict[str, int] = {}

    def begin(self, holder: str) -> str:
        """Return the cookie of a new login of a token's holder."""
        signed = f"{secrets.token_hex(8)}.{int(time.time()) + SESSION_SECONDS}"
        return f"{signed}.{_signature(self._options.tokens[holder], signed)}"

    def holder(self, session: str) -> str | None:
        """Return the holder of a login; None when the cookie is invalid or has ended."""
        signed, _, signature = session.rpartition(".")
        name, _, until = signed.partition(".")
        found = None
        for holder, token in self._options.tokens.items():
            if hmac.compare_digest(signature.encode("utf-8", "replace"), _signature(token, signed).encode()):
                found = holder
        if found is None or int(until) <= time.time() or name in self._ended:
            return None
        return found

    def is_open(self, session: str) -> bool:
        """Return whether a login has not ended."""
        return self.holder(session) is not None

    def end(self, session: str) -> None:
        """End a login."""
        if self.holder(session) is not None:
            name, until, _ = session.split(".")
            self._ended = {kept: over for kept, over in self._ended.items() if over > time.time()}
            self._ended[name] = int(until)


def _signature(token: str, signed: str) -> str:
    text = f"toolcrib console session {signed}".encode("utf-8", "replace")
    return hmac.new(token.encode(), text, hashlib.sha256).hexdigest()
