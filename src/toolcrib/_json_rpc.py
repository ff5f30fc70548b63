"""Messages of JSON-RPC as bytes: what those are that cannot be read, and the ids that they are to be answered by."""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import Final

_MOST_TOKENS: Final = 1_000_000  # texts and brackets of a message that are followed
_ID: Final = re.compile(
    rb'"id"\s*:\s*(?:(?P<number>-?\d{1,18})(?P<fraction>\.0{1,18})?(?=\s*[,}])|(?P<text>"[^"\\\x00-\x1f]{0,200}"))'
)
_FLOAT_ID: Final = re.compile(rb'"id"\s*:\s*-?\d+\.0')
_TOKENS: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)


def id_of(text: bytes) -> str | int | None:
    """Return the id of a message itself, and of nothing inside it; None where it has none that can be told."""
    id_match = _own_id(text)
    return None if id_match is None else json.loads(id_match["number"] or id_match["text"])


def with_whole_id(text: bytes) -> bytes:
    """Return a message with an integer as its id where that is written `7.0`, as programs do that know floats alone."""
    id_match = _own_id(text) if _FLOAT_ID.search(text) else None
    if id_match is None or id_match["fraction"] is None:
        return text
    start, end = id_match.span("fraction")
    return text[:start] + text[end:]


def is_answer(text: bytes) -> bool:
    """Return whether a message looks like the answer to a request."""
    return b'"jsonrpc"' in text and b'"method"' not in text and (b'"result"' in text or b'"error"' in text)


def _own_id(text: bytes) -> re.Match[bytes] | None:
    depth = 0
    for found in islice(_TOKENS.finditer(text), _MOST_TOKENS):
        token = found[0]
        if token == b'"id"' and depth == 1 and (id_match := _ID.match(text, found.start())):
            return id_match
        depth += (token in (b"{", b"[")) - (token in (b"}", b"]"))
    return None
