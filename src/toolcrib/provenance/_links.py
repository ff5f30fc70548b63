"""Links and addresses in what leaves, read as widely as any program may that shows or sends the text."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote

__all__ = ["hosts_in", "links_in", "pieces_of", "plain_text"]

_BETWEEN: Final = re.compile(r"[\s<>()\[\]{}\"'`|,;*]+|=(?=https?://)")
_AROUND: Final = ":!?.=_~#"
_DOTTED: Final = re.compile(r"(?<![\w.-])[\w-]+(?:\.[\w-]+)+")
_FILE: Final = re.compile(
    r"\.(?:ai|app|bz|cab|cc|do|in|me|md|mk|ml|mm|mov|name|pl|pm|ps|pub|py|rs|sc|sh|so|st|tf|vi|ws|zip|\d+)$"
)
"""The endings of files that are endings of hosts, too."""
_DOT: Final = str.maketrans(dict.fromkeys("\u3002\uff0e\uff61\u2024\ufe52", ".") | {"\\": "/"})
_OUT_OF_SIGHT: Final = frozenset({"Cf", "Cc", "Mn", "Me"})
_LINK: Final = re.compile(
    r"(?<![a-z0-9+.-])[0-9+.-]*+[a-z][a-z0-9+.-]*+:/"  # a scheme, with one slash or two
    r"|(?<![\w.+-])[a-z][a-z0-9+.-]+[a-z0-9]:\S"  # a scheme of which a program opens what follows
    r"|(?:data|ws):"
    r"|//[^\s/]"
    r"|\w@\w"
    r"|[^\s.]\.[^\W\d_][\w-]*\w"  # a name with a dot, such as a host has
    r"|\d{1,3}(?:\.\d{1,3}){3}(?![\w.])",
    re.IGNORECASE,
)
_MAYBE: Final = re.compile(r"[@:/\\%&]|\.\w|[^\x00-\x7f]")  # without one there is no link
_LAYERS: Final = 3  # of encodings in one another


def plain_text(text: str) -> str:
    """Return a text as programs read it that decode what is in it: entities, percent signs, marks without width."""
    for _ in range(_LAYERS):
        decoded = unquote(html.unescape(text), errors="ignore") if "%" in text or "&" in text else text
        if decoded == text:
            break
        text = decoded
    if not text.isascii():
        decomposed = unicodedata.normalize("NFKC", text)
        text = "".join(char for char in decomposed if unicodedata.category(char) not in _OUT_OF_SIGHT or char.isspace())
    return text.translate(_DOT)


def pieces_of(text: str) -> Iterator[str]:
    """Yield the pieces between spaces, brackets and quotes, without the marks of a sentence."""
    for piece in _BETWEEN.split(text):
        yield piece.strip(_AROUND)


def links_in(text: str) -> Iterator[str]:
    """Yield each piece of a text that may be a link, an address or the name of a host, in the form of `plain_text`."""
    plain = plain_text(text) if _MAYBE.search(text) is not None else ""
    for piece in pieces_of(plain) if _LINK.search(plain) is not None else ():
        if _LINK.search(piece) is not None:
            yield piece


def hosts_in(text: str, *, is_loose: bool) -> Iterator[str]:
    """Yield the names of hosts in a flat text, and what looks like one; with the scheme, too, where it has one.

    Args:
        text: The text.
        is_loose: Whether the part of an address behind `@` counts, too, and what may be a file: `plan.zip`.
    """
    for match in _DOTTED.finditer(text):
        name, before = match[0], text[max(0, match.start() - len("https://")) : match.start()]
        is_file = not (name.startswith("www.") or before.endswith("://")) and _FILE.search(name) is not None
        if not is_loose and (is_file or before.endswith("@")):
            continue
        last = name.rpartition(".")[2]
        if (len(last) > 1 and last.isalpha()) or (last.isdigit() and name.count(".") == 3):
            host = name.removeprefix("www.")
            yield host
            for scheme in ("http://", "https://"):
                if before.endswith(scheme):
                    yield scheme + host
