"""Keys of credentials at rest: AES-256-GCM, bound to the row that a text is kept in."""

from __future__ import annotations

import base64
import binascii
import hashlib
import importlib
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from toolcrib._numbers import count_text
from toolcrib.errors import CredentialKeyError, explain_options

KEY_VARIABLE: Final = "TOOLCRIB_CREDENTIALS_KEY"
KEY_FILE_VARIABLE: Final = "TOOLCRIB_CREDENTIALS_KEY_FILE"
_SERVICE: Final = "toolcrib credentials"
_NAMED, _NONCE = 8, 12  # bytes in front of each text: which key it is, and what no other text has
_MEND: Final = (
    f"set {KEY_VARIABLE} to 32 random bytes in base64, or {KEY_FILE_VARIABLE} to a file with them, "
    "or install the package keyring"
)


def new_key() -> str:
    """Return a new random key, in base64."""
    return base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()


@explain_options()
class CredentialKeys:
    """The keys that credentials are sealed with; the first one seals, all of them open.

    Args:
        keys: Keys of 32 bytes in base64, as `new_key` makes them.
        reread: Returns the keys as they are now, where another process may have changed them.

    Raises:
        CredentialKeyError: No key is configured, or one is not 32 bytes in base64.
    """

    def __init__(self, keys: Sequence[str], *, reread: Callable[[], Sequence[str]] | None = None) -> None:
        self._reread = reread
        self._use(keys)

    def _use(self, keys: Sequence[str]) -> None:
        if isinstance(keys, str) or not all(isinstance(key, str) for key in keys):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's values
            raise TypeError("CredentialKeys: keys must be a list of texts, as in CredentialKeys([new_key()])")
        raw = [_decoded(key) for key in keys]
        if not raw:
            raise CredentialKeyError(f"no encryption key is configured; {_MEND}")
        self._first = _name_of(raw[0])
        self._ciphers = {_name_of(key): AESGCM(key) for key in raw}

    def __repr__(self) -> str:
        return f"CredentialKeys({count_text(len(self._ciphers), 'key')})"

    @classmethod
    def found(cls, environment: Mapping[str, str] | None = None) -> CredentialKeys:
        """Return the keys of this machine: of the environment, of the file that it names, or of the keyring.

        In the keyring a key is made if it has none. Several keys are parted by commas or lines, the newest first.

        Raises:
            CredentialKeyError: No key is configured, or one is not a key.
        """
        variables = os.environ if environment is None else environment
        if keys := variables.get(KEY_VARIABLE):
            return cls(_parted(keys))
        if path := variables.get(KEY_FILE_VARIABLE):
            return cls(_of_file(Path(path)), reread=lambda: _of_file(Path(path)))
        return cls(_of_keyring(), reread=_of_keyring)

    @classmethod
    def rotated(cls, environment: Mapping[str, str] | None = None) -> tuple[CredentialKeys, Callable[[], None]]:
        """Put a new key in front of those of this machine; return them, and what drops the old ones.

        Keys in the environment are changed by who sets it: there, nothing is written.

        Raises:
            CredentialKeyError: The environment has one key only, or the keys cannot be written.
        """
        variables = os.environ if environment is None else environment
        if written := variables.get(KEY_VARIABLE):
            if len(_parted(written)) < 2:
                raise CredentialKeyError(f"to rotate it, put the new key in front of it in {KEY_VARIABLE}: NEW,OLD")
            return cls(_parted(written)), lambda: None
        if path := variables.get(KEY_FILE_VARIABLE):
            read, write = partial(_of_file, Path(path)), partial(_to_file, Path(path))
        else:
            read, write = _of_keyring, _to_keyring
        keys = [new_key(), *read()]
        write(keys)
        return cls(keys, reread=read), lambda: write(keys[:1])

    # --- texts

    def sealed(self, text: bytes, place: bytes) -> bytes:
        """Return a text that only these keys open, and only in its place."""
        nonce = secrets.token_bytes(_NONCE)
        return self._first + nonce + self._ciphers[self._first].encrypt(nonce, text, place)

    def opened(self, sealed: bytes, place: bytes) -> bytes:
        """Return the text of `sealed`.

        Raises:
            CredentialKeyError: It was sealed with another key, was changed, or was moved from another place.
        """
        name, nonce, rest = sealed[:_NAMED], sealed[_NAMED : _NAMED + _NONCE], sealed[_NAMED + _NONCE :]
        if name not in self._ciphers and self._reread is not None:
            self._use(self._reread())
        cipher = self._ciphers.get(name)
        if cipher is None:
            raise CredentialKeyError(f"the credentials were encrypted with another key than this one; {_MEND}")
        try:
            return cipher.decrypt(nonce, rest, place)
        except InvalidTag:
            raise CredentialKeyError(
                "a credential in the database was changed, or moved there from another principal or server. "
                "Remove it with `toolcrib credentials forget`"
            ) from None

    def is_newest(self, sealed: bytes) -> bool:
        """Return whether a text was sealed with the first key."""
        return sealed[:_NAMED] == self._first


def _name_of(key: bytes) -> bytes:
    return hashlib.sha256(b"toolcrib key name" + key).digest()[:_NAMED]


def _decoded(key: str) -> bytes:
    try:
        raw = base64.urlsafe_b64decode(key.strip().replace("+", "-").replace("/", "_") + "=" * (-len(key.strip()) % 4))
    except (binascii.Error, ValueError):
        raw = b""
    if len(raw) != 32:
        raise CredentialKeyError(f"a key must be 32 random bytes in base64, and one of them is not; {_MEND}")
    return raw


def _parted(text: str) -> list[str]:
    return [part.strip() for part in text.replace("\n", ",").split(",") if part.strip()]


def _of_file(path: Path) -> list[str]:
    try:
        mode = path.stat().st_mode
        text = path.read_text("ascii")
    except (OSError, UnicodeDecodeError) as error:
        why = (error.strerror or "") if isinstance(error, OSError) else "it is not text in ASCII"
        raise CredentialKeyError(f"the file {path} cannot be read: {why}") from None
    if os.name == "posix" and mode & 0o077:
        raise CredentialKeyError(f"others can read the file {path}; run: chmod 600 {path}")
    return _parted(text)


def _to_file(path: Path, keys: Sequence[str]) -> None:
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
        file.write("\n".join(keys) + "\n")
    fresh.replace(path)


def _keyring() -> Any:
    try:
        return importlib.import_module("keyring")
    except ModuleNotFoundError:
        raise CredentialKeyError(f"no encryption key is configured; {_MEND}") from None


def _of_keyring() -> list[str]:
    ring = _keyring()
    try:
        stored = ring.get_password(_SERVICE, "key")
        if not stored:
            ring.set_password(_SERVICE, "key", new_key())
            stored = ring.get_password(_SERVICE, "key")  # another process may have been quicker
    except Exception as error:  # of whatever holds the keyring
        raise CredentialKeyError(f"the keyring cannot be used ({type(error).__name__}); {_MEND}") from None
    return _parted(stored or "")


def _to_keyring(keys: Sequence[str]) -> None:
    try:
        _keyring().set_password(_SERVICE, "key", ",".join(keys))
    except Exception as error:  # of whatever holds the keyring
        raise CredentialKeyError(f"the keyring cannot be written ({type(error).__name__})") from None
