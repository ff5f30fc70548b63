"""ConsoleOptions: where the console listens, and whom it lets in."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from ipaddress import ip_address

__all__ = ["ConsoleOptions", "is_address", "is_loopback"]

_SHORTEST = 16  # characters of a token


@dataclass(frozen=True)
class ConsoleOptions:
    """Where the console listens, and whom it lets in.

    Args:
        host: The address to listen on. Beyond this machine there has to be a token.
        port: 0 is any that is free.
        tokens: Who may come in: a token by the name of its holder, which goes into the record of what they approve.
            With the name `""` people say their name themselves.
        allowed_hosts: Further names that browsers reach it by, such as that of a proxy.

    Raises:
        ValueError: There is no token where one is needed, or a token is too short to be a secret.
    """

    host: str = "127.0.0.1"
    port: int = 8137
    tokens: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    allowed_hosts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.tokens and not is_loopback(self.host):
            raise ValueError(f"whoever reaches {self.host} could approve calls: give a token, or listen on 127.0.0.1")
        for name, token in self.tokens.items():
            if len(token) < _SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
                whose = f"the token of {name}" if name else "the token"
                raise ValueError(f"{whose} must have {_SHORTEST} characters at least, without spaces")

    @property
    def local(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names, besides addresses, that a request may call it by."""
        return frozenset({"localhost", self.host.lower(), *(name.lower() for name in self.allowed_hosts)})

    @cached_property
    def cookie(self) -> str:
        """The cookie's name: consoles on other ports of one machine, with other tokens, have others."""
        return "toolcrib_" + _digest("\n".join(sorted(self.tokens.values())), "cookie")[:8]

    def holder(self, token: str) -> str | None:
        """Return whose token this is; None when it is nobody's."""
        found = None
        for name, known in self.tokens.items():
            if hmac.compare_digest(token.encode("utf-8", "replace"), known.encode()):
                found = name
        return found


def is_loopback(host: str) -> bool:
    """Return whether a name or an address means this machine alone."""
    host = host.strip("[]").lower()
    return host == "localhost" or (is_address(host) and ip_address(host).is_loopback)


def is_address(host: str) -> bool:
    """Return whether this is an IP address."""
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def _digest(secret: str, use: str) -> str:
    return hmac.new(secret.encode(), f"toolcrib console {use}".encode(), hashlib.sha256).hexdigest()
