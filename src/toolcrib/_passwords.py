"""Passwords in texts that name a database, hidden before a person or a log sees them; what stands for a secret."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote_plus

REDACTED = "[redacted]"
"""The text in the place of a secret."""
STARS = "**********"  # as pydantic shows its secrets
_HIDDEN = "***"
_SECRET = {"password", "passwd", "pwd", "pgpassword", "sslpassword", "oauth_client_secret", "scram_client_key"}
_SHORTEST = 3  # a shorter password is in many words by chance

# `//user:password@host`: up to the last @, since a password may hold one that is not escaped
_USER = r"(://[^\s:/?#@]*):(?:(?!://)[^\n])*@"
# `user:password@host` without the slashes, of which no password is known to hold white space
_NO_URL = r"""(?<![^\s'"`/:])([^\s'"`:/?#@]+):(?!//)\S{1,256}@"""
# `?password=...` of a URL, with any letter of the name escaped, and libpq's `password = 'a \' b'`
_SETTING = r"(?<![\w%])([\w%]+)(\s*=\s*)(?:'(?:\\.|[^'\\])*'?|(?:\\.|[^\s&;\\])+)"


def hide_passwords(text: str, password: str | None = None) -> str:
    """Return a text with `***` in place of each password: of URLs, of their queries and of libpq's settings.

    Args:
        password: A password that is known, and is hidden wherever it stands by itself.
    """
    text = re.sub(_USER, rf"\1:{_HIDDEN}@", text)
    text = re.sub(_NO_URL, rf"\1:{_HIDDEN}@", text)
    text = re.sub(_SETTING, _hidden_setting, text)
    if password is not None and len(password) >= _SHORTEST:
        for form in (password, quote(password, safe="")):
            text = text.replace(form, _HIDDEN)
    return text


def _hidden_setting(found: re.Match[str]) -> str:
    name, equals = found[1], found[2]
    return f"{name}{equals}{_HIDDEN}" if unquote_plus(name).lower() in _SECRET else found[0]
