"""People behind the names of approvers, where several of them have to approve."""

from __future__ import annotations

import unicodedata
from typing import Final

__all__ = ["people_of"]

_UNSEEN: Final = frozenset({"Cc", "Cf", "Cn", "Co", "Cs"})  # categories of characters that do not show
_FILLERS: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180e\u180f\u2800")
_VARIATIONS: Final = (range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))
_LATIN: Final = str.maketrans(
    # letters of Cyrillic, then of Greek and of the Latin alphabet's fringe, and what they are drawn as
    "\u0430\u0441\u0435\u04bb\u0456\u0458\u04cf\u043e\u0440\u051b\u0455\u051d\u0445\u0443\u03b1\u03bf\u03c1\u03bd\u0131\u0261\u0251",
    "acehijlopqswxyaopviga",
)


def people_of(*approvers: str) -> set[str]:
    """Return the people behind approvers' names, which may say in brackets by what way an answer came.

    Names that look alike are of one person: in other letter cases, in compatible characters, with others that do not
    show, with letters of another alphabet that are drawn as Latin ones.
    """
    return {_comparable(name.rpartition(" (")[0] or name) for name in approvers}


def _comparable(name: str) -> str:
    """Return what names that look alike have in common."""
    shown = "".join(filter(_is_shown, unicodedata.normalize("NFKC", name)))
    folded = unicodedata.normalize("NFKC", shown.casefold()).translate(_LATIN)
    return " ".join(folded.split())


def _is_shown(letter: str) -> bool:
    if letter.isspace():
        return True
    is_mark = letter in _FILLERS or any(ord(letter) in letters for letters in _VARIATIONS)
    return not is_mark and unicodedata.category(letter) not in _UNSEEN
