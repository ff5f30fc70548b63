"""Links in what is said, and the hosts that they lead to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

__all__ = ["hosts_in", "hosts_of", "links_in", "pieces_of"]

_BETWEEN: Final = re.compile(r"[\s<>()\[\]{}\"'`|,;]+")
_AROUND: Final = ":!?."
_OF_SCHEMES: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-"
_DOTTED: Final = re.compile(r"(?<![\w.-])[\w-]+(?:\.[\w-]+)+")
_BARE: Final = re.compile(r"[\w-]+(?:\.[\w-]+)*\.[a-z]{2,24}(?::\d{1,5})?[/?#]", re.IGNORECASE)
_MOST_OF_PIECE: Final = 8  # links


def pieces_of(text: str) -> Iterator[str]:
    """Yield what stands between spaces, brackets and quotes, without the marks of a sentence."""
    for piece in _BETWEEN.split(text):
        yield piece.strip(_AROUND)


def links_in(text: str) -> Iterator[str]:
    """Yield the links and addresses in a text: with a scheme, with `www.`, with a path, or of mail."""
    for piece in pieces_of(text):
        if "://" in piece:
            for found in islice(re.finditer("://", piece), _MOST_OF_PIECE):
                head = piece[: found.start()]
                yield piece[len(head.rstrip(_OF_SCHEMES)) :]
        elif piece.lower().startswith("www.") or ("@" in piece[1:] and "." in piece) or _BARE.match(piece):
            yield piece


def hosts_in(text: str) -> Iterator[str]:
    """Yield the names of hosts in a flat text, and what looks like one."""
    for name in _DOTTED.findall(text):
        last = name.rpartition(".")[2]
        if (len(last) > 1 and last.isalpha()) or (last.isdigit() and name.count(".") == 3):
            yield name.removeprefix("www.")


def hosts_of(link: str) -> Iterator[str]:
    """Yield the host of a flat link, and the names above it: `a.evil.com`, `evil.com`. An address of mail has none."""
    scheme, _, rest = link.partition("://")
    if not rest and "@" in link:
        return
    host = re.split(r"[/?#]", rest or scheme, maxsplit=1)[0].rpartition("@")[2].partition(":")[0].removeprefix("www.")
    while "." in host:
        yield host
        host = host.partition(".")[2]
