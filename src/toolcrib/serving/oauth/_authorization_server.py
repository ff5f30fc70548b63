"""AuthorizationServer: whose access tokens a server accepts, and how they are checked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import SplitResult, urlsplit

from toolcrib._numbers import require_numbers
from toolcrib.errors import explain_options
from toolcrib.serving.http import is_loopback

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""The algorithms that a token may be signed with, all of them with a private key."""

_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")  # RFC 6749, section 3.3


@explain_options()
@dataclass(frozen=True, slots=True)
class AuthorizationServer:
    """The authorization server whose access tokens a server accepts, and how they are checked.

    Tokens are JWTs, checked with the keys that the server publishes; with `introspect`, the server is asked about each.

    Attributes:
        issuer: Its address, exactly as it is in the claim `iss` of tokens and in its own metadata.
        audience: For whom a token has to be, one of them at least; the address of the served endpoint when empty.
        jwks: The address of its keys; found by the metadata of the issuer when None.
        introspect: The address where it says whether a token is valid (RFC 7662).
        client_id: The name of this server there, for `introspect`.
        client_secret: The secret that goes with it; without a `client_id`, a bearer token for that address.
        client_auth: How both are sent: in the header (`basic`) or in the body (`post`).
        scopes: The scopes that every request needs.
        principal_claim: The claim that names the principal, whose values have to be unique, with `email` only where it
            is verified; when None, the subject and the issuer together.
        algorithms: The algorithms that are accepted.
        leeway: Seconds by which clocks may differ.
        remember_seconds: For how long an answer of `introspect` holds, so that a token that was revoked is refused.

    Raises:
        ValueError: An address is not one of https, an algorithm is not accepted, or two ways to check are given.
    """

    issuer: str
    audience: str | Sequence[str] = ()
    jwks: str | None = None
    introspect: str | None = None
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    client_auth: Literal["basic", "post"] = "basic"
    scopes: Sequence[str] = ()
    principal_claim: str | None = None
    algorithms: Sequence[str] = ALGORITHMS
    leeway: float = 30.0
    remember_seconds: float = 30.0

    def __post_init__(self) -> None:
        require_numbers("AuthorizationServer", self, {}, seconds_from_zero=("leeway", "remember_seconds"))
        if checked_url("issuer", self.issuer).fragment or "?" in self.issuer:
            raise ValueError(f"issuer must have no query and no fragment, and is {self.issuer!r}")
        for name, url in (("jwks", self.jwks), ("introspect", self.introspect)):
            if url is not None:
                checked_url(name, url)
        if self.jwks is not None and self.introspect is not None:
            raise ValueError("tokens are checked with jwks, or by introspect: leave one of them out")
        if self.introspect is not None and self.client_secret is None:
            raise ValueError("introspect needs the client_secret of this server, and the client_id that goes with it")
        if self.introspect is None and (self.client_id or self.client_secret):
            raise ValueError("client_id and client_secret are for introspect, which is not given: leave them out")
        wrong = [name for name in self.algorithms if name not in ALGORITHMS]
        if wrong or not self.algorithms:
            problem = f"{wrong[0]} is not: no secret is shared" if wrong else "none is given"
            raise ValueError(f"algorithms must be among {', '.join(ALGORITHMS)}, and {problem}")
        unfit = next((scope for scope in self.scopes if not _SCOPE.fullmatch(scope)), None)
        if unfit is not None or isinstance(self.scopes, str):
            raise ValueError(
                f"scopes must be a list of words without spaces and quotes, and not {unfit or self.scopes!r}"
            )
        if not 0 <= self.leeway <= 300 or not 0 <= self.remember_seconds <= 300:
            raise ValueError("leeway and remember_seconds must be 0 to 300 seconds")

    @property
    def audiences(self) -> tuple[str, ...]:
        """The audiences that are given."""
        return (self.audience,) if isinstance(self.audience, str) else tuple(self.audience)


def checked_url(name: str, url: str) -> SplitResult:
    """Return the parts of an address that requests may go to: https, or http on this machine; else a ValueError."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        _ = parts.port
    except ValueError:
        raise ValueError(f"{name} must be an address, and is {url!r}") from None
    if not host or parts.username is not None or not url.isprintable() or " " in url:
        raise ValueError(f"{name} must be an address such as https://login.example.org, and is {url!r}")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(host)):
        raise ValueError(f"{name} must begin with https://, as http:// is for this machine alone; it is {url!r}")
    return parts
