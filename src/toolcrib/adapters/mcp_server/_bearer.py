"""Bearer tokens of requests over HTTP: who makes a request, and whether the token has the scopes that it takes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import quote

from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken, principal_components
from pydantic import ConfigDict, SkipValidation
from pydantic_core import from_json
from starlette.authentication import AuthCredentials
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from toolcrib.adapters.mcp_server._incoming import read_body
from toolcrib.pipeline import Access
from toolcrib.serving.oauth import AuthorizationServerUnavailable, TokenRefused, known_ids

ScopesOfRequest: TypeAlias = Callable[[str, Any], Awaitable[Mapping[str, Collection[str]]]]
_RETRY_SECONDS = 5
_READABLE = "@:.+ /"  # characters that a part of a principal's name keeps


class VerifiedAccess(AccessToken):
    """A token that was checked, without the token itself."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    principal: str
    access: SkipValidation[Access]


def principal_of(token: AccessToken) -> str:
    """Return the name of a token's principal: as it was checked, or its client, and where known issuer and subject."""
    if isinstance(token, VerifiedAccess):
        return token.principal
    client, issuer, subject = (part and quote(part, _READABLE) for part in principal_components(token))
    parts = [client or "", f"iss={issuer}" if issuer else "", f"sub={subject}" if subject else ""]
    return ";".join(part for part in parts if part)


def access_of(token: AccessToken) -> Access:
    """Return the scopes, claims and ids that a token brings."""
    if isinstance(token, VerifiedAccess):
        return token.access
    _, issuer, subject = principal_components(token)
    claims = token.claims or {}
    ids = () if issuer is None else known_ids({**claims, "sub": subject}, issuer)
    return Access(frozenset(token.scopes), claims, ids)


@dataclass(frozen=True, slots=True)
class Challenge:
    """The header by which a client learns how to get a token, or a better one.

    Attributes:
        metadata: The address of the metadata of this server; None where no authorization server is known.
    """

    metadata: str | None = None
    scopes: Sequence[str] = ()

    def reply(self, status: int, error: str, description: str, scopes: Collection[str] = ()) -> JSONResponse:
        """Return the answer to a request that was refused.

        Args:
            error: The error's name; empty for a request that came without a token.
            scopes: The scopes that the request needs beside those of every request.
        """
        needed = " ".join(dict.fromkeys((*self.scopes, *sorted(scopes))))
        fields = {
            "error": error,
            "error_description": description if error else "",
            "scope": needed,
            "resource_metadata": self.metadata or "",
        }
        parameters = "".join(f', {name}="{value}"' for name, value in fields.items() if value)
        body = {"error": error or "invalid_token", "error_description": description}
        return JSONResponse(body, status, {"www-authenticate": f'Bearer realm="mcp"{parameters}'})


class BearerAuth:
    """ASGI middleware: lets a request through whose token is valid, as its principal's, and without the token."""

    def __init__(self, app: ASGIApp, check: Callable[[str], Awaitable[AccessToken]], challenge: Challenge) -> None:
        self._app = AuthContextMiddleware(app)
        self._check, self._challenge = check, challenge

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        credentials = Headers(scope=scope).getlist("authorization")
        kind, _, token = credentials[0].partition(" ") if len(credentials) == 1 else ("", "", "")
        refused: ASGIApp | None = None
        found: AccessToken | None = None
        if kind.lower() != "bearer" or not token.strip():
            refused = self._challenge.reply(401, "", "a bearer token is needed")
        else:
            try:
                found = await self._check(token.strip())
            except TokenRefused as error:
                refused = self._challenge.reply(401, "invalid_token", str(error))
            except AuthorizationServerUnavailable:
                why = {"error": "temporarily_unavailable", "error_description": "tokens cannot be checked now"}
                refused = JSONResponse(why, 503, {"retry-after": str(_RETRY_SECONDS)})
        if found is not None and not {*self._challenge.scopes}.issubset(found.scopes):
            missing = " ".join(scope for scope in self._challenge.scopes if scope not in found.scopes)
            refused = self._challenge.reply(403, "insufficient_scope", f"the token lacks: {missing}")
        if refused is not None or found is None:
            await (refused or self._challenge.reply(401, "", ""))(scope, receive, send)
            return
        user = AuthenticatedUser(found.model_copy(update={"token": ""}))
        headers = [pair for pair in scope["headers"] if pair[0] != b"authorization"]
        known = {"headers": headers, "user": user, "auth": AuthCredentials(found.scopes)}
        await self._app({**scope, **known}, receive, send)


class ScopeChallenge:
    """ASGI middleware: answers a request whose token lacks scopes as OAuth has it: clients ask for them then.

    The server refuses such a request in any case. What cannot be read here is left to it.

    Args:
        needed: Returns the scopes that a request of the current principal needs, by what needs them, of its method and
            parameters; None while no request needs any.
    """

    def __init__(
        self, app: ASGIApp, needed: Callable[[], ScopesOfRequest | None], challenge: Challenge, max_body: int
    ) -> None:
        self._app, self._needed, self._challenge, self._max_body = app, needed, challenge, max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        of_request = self._needed()
        if scope["method"] != "POST" or of_request is None:
            await self._app(scope, receive, send)
            return
        body, receive = await read_body(receive, self._max_body)
        needed = frozenset[str]() if body is None else await _scopes(body, of_request)
        missing = Access(frozenset(scope["auth"].scopes)).lacks(needed)
        if missing:
            text = f"the token lacks: {' '.join(missing)}"
            await self._challenge.reply(403, "insufficient_scope", text, needed)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


async def _scopes(body: bytes, of_request: ScopesOfRequest) -> frozenset[str]:
    """Return the scopes that a message needs."""
    try:
        message: Any = from_json(body)
    except ValueError:
        return frozenset[str]()
    match message:
        case {"method": str(method), "params": params}:
            needed = await of_request(method, params)
            return frozenset(scope for scopes in needed.values() for scope in scopes)
        case _:
            return frozenset()
