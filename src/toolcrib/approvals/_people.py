"""People behind the names of approvers, where several of them have to approve."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Final

_UNSEEN: Final = frozenset({"Cc", "Cf", "Cn", "Co", "Cs"})  # categories of characters that do not show
_FILLERS: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180e\u180f\u2800")
_VARIATIONS: Final = (range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))
_LATIN: Final = str.maketrans(
    # letters of Cyrillic, Greek, Armenian and of the Latin alphabet's fringe, and what they are drawn as
    "\u0430\u0432\u0441\u0435\u043d\u04bb\u0456\u0458\u043a\u04cf\u043c\u043e\u0440\u051b\u0455\u0442\u051d\u0445\u0443\u0432"
    "\u03b1\u03b2\u03b5\u03b6\u03b7\u03b9\u03ba\u03bc\u03bf\u03c1\u03c4\u03c5\u03bd\u03c7"
    "\u0570\u0575\u0578\u057d\u0585\u0566\u0131\u0261\u0251\u2018\u2019\u02bc\u2010\u2011\u2012\u2013\u2212",
    "abcehhijklmopqstwxybabezhikmoptuvxhjnuoqiga'''-----",
)
_GREEK_CAPITALS: Final = str.maketrans("\u039d\u0397\u03a5", "nhy")
"""Those that are drawn as another Latin letter than their small ones: they count in a name with Latin letters."""


def people_of(*approvers: str) -> set[str]:
    """Return the people behind approvers' names, which may say in brackets by what way an answer came.

    Names that look alike are of one person: in other letter cases, in compatible characters, with others that do not
    show, with letters of another alphabet that are drawn as Latin ones.
    """
    people = {_comparable(name) for name in approvers}
    return people - {""} or people  # a name of which nothing shows is nobody's beside another


@lru_cache(maxsize=4096)  # a page of requests names the same fifty people a thousand times
def _comparable(name: str) -> str:
    """Return a form of a name that is equal for names that look alike."""
    shown = "".join(filter(_is_shown, unicodedata.normalize("NFKC", name)))
    words = " ".join(shown.split())
    words = words.rpartition(" (")[0] or words
    if any(letter.isascii() and letter.isalpha() for letter in words):
        words = words.translate(_GREEK_CAPITALS)
    return unicodedata.normalize("NFKC", words.casefold()).translate(_LATIN)


def _is_shown(letter: str) -> bool:
    if letter.isspace():
        return True
    is_mark = letter in _FILLERS or any(ord(letter) in letters for letters in _VARIATIONS)
    return not is_mark and unicodedata.category(letter) not in _UNSEEN
