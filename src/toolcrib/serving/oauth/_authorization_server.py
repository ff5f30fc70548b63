"""AuthorizationServer: whose access tokens a server accepts, how they are checked, and what a checked one says."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast
from urllib.parse import SplitResult, quote, urlsplit

from toolcrib._numbers import require_numbers
from toolcrib.errors import explain_options
from toolcrib.pipeline import Access
from toolcrib.serving.http import is_loopback

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""The algorithms that a token may be signed with, all of them with a private key."""

LEEWAY = 30.0
"""Seconds by which clocks may differ."""

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
    remember_seconds: float = 30.0

    def __post_init__(self) -> None:
        require_numbers("AuthorizationServer", self, {}, seconds_from_zero=("remember_seconds",))
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
        if self.remember_seconds > 300:
            raise ValueError(f"remember_seconds must be 0 to 300 seconds, and is {self.remember_seconds:g}")

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


_LONGEST_NAME = 500
_READABLE = "@:.+ /"  # characters that a part of a principal's name keeps


class TokenRefused(Exception):
    """A token is not accepted; the text says why, and holds nothing of the token."""


@dataclass(frozen=True, slots=True)
class CheckedToken:
    """An access token that was checked, without the token itself.

    Attributes:
        principal: On whose behalf its requests are made.
        client_id: The client that it was issued to.
        subject: Its holder, unique for the issuer.
        expires_at: The time until which it is valid, in seconds since 1970.
    """

    principal: str
    client_id: str
    issuer: str
    subject: str | None
    expires_at: float
    access: Access


def checked_token(claims: Mapping[str, Any], server: AuthorizationServer) -> CheckedToken:
    """Return the subject, client and scopes in the claims of a valid token; raises TokenRefused without a subject."""
    if "cnf" in claims:
        raise TokenRefused("the token is bound to a key of its client, which is not checked here")
    subject = _text(claims, "sub")
    named = () if server.principal_claim is None else (claimed_name(claims, server.principal_claim),)
    client = next((found for name in ("client_id", "azp", "appid", "cid") if (found := _text(claims, name))), None)
    return CheckedToken(
        principal=_principal(claims, server, subject, client),
        client_id=client or subject or "",
        issuer=server.issuer,
        subject=subject,
        expires_at=float(claims["exp"]),
        access=Access(_scopes(claims), dict(claims), (*known_ids(claims, server.issuer), *named)),
    )


def is_for(claims: Mapping[str, Any], audiences: Collection[str]) -> bool:
    """Return whether the audience in claims is one of these; an address may have a slash more at its end."""
    claim = claims.get("aud")
    several = cast("list[Any]", claim) if isinstance(claim, list) else [claim]
    wanted = {audience.removesuffix("/") for audience in audiences}
    return any(
        isinstance(resource_name, str) and resource_name.removesuffix("/") in wanted for resource_name in several
    )


def claimed_name(claims: Mapping[str, Any], claim: str) -> str:
    """Return a claim that tells a person from all others.

    Raises:
        TokenRefused: There is no such claim, or it is an email address that is not said to be verified.
    """
    name = _text(claims, claim) or ""
    if not name.strip():
        raise TokenRefused(f"the token has no claim {claim} that is a text")
    if claim == "email" and claims.get("email_verified") is not True:
        raise TokenRefused(
            "the claim email_verified of the token is not true: have the provider verify the address, or name another "
            "claim as principal_claim (a gateway) or id_claim (a console)"
        )
    return name


def known_ids(claims: Mapping[str, Any], issuer: str) -> tuple[str, ...]:
    """Return the ids of a person in each application: the subject with the issuer, and an email address if verified."""
    subject, email = _text(claims, "sub"), _text(claims, "email") or ""
    pair = () if subject is None else (f"{_escaped(subject)};iss={_escaped(issuer)}",)
    return (*pair, email) if email.isprintable() and email.strip() and claims.get("email_verified") is True else pair


def _principal(claims: Mapping[str, Any], server: AuthorizationServer, subject: str | None, client: str | None) -> str:
    """Return a name that no other principal has: `=` and `;` are escaped in its parts."""
    if server.principal_claim is not None:
        name = _escaped(claimed_name(claims, server.principal_claim))
    elif subject is not None:
        name = f"{_escaped(subject)};iss={_escaped(server.issuer)}"
    elif client is not None:
        name = f"client={_escaped(client)};iss={_escaped(server.issuer)}"
    else:
        raise TokenRefused("the token names neither a subject nor a client")
    if len(name) > _LONGEST_NAME:
        raise TokenRefused("the token has too long a name for its principal")
    return name


def _escaped(text: str) -> str:
    return quote(text, _READABLE, errors="surrogatepass")


def _text(claims: Mapping[str, Any], name: str) -> str | None:
    found = claims.get(name)
    return found if isinstance(found, str) and found else None


def _scopes(claims: Mapping[str, Any]) -> frozenset[str]:
    """Return the scopes of a token: a text or a list, in `scope`, or in `scp` as some servers have it."""
    found: set[str] = set()
    for name in ("scope", "scp"):
        claim: Any = claims.get(name)
        several: Any = claim.split() if isinstance(claim, str) else claim
        if isinstance(several, list):
            found.update(scope for scope in cast("list[Any]", several) if isinstance(scope, str))
    return frozenset(found)
