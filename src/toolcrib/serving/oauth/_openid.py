"""OpenID Connect: the login of a person at a provider, by the code flow with PKCE, and their ID token."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlencode

from toolcrib.errors import explain_options
from toolcrib.serving._principals import claimed_groups
from toolcrib.serving.oauth._authorization_server import (
    ALGORITHMS,
    AuthorizationServer,
    TokenRefused,
    claimed_name,
    known_ids,
)
from toolcrib.serving.oauth._fetch import AuthorizationServerUnavailable, Fetch, client_form, find_metadata
from toolcrib.serving.oauth._token_check import Signatures

_ADDRESSES = ("authorization_endpoint", "token_endpoint", "jwks_uri")
_FRESH = 3600.0  # seconds after which the metadata is read again


@explain_options()
@dataclass(frozen=True, slots=True)
class OpenIDProvider:
    """The provider at which people log in, and the claims that count.

    Attributes:
        issuer: Its address, exactly as it is in the claim `iss`.
        client_id: The name of this application there.
        client_secret: The secret that goes with it; None for an application without one.
        client_auth: How both are sent: in the header (`basic`) or in the body (`post`).
        scopes: The scopes to request; `openid` is one of them.
        id_claim: The claim of the ID token that tells a person from all others; `email` counts only where the provider
            says that it is verified.
        groups_claim: The claim with the groups or roles of a person: a list of texts, or one text. With dots it is a
            part of another claim, as in `realm_access.roles`.
        algorithms: The algorithms that ID tokens may be signed with.

    Raises:
        ValueError: The issuer is not an address of https, there is no client, `openid` is lacking, or an algorithm is
            not accepted.
    """

    issuer: str
    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    client_auth: Literal["basic", "post"] = "basic"
    scopes: Sequence[str] = ("openid", "profile", "email")
    id_claim: str = "sub"
    groups_claim: str = "groups"
    algorithms: Sequence[str] = ALGORITHMS

    def __post_init__(self) -> None:
        if not self.client_id:
            raise ValueError("client_id is empty: it is the name of this application at the provider")
        if "openid" not in self.scopes or isinstance(self.scopes, str):
            raise ValueError(f"scopes must be a list with `openid` in it, and is {self.scopes!r}")
        if self.client_auth not in ("basic", "post"):
            raise ValueError(f"client_auth must be basic or post, and is {self.client_auth!r}")
        _ = self.server

    @property
    def server(self) -> AuthorizationServer:
        """The provider as the issuer of tokens for this application."""
        return AuthorizationServer(self.issuer, self.client_id, algorithms=self.algorithms)


@dataclass(frozen=True, slots=True)
class Departure:
    """A login that has begun: where the browser is sent, and what its answer is known by.

    Attributes:
        url: The provider's page.
        state: The state that the answer has to repeat.
        nonce: The nonce that the ID token has to repeat.
        verifier: The proof that the code was requested here (PKCE).
        back: Where the browser comes back.
    """

    url: str
    state: str = field(repr=False)
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)
    back: str


@dataclass(frozen=True, slots=True)
class LoggedIn:
    """A person who has logged in.

    Attributes:
        id: Their id at the provider: the claim that `id_claim` names.
        aliases: Their other ids: the subject with the issuer, and a verified email address.
        groups: Their groups or roles.
        expires_at: The time until which the ID token is valid, in seconds since 1970.
    """

    id: str
    groups: tuple[str, ...]
    expires_at: float
    aliases: tuple[str, ...] = ()


class OpenIDClient:
    """The logins of one application at one provider.

    Args:
        provider: The provider.
        fetch: Makes the requests.
        clock: The time, in seconds.
    """

    def __init__(
        self, provider: OpenIDProvider, *, fetch: Fetch | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.provider, self._fetch, self._clock = provider, fetch or Fetch(), clock
        self._tokens = Signatures(provider.server, (provider.client_id,), self._fetch, clock)
        self._tokens.kind, self._tokens.types = "ID token", ("jwt", None)  # an access token is no login
        self._found: tuple[float, dict[str, Any]] | None = None

    async def depart(self, back: str) -> Departure:
        """Begin a login.

        Args:
            back: Where the provider sends the browser, as it knows it of this application.

        Raises:
            AuthorizationServerUnavailable: The provider cannot be asked now.
        """
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        asked = {
            "response_type": "code",
            "client_id": self.provider.client_id,
            "redirect_uri": back,
            "scope": " ".join(self.provider.scopes),
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        page = (await self._metadata())["authorization_endpoint"]
        return Departure(f"{page}{'&' if '?' in page else '?'}{urlencode(asked)}", state, nonce, verifier, back)

    async def come_back(self, departure: Departure, answer: Mapping[str, str]) -> LoggedIn:
        """Return who has logged in, by the provider's answer to a login that began here.

        Raises:
            TokenRefused: The answer is not to this login, or its ID token is not valid.
            AuthorizationServerUnavailable: The provider cannot be asked now.
        """
        if not hmac.compare_digest(answer.get("state", "").encode(), departure.state.encode()):
            raise TokenRefused("the answer belongs to another login")
        metadata = await self._metadata()
        needs_issuer = metadata.get("authorization_response_iss_parameter_supported") is True
        if answer.get("iss", None if needs_issuer else self.provider.issuer) != self.provider.issuer:
            raise TokenRefused("the answer comes from another provider")
        if "code" not in answer:
            raise TokenRefused(f"the provider says {answer.get('error', 'nothing')!r:.80}")
        tokens = await self._exchanged(answer["code"], departure, metadata["token_endpoint"])
        token = tokens.get("id_token")
        return await self._read(token if isinstance(token, str) else "", departure.nonce)

    async def of_token(self, token: str) -> LoggedIn:
        """Return whose an ID token is, which a program sends in the place of a login.

        Raises:
            TokenRefused: It is not valid.
            AuthorizationServerUnavailable: The provider cannot be asked now.
        """
        return await self._read(token, None)

    async def close(self) -> None:
        """Close the connections to the provider."""
        await self._fetch.close()

    async def _metadata(self) -> dict[str, Any]:
        if self._found is None or self._found[0] <= self._clock():
            found = await find_metadata(self.provider.issuer, self._fetch, _ADDRESSES)
            self._found = self._clock() + _FRESH, found
        return self._found[1]

    async def _exchanged(self, code: str, departure: Departure, address: str) -> dict[str, Any]:
        provider = self.provider
        of_client, headers = client_form(provider.client_id, provider.client_secret, provider.client_auth)
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": departure.back,
            "code_verifier": departure.verifier,
            **of_client,
        }
        try:
            return await self._fetch.json(address, form=form, headers=headers)
        except AuthorizationServerUnavailable:
            raise TokenRefused("the provider gives no token for the code") from None

    async def _read(self, token: str, nonce: str | None) -> LoggedIn:
        """Return whose an ID token is; raises TokenRefused for one that is not of this login."""
        claims = await self._tokens.claims(token)
        client, audience = self.provider.client_id, claims.get("aud")
        if audience not in (client, [client]) and claims.get("azp") != client:
            raise TokenRefused("the token is for several applications, and was not issued to this one")
        if claims.get("azp", client) != client:
            raise TokenRefused("the token was issued to another application")
        claimed: Any = claims.get("nonce")
        if nonce is not None and not (
            isinstance(claimed, str) and hmac.compare_digest(claimed.encode(), nonce.encode())
        ):
            raise TokenRefused("the token belongs to another login")
        id = claimed_name(claims, self.provider.id_claim)
        if not id.isprintable():
            raise TokenRefused(f"the claim {self.provider.id_claim} of the token has characters that do not show")
        aliases = tuple(known for known in known_ids(claims, self.provider.issuer) if known != id)
        is_alone = self.provider.id_claim == "sub" and len(aliases) < 2  # with no verified address
        if is_alone and (await self._metadata()).get("subject_types_supported") == ["pairwise"]:
            raise TokenRefused(
                "the provider gives each application other subjects, and the token has no verified email address, so "
                "that one person could count as two: request the scope `email`, or name a claim as id_claim"
            )
        return LoggedIn(id, claimed_groups(claims, self.provider.groups_claim), float(claims["exp"]), aliases)
