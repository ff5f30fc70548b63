"""Checks of access tokens: by the signature of a JWT and published keys, or by the word of the authorization server."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar, cast

import jwt
from jwt import PyJWK, PyJWTError

from toolcrib.serving import SingleFlight
from toolcrib.serving.oauth._authorization_server import (
    LEEWAY,
    AuthorizationServer,
    CheckedToken,
    TokenRefused,
    checked_token,
    is_for,
)
from toolcrib.serving.oauth._fetch import AuthorizationServerUnavailable, Fetch, client_form, find_jwks

_FRESH = 600.0  # seconds after which keys are read again
_STALE = 3600.0  # seconds after which keys that cannot be read again do not count any more
_PAUSE = 30.0  # seconds between two readings because of a key that is not known
_RETRY = 5.0  # seconds between two readings while there are no keys
_MOST = 100
_RSA_BITS = 2048
_KINDS = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
_CURVES = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521", "EdDSA": "Ed25519"}
_log = logging.getLogger("toolcrib.serving")


class KeySet:
    """The keys of an authorization server."""

    def __init__(
        self, read: Callable[[], Awaitable[dict[str, Any]]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._read, self._clock = read, clock
        self._keys: list[dict[str, Any]] | None = None
        self._read_at = self._tried_at = -_STALE
        self._lock = asyncio.Lock()

    async def find(self, algorithm: str, key_id: str | None) -> list[PyJWK]:
        """Return the keys that a token may be signed with.

        Raises:
            AuthorizationServerUnavailable: There are no keys, or only ones that are too old.
        """
        if self._clock() - self._read_at >= _FRESH:
            await self._renew(_RETRY)
        found = self._matching(algorithm, key_id)
        if not found and await self._renew(_PAUSE):  # it may have a new key
            found = self._matching(algorithm, key_id)
        return found

    async def is_ready(self) -> bool:
        if self._clock() - self._read_at >= _FRESH:
            await self._renew(_RETRY)
        return self._current() is not None

    async def _renew(self, pause: float) -> bool:
        """Read the keys again, unless that was tried less than `pause` seconds ago; return whether they were read."""
        if self._lock.locked() and self._current() is not None:
            return False  # another request reads them, and those from before are good
        async with self._lock:
            if self._clock() - self._tried_at < pause:
                return False
            try:
                document = await self._read()
            except AuthorizationServerUnavailable as error:
                _log.warning("the keys of the authorization server cannot be read: %s", error)
                return False
            finally:
                self._tried_at = self._clock()  # those who wait here do not try, one after another
            listed: Any = document.get("keys")
            keys = cast("list[Any]", listed)[:_MOST] if isinstance(listed, list) else []
            self._keys = [cast("dict[str, Any]", key) for key in keys if isinstance(key, dict)]
            self._read_at = self._tried_at
            return True

    def _current(self) -> list[dict[str, Any]] | None:
        return self._keys if self._clock() - self._read_at < _STALE else None

    def _matching(self, algorithm: str, key_id: str | None) -> list[PyJWK]:
        keys = self._current()
        if keys is None:
            raise AuthorizationServerUnavailable("the keys of the authorization server cannot be read")
        named = [key for key in keys if key_id is None or key.get("kid") == key_id]
        read = [_public_key(key, algorithm) for key in named if _is_for(key, algorithm)]
        return [key for key in read if key is not None]


def _is_for(key: dict[str, Any], algorithm: str) -> bool:
    """Return whether signatures of an algorithm are checked with a key: by its kind, and by what it says itself."""
    if key.get("kty") != _KINDS[algorithm[:2]] or key.get("alg", algorithm) != algorithm:
        return False
    if key.get("use", "sig") != "sig" or "verify" not in key.get("key_ops", ("verify",)):
        return False
    return algorithm not in _CURVES or key.get("crv") == _CURVES[algorithm]


def _public_key(key: dict[str, Any], algorithm: str) -> PyJWK | None:
    try:
        public_key = PyJWK(key, algorithm)
    except (PyJWTError, ValueError, TypeError) as error:
        _log.warning("invalid key of the authorization server: %s", error)
        return None
    bits: int = getattr(public_key.key, "key_size", _RSA_BITS)
    if key["kty"] == "RSA" and bits < _RSA_BITS:
        _log.warning("a key of the authorization server has %d bits, and is not used", bits)
        return None
    return public_key


_LONGEST = 16 * 1024  # characters of a token
_REMEMBERED = 4096  # answers
_JWT_SECONDS = 60.0  # for which a signature that was checked is not checked again
_ASKED_AT_ONCE = 32
_WAIT = 6.0  # seconds for an answer, with the wait for others' before it
_TYPES = ("at+jwt", "application/at+jwt", "jwt", "application/jwt", None)
T = TypeVar("T")


class TokenCheck(Protocol):
    """Checks the access tokens of one authorization server."""

    async def check(self, token: str) -> CheckedToken:
        """Return the checked claims of a valid token.

        Raises:
            TokenRefused: It is not valid, or not for this server.
            AuthorizationServerUnavailable: The authorization server cannot be asked now.
        """
        ...

    async def is_ready(self) -> bool:
        """Return whether tokens can be checked now."""
        ...

    async def close(self) -> None:
        """Close the connections to the authorization server."""
        ...


def token_check(
    server: AuthorizationServer,
    resource: str,
    *,
    fetch: Fetch | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> TokenCheck:
    """Return the check of the tokens of an authorization server.

    Args:
        server: The authorization server.
        resource: The address of the served endpoint: the audience, where `server` names none.
        fetch: Makes the requests.
        clock: The time, in seconds.
    """
    audiences = server.audiences or (resource,)
    check = _Introspection if server.introspect is not None else Signatures
    return check(server, audiences, fetch or Fetch(), clock)


class Signatures:
    """Checks JWTs with the published keys.

    Attributes:
        types: The types of token that the header may name, in small letters.
    """

    kind: str = "access token"
    types: Sequence[str | None] = _TYPES

    def __init__(
        self, server: AuthorizationServer, audiences: Sequence[str], fetch: Fetch, clock: Callable[[], float]
    ) -> None:
        self._server, self._audiences, self._fetch = server, audiences, fetch
        self._keys = KeySet(self._read_keys, clock)
        self._known = _Remembered[CheckedToken](clock)

    async def check(self, token: str) -> CheckedToken:
        mark = _mark(token)
        known = self._known.get(mark)
        if known is None:
            known = checked_token(await self.claims(token), self._server)
            self._known.put(mark, known, _JWT_SECONDS)
        if known.expires_at <= time.time() - LEEWAY:
            raise TokenRefused("the token has expired")
        return known

    async def is_ready(self) -> bool:
        return await self._keys.is_ready()

    async def close(self) -> None:
        await self._fetch.close()

    async def _read_keys(self) -> dict[str, Any]:
        return await self._fetch.json(self._server.jwks or await find_jwks(self._server.issuer, self._fetch))

    async def claims(self, token: str) -> dict[str, Any]:
        """Return the claims of a valid token; raises TokenRefused, or AuthorizationServerUnavailable."""
        algorithm, key_id = self._signed_with(token)
        keys = await self._keys.find(algorithm, key_id)
        for key in keys:
            claims = self._verified(token, key, algorithm)
            if claims is not None:
                break
        else:
            raise TokenRefused("the token is not signed with a key of its authorization server")
        if not is_for(claims, self._audiences):
            raise TokenRefused("the token is for another audience")
        return claims

    def _signed_with(self, token: str) -> tuple[str, str | None]:
        """Return the algorithm of a token, and its key's id; nothing else in its header is followed."""
        try:
            header: dict[str, Any] = jwt.get_unverified_header(token)
        except Exception:  # the library's, about what a stranger sent
            raise TokenRefused("the token is not a JWT") from None
        algorithm, key_id, kind = header.get("alg"), header.get("kid"), header.get("typ")
        if algorithm not in self._server.algorithms:
            raise TokenRefused("the token is signed with an algorithm that is not accepted")
        if (kind.lower() if isinstance(kind, str) else kind) not in self.types:
            raise TokenRefused(f"the token is not an {self.kind}")
        return cast("str", algorithm), key_id if isinstance(key_id, str) else None

    def _verified(self, token: str, key: jwt.PyJWK, algorithm: str) -> dict[str, Any] | None:
        """Return the claims of a token, None where the key is another; raises TokenRefused."""
        try:
            return jwt.decode(
                token,
                key,
                [algorithm],
                issuer=self._server.issuer,
                leeway=LEEWAY,
                options={"require": ["exp", "iss", "aud"], "verify_aud": False},  # the audience has its own check
            )
        except jwt.InvalidSignatureError:
            return None
        except jwt.ExpiredSignatureError:
            raise TokenRefused("the token has expired") from None
        except jwt.ImmatureSignatureError:
            raise TokenRefused("the token is not valid yet") from None
        except jwt.InvalidIssuerError:
            raise TokenRefused("the token comes from another issuer") from None
        except jwt.MissingRequiredClaimError as error:
            raise TokenRefused(f"the token has no claim {error.claim}") from None
        except Exception:  # the library's, about what a stranger sent
            raise TokenRefused("the token is not a valid JWT") from None


