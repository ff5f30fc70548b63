"""Private values, found by their pieces in texts that are about to leave."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import chain, pairwise, permutations
from typing import Final

from toolcrib.provenance._kinds import dates_in, near_digits, without_moments
from toolcrib.provenance._links import plain_text, without_escapes
from toolcrib.provenance._texts import flat, words_in

_LEAST: Final = 4  # characters of a word that counts
_MOST_PIECES: Final = 500_000  # of one run
_DIGITS: Final = re.compile(r"\d(?:[\W_]{0,3}\d){3,}")
_COMMENT: Final = re.compile(r"(?m)<!--.*?(-->|$)")  # one that nothing closes is looked at once
_TAG: Final = re.compile(r"</?[a-z][^<>]{0,80}>")
_DECIMALS: Final = re.compile(r"(?<!\d)(\d{1,9})(?: ?\. ?|,)(\d{1,6})(?!\d)")
_ZEROS: Final = re.compile(r"[.,]00?$")  # decimals that are none
_TRIPLE: Final = re.compile(r"(?<!\d)(\d{1,4})[./\- ](\d{1,2})[./\- ](\d{1,4})(?!\d)")
_FEWEST_DIGITS: Final = 6  # that stand in a row, whatever is between them
_JOINED: Final = 12  # letters of words without anything between them
_SHORTEST_JOINED: Final = 8  # letters of a value that is looked for as a whole
_BEGINNING: Final = 8  # of these, by which they are looked up
_MOST_SHORT: Final = 4  # words of a value without a longer one
_FEWEST_LETTERS: Final = 5  # of such a value; with a digit three
_UNSPACED: Final = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]{3,}")
_CHARACTERS: Final = (3, 4)  # that stand side by side where there is nothing between words
_FILLERS: Final = frozenset(
    [
        "about",
        "after",
        "also",
        "been",
        "before",
        "could",
        "does",
        "from",
        "have",
        "into",
        "just",
        "only",
        "over",
        "said",
        "says",
        "should",
        "some",
        "than",
        "that",
        "their",
        "them",
        "then",
        "there",
        "they",
        "this",
        "were",
        "what",
        "when",
        "which",
        "will",
        "with",
        "would",
        "your",
    ]
)
_PERSON: Final = re.compile(
    r"[#@].*|.*@.*|[^\W\d_]+(?:[ -][^\W\d_]+)*", re.DOTALL
)  # or a channel: no name of a file alone
_FEW: Final = 4  # longer words of a value, any two of which are a piece
HIDDEN: Final = "+#=~@,"
"""The characters that a piece begins with that is not the text of words."""


class PrivateValues:
    """Values that few may read; to find those that a text has takes time by the length of the text alone.

    A value is found by each of its numbers, dates and identifiers, by each two of its longer words that follow each
    other, whatever short words and marks are between them, and by each three words with a longer one. Of a value with a
    single longer word, that word is a piece; of one without any, the whole. So are six digits in a row, however they
    are grouped, all digits of a shorter number, words that are joined or parted elsewhere, and characters side by side
    in a script without spaces.
    """

    __slots__ = ("_beginnings", "_has_short", "_joined", "_pieces", "is_full", "names", "readers")

    def __init__(self) -> None:
        self._pieces: dict[str, tuple[int, frozenset[str]]] = {}
        self._joined: dict[str, set[int]] = {}  # the lengths of what is joined, by how it begins
        self._beginnings: set[int] = set()  # the lengths of the beginnings
        self._has_short = False
        self.is_full = False
        self.readers: frozenset[str] | None = None  # of all of them
        self.names: set[str] = set()  # of files, flat

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def add(self, text: str, number: int, readers: frozenset[str]) -> None:
        """Keep a text, what it is from, and who may read it."""
        if self.is_full:
            self.lose(readers)
            return
        text = folded(text)
        all_words = _words_of(text)
        words = _longer(all_words)
        alone = words if len(words) == 1 else [word for word in words if _has_digit(word)]
        short = [] if words else list(_short_value(text))
        pairs = chain(_any_two(words) if len(words) <= _FEW else _pairs(words), _threes(all_words))
        numbers = chain(_digits_in(text), _dates(text), _decimals(text, is_alone=True))
        pieces = chain(alone, pairs, numbers, _characters(text, longest=True))
        self._keep(chain(pieces, _joined_words(all_words), _joined_words(words), short), number, readers)
        self._has_short = self._has_short or bool(short)

    def add_name(self, name: str, number: int, readers: frozenset[str]) -> None:
        """Keep the name or link of a file, which is found as a whole, what it is from, and who may read the file."""
        words = words_in(folded(name.rpartition("://")[2].split("?")[0]).replace("_", " "))
        mark = "=" if len(words) <= _MOST_SHORT else "+"
        if _PERSON.fullmatch(name) is None:
            self.names.add(flat(name))
        self._keep([mark + "".join(words)] if words else [], number, readers)
        self._has_short = self._has_short or mark == "="

    def lose(self, readers: frozenset[str]) -> None:
        """Record that there are private values that are not here, which these may read."""
        self.readers = readers if self.readers is None else self.readers & readers
        self.is_full = True

    def _keep(self, pieces: Iterable[str], number: int, readers: frozenset[str]) -> None:
        self.readers = readers if self.readers is None else self.readers & readers
        for piece in pieces:
            if len(self._pieces) >= _MOST_PIECES:
                self.is_full = True
                return
            _, known = self._pieces.get(piece, (number, readers))
            self._pieces[piece] = number, known & readers
            if piece[0] == "+":
                start = piece[1 : _BEGINNING + 1]
                self._joined.setdefault(start, set()).add(len(piece) - 1)
                self._beginnings.add(len(start))

    def within(self, text: str, receivers: Set[str]) -> Iterator[tuple[str, int, frozenset[str]]]:
        """Yield the pieces that a text has and that may not be sent to receivers: what each is from, and its readers.

        A piece that begins with one of the characters of `HIDDEN` is not the text of words.

        Args:
            text: The text.
            receivers: To whom it goes; everybody, where there are none.
        """
        if not self._pieces:
            return
        text = folded(text)
        marked = " ".join(match[0] for pattern in (_COMMENT, _TAG) for match in pattern.finditer(text))
        text = f"{_TAG.sub(' ', _COMMENT.sub(lambda match: ' ' if match[1] else match[0], text))}\n{marked}"
        all_words = _words_of(text)
        words = _longer(all_words)
        numbers = (*_digits_in(text), *_dates(text), *_decimals(text))
        turned = (f"{b} {a}" for a, b in pairwise(words) if f"{a} {b}" not in self._pieces)
        pairs = (*_pairs(words), *turned, *_pairs(words, over=1), *_threes(all_words))
        found = chain(words, pairs, numbers, _characters(text), self._looked_for(all_words))
        for piece in dict.fromkeys(piece for piece in found if piece in self._pieces):
            number, readers = self._pieces[piece]
            if not (receivers and receivers <= readers):
                yield piece, number, readers

    def _looked_for(self, words: Sequence[str]) -> Iterator[str]:
        """Yield the joined words of a text that begin as known ones do, by their lengths, and values of short words."""
        joined, known = "".join(words), self._joined
        for size in sorted(self._beginnings):
            starts = [at for at in range(len(joined) - size + 1) if joined[at : at + size] in known]
            found = ((length, at) for at in starts for length in known[joined[at : at + size]])
            yield from (f"+{joined[at : at + length]}" for length, at in sorted(found))
        for count in range(1, _MOST_SHORT + 1) if self._has_short else ():
            yield from (f"={''.join(words[at : at + count])}" for at in range(len(words) - count + 1))


def folded(text: str) -> str:
    """Return a text as a program may read it, without accents, capitals, and digits of other scripts."""
    text = plain_text(without_escapes(text))
    if not text.isascii():
        text = "".join(char for char in unicodedata.normalize("NFKD", text) if unicodedata.category(char) != "Mn")
        text = "".join(str(unicodedata.decimal(char)) if char.isdecimal() else char for char in text)
    return text.casefold()


def _words_of(text: str) -> list[str]:
    return words_in(text.replace("_", " "))


def _longer(words: Sequence[str]) -> list[str]:
    return [word for word in words if _is_longer(word)]


def _is_longer(word: str) -> bool:
    return len(word) >= _LEAST and word not in _FILLERS


def _pairs(words: list[str], over: int = 0) -> Iterator[str]:
    """Yield each two words that follow each other, over so many others."""
    return (f"{a} {b}" for a, b in zip(words, words[1 + over :], strict=False))


def _threes(words: Sequence[str]) -> Iterator[str]:
    """Yield each three words that follow each other, of which one alone is longer, such as a house in a street."""
    longer = [_is_longer(word) for word in words]
    for at, (first, second, third) in enumerate(zip(longer, longer[1:], longer[2:], strict=False)):
        if first + second + third == 1:
            yield " ".join(words[at : at + 3])


def _any_two(words: list[str]) -> Iterator[str]:
    return (f"{a} {b}" for a, b in permutations(words, 2))


def _short_value(text: str) -> Iterator[str]:
    """Yield a value without a longer word as a piece, such as a number or a name; none where anybody may write it."""
    words = _words_of(text)
    joined = "".join(words)
    is_telling = len(joined) > 2 if _has_digit(text) else len(words) > 1 and len(joined) >= _FEWEST_LETTERS
    if is_telling and len(words) <= _MOST_SHORT:
        yield f"={joined}"
        if not _has_digit(text):
            yield f"={''.join([words[-1], *words[:-1]])}"


def _decimals(text: str, *, is_alone: bool = False) -> Iterator[str]:
    """Yield the numbers with decimals, without the zeros at their ends, of a text or of one that is nothing else."""
    for number, decimals in _DECIMALS.findall(text) if not is_alone or _DECIMALS.fullmatch(text.strip()) else ():
        if decimals.strip("0") or not is_alone:
            yield f",{int(number)}.{decimals.rstrip('0')}"


def _digits_in(text: str) -> Iterator[str]:
    """Yield each six digits that stand in a row, whatever is between them, or all of four or five.

    Dates and times are left out.
    """
    found = _DIGITS.findall(without_moments(near_digits(flat(text))))
    for run in (*found, *(_ZEROS.sub("", group) for group in found if _ZEROS.search(group) is not None)):
        digits = "".join(char for char in run if char.isdigit())
        if len(digits) < _FEWEST_DIGITS:
            yield f"#{digits}"
        for at in range(len(digits) - _FEWEST_DIGITS + 1):
            yield f"#{digits[at : at + _FEWEST_DIGITS]}"


def _dates(text: str) -> Iterator[str]:
    return (f"@{month}-{day}" for month, day in days_in(text))


def days_in(text: str) -> Iterator[tuple[int, int]]:
    """Yield the dates of a text by month and day; three numbers are read in each order."""
    yield from ((month, day) for _, month, day in dates_in(near_digits(flat(text))))
    for triple in _TRIPLE.findall(text):
        first, second, third = map(int, triple)
        month_and_day = [(second, third)] if len(triple[0]) > 2 else [(first, second), (second, first)]
        yield from ((month, day) for month, day in month_and_day if 0 < month < 13 and 0 < day < 32)


def _characters(text: str, *, longest: bool = False) -> Iterator[str]:
    """Yield characters that stand side by side in a script without spaces.

    Args:
        text: The text.
        longest: Whether the longest pieces alone are yielded: fewer characters stand side by side by chance.
    """
    for run in _UNSPACED.findall(text) if not text.isascii() else ():
        for size in (min(_CHARACTERS[-1], len(run)),) if longest else _CHARACTERS:
            yield from (f"~{run[at : at + size]}" for at in range(len(run) - size + 1))


def _joined_words(words: list[str]) -> Iterator[str]:
    """Yield the letters from the beginning of each word on, with nothing between words; of a short text all."""
    joined, at = "".join(words), 0
    if len(words) > 1 and _SHORTEST_JOINED <= len(joined) < _JOINED:
        yield f"+{joined}"
    for word in words:
        if at + _JOINED <= len(joined):
            yield f"+{joined[at : at + _JOINED]}"
        at += len(word)


def _has_digit(word: str) -> bool:
    return any(char.isdigit() for char in word)
