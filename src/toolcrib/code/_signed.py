"""Signed bytes: JSON that is kept outside of the process, in which a change without the key is noticed."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any, Final

_KEY_BYTES: Final = 16  # at least


def signed_bytes(magic: bytes, format: int, data: Any, key: bytes | str) -> bytes:
    """Return JSON shapes as signed bytes, which are not encrypted.

    Args:
        magic: Says what they are.
        format: The number of the format.
        data: The JSON shapes.
        key: A secret of at least 16 bytes.

    Raises:
        ValueError: The key is shorter.
    """
    signed = b"%s %d\n%s" % (magic, format, json.dumps(data, separators=(",", ":")).encode())
    return b"%s\n%s" % (_signature(signed, key), signed)


def read_signed(magic: bytes, format: int, data: bytes, key: bytes | str) -> Any:
    """Return the JSON shapes that `signed_bytes` was given.

    Raises:
        ValueError: The bytes are of another kind, key or format, or were changed or cut; the message says which.
    """
    signature, _, signed = data.partition(b"\n")
    head, _, body = signed.partition(b"\n")
    found, _, version = head.partition(b" ")
    if found != magic:
        raise ValueError("its first line is missing, or holds another kind of data")
    if version != b"%d" % format:
        shown = version.decode("ascii", "replace")[:20]
        raise ValueError(f"it is written in format {shown}, and this version of toolcrib reads {format}")
    if not hmac.compare_digest(signature, _signature(signed, key)):
        raise ValueError("it was signed with another key, or it was changed or cut since")
    return json.loads(body)


def _signature(signed: bytes, key: bytes | str) -> bytes:
    secret = key.encode() if isinstance(key, str) else key
    if len(secret) < _KEY_BYTES:
        raise ValueError(
            f"the key has {len(secret)} bytes, and must have {_KEY_BYTES} at least; make one with "
            "`secrets.token_bytes(32)` and keep it"
        )
    return hmac.new(secret, signed, hashlib.sha256).hexdigest().encode()
