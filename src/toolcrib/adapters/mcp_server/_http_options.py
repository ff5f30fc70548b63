"""Options of a server over HTTP: its address, its clients, and its limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mcp.server.auth.provider import TokenVerifier
from mcp.server.auth.settings import AuthSettings

from toolcrib.serving.http import check_tokens, is_loopback

__all__ = ["HttpOptions"]


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """Where a server listens over HTTP, and who may use it.

    Attributes:
        host: The address it listens on. If other machines can reach it, `tokens` or a `token_verifier` is needed.
        port: Any free one for 0.
        path: The path of the protocol's endpoint.
        tokens: The bearer token of each principal, by name.
        token_verifier: Verifies the tokens of an authorization server instead, as the SDK has it.
        auth: Which authorization server that is, and the scopes that are required; clients are shown this. A token has
            to be for its `resource_server_url`, as the verifier says with `AccessToken.resource`; a verifier that looks
            at the audience itself takes `validate_token_resource=False`.
        allowed_hosts: Further names of this server, as requests have them in `Host`, without their port.
        allowed_origins: Pages that may use it from a browser: `https://example.org`. Those of this machine may use a
            server that listens on this machine alone.
        max_body: Bytes of one request.
        max_headers: Headers of one request.
        max_sessions: Sessions of clients of the older generation at a time.
        max_sessions_each: Those of one principal; a quarter of `max_sessions` when None, where callers are known.
        max_connections: Connections and requests at a time.
        idle_seconds: How long a session without a request is kept.
        body_seconds: How long a request may take to arrive.
        read_seconds: How often it is checked that a client reads its reply, at least a kilobyte a second; else the
            connection is closed.
        grace_seconds: How long running calls may go on when the server is stopped.

    Raises:
        ValueError: Other machines could reach it without a token, a token is too short, or a limit is not positive.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    path: str = "/mcp"
    tokens: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
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
        if self.tokens and self.token_verifier is not None:
            raise ValueError("give tokens or a token_verifier, not both")
        for name in self.tokens:
            if not name or not name.isprintable():
                raise ValueError(f"a token is for a principal with a name, and {name!r} is none")
        check_tokens(self.tokens)
        reachable = [host for host in (self.host, *self.allowed_hosts) if not is_loopback(host)]
        if reachable and not self.known_callers:
            raise ValueError(
                f"other machines can reach {reachable[0]}, and any of them could call the tools: "
                "give a token for each client, or a token_verifier"
            )

    @property
    def known_callers(self) -> bool:
        """Whether every client has to present a token."""
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