class _Introspection:
    """Asks the authorization server about each token, and remembers its answer for a short time."""

    def __init__(
        self, server: AuthorizationServer, audiences: Sequence[str], fetch: Fetch, clock: Callable[[], float]
    ) -> None:
        self._server, self._audiences, self._fetch = server, audiences, fetch
        self._known = _Remembered[CheckedToken | str](clock)
        self._flights = SingleFlight()
        self._asking = asyncio.Semaphore(_ASKED_AT_ONCE)

    async def check(self, token: str) -> CheckedToken:
        mark = _mark(token)
        known = self._known.get(mark)
        if known is None:
            async with self._flights.flight(mark.hex()):
                known = self._known.get(mark) or await self._ask(token, mark)
        if isinstance(known, str):
            raise TokenRefused(known)
        if known.expires_at <= time.time() - LEEWAY:
            raise TokenRefused("the token has expired")
        return known

    async def is_ready(self) -> bool:
        return True  # nobody is asked but about a token

    async def close(self) -> None:
        await self._fetch.close()

    async def _ask(self, token: str, mark: bytes) -> CheckedToken | str:
        try:
            async with asyncio.timeout(_WAIT), self._asking:
                server, secret = self._server, self._server.client_secret or ""
                if server.client_id is None:
                    of_client, headers = dict[str, str](), {"authorization": f"Bearer {secret}"}
                else:
                    of_client, headers = client_form(server.client_id, secret, server.client_auth)
                form = {"token": token, "token_type_hint": "access_token", **of_client}
                claims = await self._fetch.json(server.introspect or "", form=form, headers=headers)
        except TimeoutError:
            raise AuthorizationServerUnavailable("the authorization server is asked about too many tokens") from None
        try:
            known: CheckedToken | str = self._read(claims)
        except TokenRefused as error:
            known = str(error)
        self._known.put(mark, known, self._server.remember_seconds)
        return known

    def _read(self, claims: dict[str, Any]) -> CheckedToken:
        """Return the checked claims in an answer about a token; raises TokenRefused."""
        if claims.get("active") is not True:
            raise TokenRefused("the token is not valid, or is no longer valid")
        if claims.get("iss", self._server.issuer) != self._server.issuer:
            raise TokenRefused("the token comes from another issuer")
        if not is_for(claims, self._audiences):
            raise TokenRefused("the token is for another audience")
        since, until = claims.get("nbf", 0), claims.get("exp", time.time() + 300)
        if not isinstance(since, int | float) or not isinstance(until, int | float):
            raise TokenRefused("the token's times are not numbers")
        if since > time.time() + LEEWAY:
            raise TokenRefused("the token is not valid yet")
        return checked_token({**claims, "exp": until}, self._server)


class _Remembered(Generic[T]):
    """Answers by the hash of a token, for some seconds; of too many, the oldest are forgotten."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._answers: OrderedDict[bytes, tuple[float, T]] = OrderedDict()

    def get(self, mark: bytes) -> T | None:
        until, answer = self._answers.get(mark, (0.0, None))
        return answer if self._clock() < until else None

    def put(self, mark: bytes, answer: T, seconds: float) -> None:
        self._answers.pop(mark, None)
        self._answers[mark] = self._clock() + seconds, answer
        while len(self._answers) > _REMEMBERED:
            self._answers.popitem(last=False)


def _mark(token: str) -> bytes:
    """Return the hash of a token; raises TokenRefused for one that is too long."""
    if len(token) > _LONGEST:
        raise TokenRefused(f"the token is longer than {_LONGEST} characters")
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
