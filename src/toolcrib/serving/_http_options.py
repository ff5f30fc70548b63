"""Where and how a server listens over HTTP, and who may come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address

from mcp.server.auth.provider import TokenVerifier
from mcp.server.auth.settings import AuthSettings

__all__ = ["HttpOptions", "host_of", "is_loopback"]

_SHORTEST = 16  # characters of a token


def _nobody() -> dict[str, str]:
    return {}


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """Where and how a server listens over HTTP, and who may come.

    Attributes:
        host: The address it listens on. Beyond this machine it takes `tokens` or a `token_verifier`.
        port: Any free one for 0.
        path: Where the protocol is spoken.
        tokens: The secret that each principal, by name, presents as a bearer token.
        token_verifier: Verifies the tokens of an authorization server instead, as the SDK has it.
        auth: Which authorization server that is, and the scopes that are required; told to clients.
        allowed_hosts: Further names that this server goes by, as requests have them in `Host`, without their port.
        allowed_origins: Pages that may use it from a browser: `https://example.org`. Those of this machine may use one
            that listens on this machine alone.
        max_body: Bytes of one request.
        max_headers: Headers of one request.
        max_sessions: Sessions of clients of the older generation at a time.
        max_sessions_each: Those of one principal; a quarter of `max_sessions` when None, where callers are known.
        max_connections: Connections and requests at a time.
        idle_seconds: A session ends that nothing was heard of for so long.
        body_seconds: How long a request may take to arrive.
        read_seconds: How long a client may take to read on, at a kilobyte a second at least; then it is hung up on.
        grace_seconds: How long calls that run may go on when the server is stopped.

    Raises:
        ValueError: It would listen beyond this machine without knowing who comes, a token is short, or no limit.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    path: str = "/mcp"
    tokens: Mapping[str, str] = field(default_factory=_nobody, repr=False)
    token_verifier: TokenVerifier | None = None
    auth: AuthSettings | None = None
    allowed_hosts: Sequence[str] = ()
    allowed_origins: Sequence[str] = ()
    max_body: int = 4 * 1024 * 1024
    max_headers: int = 100
    max_sessions: int = 1000
    max_sessions_each: int | None = None
    max_connections: int = 1000
    idle_seconds: float = 1800.0
    body_seconds: float = 30.0
    read_seconds: float = 30.0
    grace_seconds: float = 5.0

    def __post_init__(self) -> None:
        if not self.path.startswith("/"):
            raise ValueError(f"path begins with a slash, and is {self.path!r}")
        self._check_limits()
        self._check_tokens()
        beyond = [host for host in (self.host, *self.allowed_hosts) if not is_loopback(host)]
        if beyond and not self.known_callers:
            raise ValueError(
                f"{beyond[0]} can be reached from other machines, and whoever comes could call the tools: "
                "give a token for each of those who may, or a token_verifier"
            )

    @property
    def known_callers(self) -> bool:
        """Whether everybody who comes has to say who they are."""
        return bool(self.tokens) or self.token_verifier is not None

    @property
    def sessions_each(self) -> int:
        """How many sessions one principal may have."""
        if self.max_sessions_each is not None:
            return self.max_sessions_each
        return max(1, self.max_sessions // 4) if self.known_callers else self.max_sessions

    def _check_limits(self) -> None:
        sizes = ("max_body", "max_headers", "max_sessions", "max_sessions_each", "max_connections")
        for name in (*sizes, "idle_seconds", "body_seconds", "read_seconds"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} is more than 0, and is {value}")
        if self.grace_seconds < 0:
            raise ValueError(f"grace_seconds is at least 0, and is {self.grace_seconds}")

    def _check_tokens(self) -> None:
        if self.tokens and self.token_verifier is not None:
            raise ValueError("give tokens or a token_verifier: who comes is told in one way")
        for name, secret in self.tokens.items():
            if not name or not name.isprintable():
                raise ValueError(f"a token is for a principal with a name, and {name!r} is none")
            if len(secret) < _SHORTEST or not secret.isascii() or not secret.isprintable() or " " in secret:
                raise ValueError(
                    f"the token of {name} has to have {_SHORTEST} characters at least, of ASCII and without spaces; "
                    'make one with: python -c "import secrets; print(secrets.token_urlsafe())"'
                )
        if len(set(self.tokens.values())) < len(self.tokens):
            raise ValueError("two principals have the same token: give each their own")


def is_loopback(host: str) -> bool:
    """Return whether a name or address means this machine, and cannot be reached from another."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def host_of(header: str) -> str:
    """Return the name or address of a `Host` header, without the port; empty for what is none."""
    if header.startswith("["):
        address, bracket, rest = header[1:].partition("]")
        return address.lower() if bracket and _is_port(rest) else ""
    name, colon, port = header.partition(":")
    return name.lower() if _is_port(colon + port) else ""


def _is_port(text: str) -> bool:
    return text == "" or (text[0] == ":" and text[1:].isdigit() and len(text) <= 6)
