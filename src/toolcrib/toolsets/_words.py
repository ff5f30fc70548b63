"""Words of names and texts, as tools are compared and found by them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+")  # HTTPServer_v2 -> HTTP Server v 2
_COMMON = frozenset(
    re.findall("[a-z]+", "a an and are as at be by for from in is it its of on or that the this to with")
)


def words_of(text: str) -> Iterator[str]:
    """Yield the words of a text or a name in lower case and without a plural s; the commonest are left out."""
    return filter(None, map(_plain, _WORD.findall(text)))


@lru_cache(10_000)
def _plain(word: str) -> str:
    """Return a word as it is compared; empty for one of the commonest."""
    lower = word.lower()
    if lower in _COMMON:
        return ""
    plural = len(lower) > 3 and lower.endswith("s") and not lower.endswith("ss")
    return lower[:-1] if plural else lower
