"""Options of a server over HTTP: its address, its clients, and its limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from mcp.server.auth.provider import TokenVerifier
from mcp.server.auth.settings import AuthSettings
from starlette.routing import Route

from toolcrib._numbers import require_numbers
from toolcrib.errors import explain_options
from toolcrib.serving.http import check_tokens, is_loopback
from toolcrib.serving.oauth import AuthorizationServer


@explain_options({"token": "tokens", "bearer": "tokens", "url": "public_url", "cors": "allowed_origins"})
@dataclass(frozen=True, slots=True)
class HttpOptions:
    """The address of a server over HTTP, and the clients that may use it.

    Attributes:
        host: The address it listens on. If other machines can reach it, `tokens` or a `token_verifier` is needed.
        port: Any free one for 0.
        path: The path of the protocol's endpoint.
        public_url: The whole URL of the endpoint as clients write it, where a proxy stands in front: its name, and its
            path there. It is this server's name in OAuth, too. Nothing of it is taken from the headers of a request.
        tokens: The bearer token of each principal, by name.
        authorization_server: The authorization server whose tokens are accepted instead: all that OAuth takes.
        token_verifier: Verifies the tokens of an authorization server instead, as the SDK has it.
        auth: Which authorization server that is, for a `token_verifier`, and the scopes that are required; clients are
            shown this. A token has to be for its `resource_server_url`, as the verifier says with
            `AccessToken.resource`; a verifier that looks at the audience itself takes `validate_token_resource=False`.
        allowed_hosts: Further names of this server, as requests have them in `Host`, without their port.
        allowed_origins: Pages that may use it from a browser: `https://example.org`. Those of this machine may use a
            server that listens on this machine alone.
        max_body: Bytes of one request.
        max_headers: Headers of one request.
        max_sessions: Sessions of clients of the older generation at a time; an idle one ends where there are more.
        max_sessions_each: Those of one principal; a quarter of `max_sessions` when None, where callers are known.
        max_connections: Connections and requests at a time.
        idle_seconds: How long a session without a request is kept.
        body_seconds: How long a request may take to arrive.
        read_seconds: How often it is checked that a client reads its reply, at least a kilobyte a second; else the
            connection is closed.
        routes: Further pages, behind the checks of Host and Origin, that need no token: those of consent, say.
        grace_seconds: How long running calls may go on when the server is stopped.

    Raises:
        ValueError: Other machines could reach it without a token, a token is too short, or a limit is not positive.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    path: str = "/mcp"
    public_url: str | None = None
    tokens: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    authorization_server: AuthorizationServer | None = None
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
    routes: Sequence[Route] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        if not self.path.startswith("/"):
            raise ValueError(f"path must begin with a slash, and is {self.path!r}")
        sizes = ("max_body", "max_headers", "max_sessions", "max_sessions_each", "max_connections")
        times = ("idle_seconds", "body_seconds", "read_seconds")
        least = {"port": 0, **dict.fromkeys(sizes, 1)}
        require_numbers("HttpOptions", self, least, seconds=times, seconds_from_zero=("grace_seconds",))
        known = (bool(self.tokens), self.authorization_server is not None, self.token_verifier is not None)
        if sum(known) > 1:
            raise ValueError(
                "give one of tokens, authorization_server and token_verifier: clients show one kind of token"
            )
        for name in self.tokens:
            if not name or not name.isprintable():
                raise ValueError(f"invalid name of a principal: {name!r}. Use printable characters")
        check_tokens(self.tokens)
        self._check_public_url()
        reachable = [host for host in (self.host, *self.names) if not is_loopback(host)]
        if reachable and not self.known_callers:
            raise ValueError(
                f"other machines can reach {reachable[0]}, and any of them could call the tools: "
                "give a token for each client, or an authorization_server"
            )
        if self.authorization_server is not None and self.public_url is None and not is_loopback(self.host):
            raise ValueError(
                "tokens are issued for the URL that clients write, which is not known: give the public_url of the "
                f"endpoint, such as https://tools.example.org{self.path}"
            )

    @property
    def known_callers(self) -> bool:
        """True if every client has to present a token."""
        return bool(self.tokens) or self.authorization_server is not None or self.token_verifier is not None

    @property
    def names(self) -> tuple[str, ...]:
        """The names that requests may have in `Host` besides the address: those allowed, and that of `public_url`."""
        public = "" if self.public_url is None else urlsplit(self.public_url).hostname or ""
        return (*self.allowed_hosts, *((public,) if public else ()))

    @property
    def resource(self) -> str:
        """The URL of the endpoint, as clients write it."""
        host = f"[{self.host}]" if ":" in self.host and not self.host.startswith("[") else self.host
        return self.public_url or f"http://{host}:{self.port}{self.path}"

    @property
    def sessions_each(self) -> int:
        """The number of sessions that one principal may have."""
        if self.max_sessions_each is not None:
            return self.max_sessions_each
        return max(1, self.max_sessions // 4) if self.known_callers else self.max_sessions

    def _check_public_url(self) -> None:
        if self.public_url is None:
            return
        parts = urlsplit(self.public_url)
        local = parts.scheme == "http" and is_loopback(parts.hostname or "")
        if not parts.hostname or parts.query or parts.fragment or not (parts.scheme == "https" or local):
            raise ValueError(
                "public_url must be the whole URL of the endpoint, such as https://tools.example.org/mcp, without a "
                f"query; it is {self.public_url!r}"
            )
