"""Links and addresses in texts that leave, read as widely as any program that shows or sends the text may read them."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import unquote

_BETWEEN: Final = re.compile(r"[\s<>()\[\]{}\"'`|,;*]+|=(?=https?://)")
_AROUND: Final = ":!?.=_~#"
_DOTTED: Final = re.compile(r"(?<![\w.-])[\w-]+(?:\.[\w-]+)+")
_INNER_DOT: Final = re.compile(r"\.(?<=[\w-]\.)[\w-]")
_ENDINGS: Final = re.compile(r"\.(?:com|net|org|edu|gov|mil|int|eu|uk|de|fr|nl|ch|dk|cz|jp|cn|kr|ru|br|au|nz|ca)$")
"""The endings of hosts that are neither those of files nor words; a name with another one is a host in a link alone."""
_AROUND_NAME: Final = re.compile(r"(?:^|[\s,])[\"'\u2018\u201c\u00ab`(\[{<]*$")
_BEHIND_NAME: Final = re.compile(r"(?::\d+)?(?:[/?#]|(?:['\u2019]s)?[\"'\u2019\u201d\u00bb`)\]}>.,;:!?]*+(?=\s|$))")
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
_SPACE: Final = re.compile(r"\s")
_BREAK: Final = re.compile(r"&(?:#0*(?:9|10|13)(?!\d)|#x0*[9ad](?![\da-f])|Tab|NewLine);?", re.IGNORECASE)
_ATTRIBUTE: Final = re.compile(r"=\s*+(?:\"[^\"]*+\"|'[^']*+')")
_BREAKS: Final = str.maketrans("", "", "\t\r\n")
"""Characters that browsers leave out of a link: tabs and ends of lines."""
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|[nrt])")  # of JSON
_TAG: Final = r"<(?:/?[a-zA-Z][^<>]{0,80}|!--[^<>]{0,80}--)>"
_IN_WORD: Final = re.compile(rf"(?<=\S){_TAG}|{_TAG}(?=\S)|=\r?\n")  # a tag at a word, or a soft break
_SEAM: Final = "\x01"
_MARKED: Final = re.compile(  # what may stand in a word that a program, or a reader, takes for another one
    r"[_&%*`\\\x01\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2024\u2060-\u206f"
    r"\u3002\ufe00-\ufe0f\ufe52\ufeff\uff0e\uff61\U000e0000-\U000e0fff](?:(?<!_)|(?<![^\W_]_)|(?![^\W_]))"
)
_SET_APART: Final = re.compile(
    r"\\(?=[^\w\s])|[*`\x01]+|(?<![^\W_])_+|_+(?![^\W_])"
)  # a mark of Markdown, and what escapes one
_MARKS: Final = 8  # characters before a name that are looked at
_BESIDE: Final = 4  # words beside one that is shown as another
_LAYERS: Final = 3  # of encodings in one another


def plain_text(text: str) -> str:
    """Return a text as programs read it that decode what is in it: entities, percent signs, marks without width."""
    for _ in range(_LAYERS if "%" in text or "&" in text else 0):
        decoded = unquote(html.unescape(_BREAK.sub("", text)), errors="ignore")
        if decoded == text:
            break
        text = decoded
    if text.isascii() and "\\" not in text:
        return text
    if not text.isascii():
        decomposed = unicodedata.normalize("NFKC", text)
        text = "".join(char for char in decomposed if unicodedata.category(char) not in _OUT_OF_SIGHT or char.isspace())
    return text.translate(_DOT)


def without_escapes(text: str) -> str:
    """Return a text with the characters that the escapes of JSON in it stand for."""
    if "\\" not in text:
        return text
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else " ", text)


def shown_words(text: str) -> str:
    """Return the words of a text that are shown as other ones, as they are shown: without escapes, tags and marks.

    Those beside them are with them, since a value may be several words.
    """
    if "<" in text or "=\n" in text or "=\r" in text:
        text = _IN_WORD.sub(_SEAM, text)
    words = text.split() if _MARKED.search(text) else []
    marked = {at: plain_text(_SET_APART.sub("", without_escapes(words[at]))) for at in dict.fromkeys(_marked_in(words))}
    changed = [at for at, word in marked.items() if word not in ("", words[at])]
    near = dict.fromkeys(at for mid in changed for at in range(max(0, mid - _BESIDE), mid + _BESIDE + 1))
    return " ".join(marked.get(at, words[at]) for at in near if at < len(words))


def _marked_in(words: Sequence[str]) -> Iterator[int]:
    """Yield which words have a mark; one with several of them several times."""
    text, number, end = "\n".join(words), 0, 0
    for match in _MARKED.finditer(text):
        number += text.count("\n", end, match.start())
        end = match.start()
        yield number


def pieces_of(text: str) -> Iterator[str]:
    """Yield the pieces between spaces, brackets and quotes, without the marks of a sentence."""
    for piece in _BETWEEN.split(text):
        yield piece.strip(_AROUND)


def links_in(text: str) -> Iterator[str]:
    """Yield each piece of a text that may be a link, an address or the name of a host, in the form of `plain_text`."""
    plain = plain_text(without_escapes(text)) if _MAYBE.search(text) is not None else ""
    if "=" in plain:
        plain = _ATTRIBUTE.sub(lambda found: found[0].translate(_BREAKS), plain)
    for piece in pieces_of(plain) if _LINK.search(plain) is not None else ():
        if _LINK.search(piece) is not None:
            yield piece


def hosts_in(text: str, *, is_loose: bool) -> Iterator[str]:
    """Yield the names of hosts in a flat text, and what looks like one; with the scheme, too, where it has one.

    Args:
        text: The text.
        is_loose: Whether whatever looks like one counts, such as the part of an address behind `@`, or a file.
    """
    token_end = last_at = 0  # of the word without spaces that a name is in: its end, and its last `@`
    for match in _dotted_in(text):
        if not is_loose and match.end() > token_end:
            space = _SPACE.search(text, match.end())
            token_end = len(text) if space is None else space.start()
            last_at = text.rfind("@", match.end(), token_end)
        name, before = match[0], text[max(0, match.start() - len("https://")) : match.start()]
        if not is_loose and not (
            before.endswith("://") or name.startswith("www.") or _is_host(text, match.start(), match.end(), last_at)
        ):
            continue
        last = name.rpartition(".")[2]
        if (len(last) > 1 and last.isalpha()) or (last.isdigit() and name.count(".") == 3):
            host = name.removeprefix("www.")
            yield host
            for scheme in ("http://", "https://"):
                if before.endswith(scheme):
                    yield scheme + host


def _dotted_in(text: str) -> Iterator[re.Match[str]]:
    """Yield the names with dots of a flat text."""
    end, dot = 0, _INNER_DOT.search(text)
    while dot is not None:
        match = _DOTTED.search(text, max(end, text.rfind(" ", end, dot.start()) + 1))
        if match is None:
            return
        yield match
        end = match.end()
        dot = _INNER_DOT.search(text, end)


def _is_host(text: str, start: int, end: int, last_at: int) -> bool:
    """Return whether a name stands by itself, or in a list without an address behind it, and has a host's ending."""
    is_listed = text[end : end + 1] == "," and last_at < end
    is_apart = is_listed or _BEHIND_NAME.match(text, end) is not None
    is_alone = is_apart and _AROUND_NAME.search(text, max(0, start - _MARKS), start) is not None
    return is_alone and _ENDINGS.search(text, start, end) is not None
