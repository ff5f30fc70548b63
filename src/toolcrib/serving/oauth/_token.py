"""CheckedToken: what is known of an access token that was checked, read from its claims."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote

from toolcrib.pipeline import Access
from toolcrib.serving.oauth._authorization_server import AuthorizationServer

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
