"""Options of the console: its address and its tokens."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

from toolcrib._numbers import require_number
from toolcrib.errors import explain_options
from toolcrib.serving.http import TokenTable, TrustedProxies, check_tokens, is_loopback

if TYPE_CHECKING:  # it needs an extra of its own
    from toolcrib.console.openid import OpenIDLogin

Role: TypeAlias = Literal["viewer", "approver", "administrator"]
"""The rights of a user: to look, to answer, or also to end the sessions of others."""


class LoginRefused(Exception):
    """A login that does not let anybody in; the text says why."""


@explain_options()
@dataclass(frozen=True)
class ConsoleOptions:
    """The address of the console, and the people who may use it.

    Args:
        host: The address to listen on. If other machines can reach it, a token is needed.
        port: The port to listen on; any free one for 0.
        tokens: The token of each user by name; the name is recorded with the answers. A user with the name `""` types
            a name with each answer.
        viewers: The names of users who look, and answer and change nothing.
        administrators: The names of users who answer, and end the sessions of others.
        trusted_proxies: The addresses or networks of proxies in front, whose `X-Forwarded-For` tells where a request
            came from; without any, that is the address of the connection.
        allowed_hosts: Further names of the console, as browsers have them in `Host`, such as that of a proxy.
        login: The login of people at a provider, beside the tokens or in their place.

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
    login: OpenIDLogin | None = None
    administrators: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        require_number("ConsoleOptions", "port", self.port, least=0)
        if self.is_open and not is_loopback(self.host):
            raise ValueError(
                f"other machines can reach {self.host}, and any of them could approve calls: "
                "give a token or a login, or listen on 127.0.0.1"
            )
        check_tokens(self.tokens)
        _ = self.proxies
        for kind, names in (("a viewer", self.viewers), ("an administrator", self.administrators)):
            if unknown := sorted(set(names) - set(self.tokens)):
                raise ValueError(f"no token belongs to {', '.join(unknown)}: {kind} needs a token of that name")
        if both := sorted(self.viewers & self.administrators):
            raise ValueError(f"{', '.join(both)} is a viewer and an administrator: choose one")

    @property
    def is_open(self) -> bool:
        """True if everyone who reaches the console may use it."""
        return not self.tokens and self.login is None

    def role(self, name: str) -> Role:
        """Return whether the holder of a token may look, answer, or also end the sessions of others."""
        return "administrator" if name in self.administrators else "viewer" if name in self.viewers else "approver"

    @cached_property
    def cookie(self) -> str:
        """The cookie's name: consoles on other ports of one machine, with other tokens, have others."""
        secrets = [*sorted(self.tokens.values()), *([] if self.login is None else [self.login.name])]
        return "toolcrib_" + hmac.new("\n".join(secrets).encode(), b"toolcrib console cookie", "sha256").hexdigest()[:8]

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
