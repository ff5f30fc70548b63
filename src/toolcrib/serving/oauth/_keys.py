"""Keys of an authorization server, read anew when they change, and never because of what strangers send."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, cast

from jwt import PyJWK, PyJWTError

from toolcrib.serving.oauth._fetch import AuthorizationServerUnavailable

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
    """The keys of an authorization server.

    Args:
        read: Reads the document with the keys.
        clock: The time, in seconds.
    """

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
        """Return whether there are keys."""
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
            given: Any = document.get("keys")
            keys = cast("list[Any]", given)[:_MOST] if isinstance(given, list) else []
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
