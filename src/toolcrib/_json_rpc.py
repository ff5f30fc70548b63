"""Messages of JSON-RPC that cannot be read: what they are, and the ids that they are to be answered by."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

__all__ = ["MOST_TOKENS", "id_of", "is_answer", "tokens"]

MOST_TOKENS: Final = 1_000_000  # texts and brackets of a message that are followed
_ID: Final = re.compile(rb'"id"\s*:\s*(-?\d{1,18}(?=\s*[,}])|"[^"\\\x00-\x1f]{0,200}")')
_TOKENS: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)


def tokens(text: bytes, most: int = MOST_TOKENS) -> Iterator[re.Match[bytes]]:
    """Yield the first texts and brackets of a message."""
    return islice(_TOKENS.finditer(text), most)


def id_of(text: bytes) -> str | int | None:
    """Return the id of a message itself, and of nothing inside it; None where it has none that can be told."""
    depth = 0
    for found in tokens(text):
        token = found[0]
        if token == b'"id"' and depth == 1 and (own := _ID.match(text, found.start())):
            return json.loads(own[1])
        depth += (token in (b"{", b"[")) - (token in (b"}", b"]"))
    return None


def is_answer(text: bytes) -> bool:
    """Return whether a message looks like the answer to a request."""
    return b'"jsonrpc"' in text and b'"method"' not in text and (b'"result"' in text or b'"error"' in text)
