"""Options of the console: its address and its tokens."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

from toolcrib.serving.http import TokenTable, TrustedProxies, check_tokens, is_loopback

__all__ = ["ConsoleOptions", "Role"]

Role: TypeAlias = Literal["viewer", "approver"]
"""Whether a user answers, or looks alone."""


@dataclass(frozen=True)
class ConsoleOptions:
    """Where the console listens, and who may use it.

    Args:
        host: The address to listen on. If other machines can reach it, a token is needed.
        port: Any free one for 0.
        tokens: The token of each user by name; the name is recorded with the answers. A user with the name `""` types
            a name with each answer.
        viewers: The names of users who look, and answer and change nothing.
        trusted_proxies: The addresses or networks of proxies in front, whose `X-Forwarded-For` tells where a request
            came from; without any, that is the address of the connection.
        allowed_hosts: Further names of the console, as browsers have them in `Host`, such as that of a proxy.

    Raises:
        ValueError: Other machines could reach it without a token, a token is not a secret, a viewer has none, or the
            address of a proxy is invalid.
    """

    host: str = "127.0.0.1"
    port: int = 8137
    tokens: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    allowed_hosts: tuple[str, ...] = ()
    viewers: frozenset[str] = frozenset()
    trusted_proxies: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.tokens and not is_loopback(self.host):
            raise ValueError(
                f"other machines can reach {self.host}, and any of them could approve calls: "
                "give a token, or listen on 127.0.0.1"
            )
        check_tokens(self.tokens)
        _ = self.proxies
        if unknown := sorted(set(self.viewers) - set(self.tokens)):
            raise ValueError(f"no token is of {', '.join(unknown)}: a viewer needs a token of that name")

    def role(self, name: str) -> Role:
        """Return whether the holder of a token may answer, or only look."""
        return "viewer" if name in self.viewers else "approver"

    @cached_property
    def cookie(self) -> str:
        """The cookie's name: consoles on other ports of one machine, with other tokens, have others."""
        return "toolcrib_" + _digest("\n".join(sorted(self.tokens.values())), "cookie")[:8]

    def holder(self, token: str) -> str | None:
        """Return the name of a token's holder; None for an unknown token."""
        return self._table.holder(token)

    @cached_property
    def proxies(self) -> TrustedProxies:
        """The proxies that are in front of the console."""
        return TrustedProxies(self.trusted_proxies)

    @cached_property
    def _table(self) -> TokenTable:
        return TokenTable(self.tokens)


def _digest(secret: str, use: str) -> str:
    return hmac.new(secret.encode(), f"toolcrib console {use}".encode(), hashlib.sha256).hexdigest()
