"""Origins of values: the source of each component of a value, among the texts and results that a run has read."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, cast

from toolcrib.provenance._kinds import Component, components, number_of, phrases, whole_of, without_moments
from toolcrib.provenance._links import pieces_of, plain_text
from toolcrib.provenance._pieces import key_of, number_text
from toolcrib.provenance._question import ASKED, Origin
from toolcrib.provenance._records import Records
from toolcrib.provenance._spoken import is_near
from toolcrib.provenance._texts import APART, flat, is_long_number, lines_apart

_SHORT: Final = 3  # characters
_IN_ANY_TEXT: Final = 100  # smaller whole numbers stand in any text, by chance
_LONG: Final = 2_000  # characters of a text that is looked at word by word
_MOST_WORDS: Final = 24  # of a value that is looked at for what stands in it side by side
_LONGEST_PHRASE: Final = 8  # words
_MOST_NAMES: Final = 1_000  # of a text that cannot be taken apart
_LETTER: Final = re.compile(r"[^\W\d_]")
_BEHIND_LETTER: Final = re.compile(r"[@./:]\w|\d\D*\d")  # in an address, a link, a path or an identifier
_LONG_NUMBER: Final = re.compile(r"\d{6}")
_BY_KIND: Final[Mapping[str, int]] = {"untrusted": 4, "flag": 3, "model": 2, "chosen": 1}
_PATHS: Final = re.compile(r"(?<![^\s/])(?=[^\s/]+\.[^\s/])[^\s/]++/(\S+)")  # what follows the host of a link
_ODD_SPACE: Final = re.compile(r"[^\S ]")
_OTHER_SPACES: Final = re.compile(r"  |^ | $")
_STORED: Final = re.compile(r"^(?!.*@).*(?:[\d_/]|\w\.\w)", re.DOTALL)  # a path, the name of a file or an identifier
_EXACT: Final = re.compile(r"^-|[\d_/]")
_MAY_BE_EXACT: Final = re.compile(r"[\d_/-]")
_MOMENT: Final = re.compile(r"(?i)\d(?:st|nd|rd|th|[ap]\.?m\.?|t\d\d.*)$|^\d+(?:[-/:.]\d+)+z?$")
_SEGMENTS: Final = re.compile(r"[/?&=#+]")


class Origins(Records):
    """The origins of values, by the texts that a run knows."""

    def origin(self, value: Any) -> Origin:
        """Return the origin of a text or a number: of several components the one that is trusted least."""
        self._begin()
        return self._least_trusted(value)

    def _least_trusted(self, value: Any) -> Origin:
        return max(self.cover(value), key=lambda origin: _BY_KIND.get(origin.kind, 0))

    def cover(self, value: Any) -> Sequence[Origin]:
        """Return the origin of a text or a number as a whole, or else of each of its components.

        It is unknown where too much was looked up for the same call.

        Args:
            value: The text or number.
        """
        key = (cast("object", type(value)), value)
        found = self._covers.get(key)
        if found is None and self._budget < 0:
            return [Origin("model")]
        if found is None:
            found = self._covers[key] = self._origins_of(value)
        return found

    def _origins_of(self, value: Any) -> list[Origin]:
        text = key_of(value)
        if isinstance(text, str) and APART in text:
            return [Origin("model")]
        number = whole_of(text) if isinstance(text, str) else text
        if number is not None or not isinstance(text, str):
            is_plain = not isinstance(value, str) or value.isascii()
            return [self._origin_of_number(number or 0.0) if is_plain else Origin("model", part=str(text))]
        source = self._origin_of_text(text)
        if source is None and "\n" in str(value):
            source = self._origin_of_text(flat(lines_apart(str(value))))
        if not self._reads_others:
            return [Origin("derived") if source is None else source]
        if source is not None and source.kind == "user" and not without_moments(text).strip():
            source = None  # a name and a number of the user's may look like a date
        parts = [] if source is not None else components(text)
        found = [self._origin_of(part, is_whole=len(parts) == 1) for part in parts] if source is None else [source]
        if len(parts) > 1 and any(origin.kind in ASKED for origin in found):
            found = self._cover_phrases(text) or found
        if any(origin.kind in ASKED for origin in found):
            return found
        unclear = _spelling(str(value), self._has_cased)
        if unclear is None and parts:
            unclear = (
                text
                if _is_joined(text, parts, found)
                else next((p for p in phrases(text) if not self._is_one(p)), None)
            )
        return found if unclear is None else [Origin("model", part=flat(unclear))]

    def _is_one(self, phrase: str) -> bool:
        """Return whether words stand side by side, with the same marks, in a text of the user's or a trusted one."""
        if self._user.find(phrase) is not None:
            return True
        found = self._find_trusted(phrase)
        return found is not None and found.kind == "trusted"

    def _has_cased(self, segment: str) -> bool:
        named = (self._sources[at] for at in self._values.get(flat(segment), ()))
        if segment.strip() != segment:  # which any text has by chance
            return any(piece.text == segment for piece in named)
        is_name = any(piece.trust == "name" and piece.text == segment for piece in named)
        return self._user.has_cased(segment) or (not self.is_full and (is_name or self._trusted.has_cased(segment)))

    def _cover_phrases(self, text: str) -> list[Origin]:
        """Return the components of what is left of a text without words that stand side by side in one of ours."""
        words = text.split()
        if len(words) > _MOST_WORDS:
            return []
        rest, at = list[str](), 0
        while at < len(words):
            longest = min(len(words) - at, _LONGEST_PHRASE)
            ends = (end for end in range(longest, 1, -1) if self._is_ours(" ".join(words[at : at + end])))
            end = next(ends, 0)
            if not end:
                rest.append(words[at])
            elif rest and rest[-1] != "\n":
                rest.append("\n")
            at += end or 1
        if len(rest) == len(words):
            return []
        parts = [part for line in " ".join(rest).split("\n") if line.strip() for part in components(line.strip())]
        return [Origin("derived"), *(self._origin_of(part, is_whole=False) for part in parts)]

    def _is_ours(self, phrase: str) -> bool:
        phrase = phrase.strip(".,:;!?'\"()")
        if " " not in phrase:
            return False
        if self._user.find(phrase) is not None:
            return True
        found = self._find_trusted(phrase)
        return found is not None and found.kind == "trusted" and self._find_of_others(phrase) is None

    def _is_put_together(self, text: str) -> bool:
        """Return whether a text is made of words of ours, and stands in no text of others as it is."""
        if len(text) > _LONG or self._find_of_others(text) is not None:
            return self._user.find(text) is not None
        words = [part.text for part in components(without_moments(text)) if part.kind in ("word", "name", "host")]
        return bool(words) and all(
            self._user.find(word) is not None or self._find_trusted(word) is not None for word in words
        )

    def _cover_paid(self, value: Any, found: Sequence[Origin]) -> list[Origin]:
        """Return the origins of a value that is paid: a trusted one is chosen, unless the user named its record."""
        return [
            self._chosen(origin, value) if origin.kind == "trusted" and not origin.is_meant else origin
            for origin in found
        ]

    def _chosen(self, origin: Origin, value: Any) -> Origin:
        """Return the origin of a trusted amount or payee: chosen, unless the user named its record."""
        key = origin.part or key_of(value)
        number = number_of(key) if isinstance(key, str) else key
        meant = self._find_meant(str(key)) if number is None else self._find_meant_number(number)
        return meant if meant is not None and meant.is_meant else replace(origin, kind="chosen")

    # --- one component

    def _origin_of(self, part: Component, *, is_whole: bool) -> Origin:
        name = "" if is_whole else part.text
        match part.kind:
            case "number":
                return replace(self._origin_of_number(part.number), part=name)
            case "date":
                return replace(self._origin_of_date(part.parts), part=name)
            case "time":
                return replace(self._origin_of_key("times", part.parts, part.text), part=name)
            case "measure":
                origin = self._origin_of_key("measures", (part.number, part.unit), part.text)
                of_others = self._untrusted.numbers.get(part.number) if origin.kind == "model" else None
                return replace(origin if of_others is None else self._sources[of_others].located(), part=name)
            case "host":
                return replace(self._origin_of_host(part.text), part=name)
            case "word":
                origin = self._origin_of_text(part.text, is_part=True) or Origin("model")
                return replace(Origin("model") if origin.kind == "untrusted" else origin, part=name)
            case "name":
                return replace(self._origin_of_text(part.text, is_part=True) or Origin("model"), part=name)
            case "unclear":
                return self._find_name_of_others(part.text) or Origin("model", part=name)

    def _find_name_of_others(self, text: str) -> Origin | None:
        """Return the origin of a name of a stranger's in a text that cannot be taken apart, such as a long one."""
        names = filter(_is_telling, dict.fromkeys(pieces_of(plain_text(text))))
        for count, name in enumerate(names):
            found = self._origin_of_text(name, is_part=True)
            if found is not None and found.kind == "untrusted":
                return replace(found, part=name)
            if count == _MOST_NAMES:
                self._budget = -1
                break
        return None

    def _origin_of_text(self, text: str, *, is_part: bool = False) -> Origin | None:
        """Return the origin of a text as a whole; None when it is nowhere."""
        is_users = self._user.find(text) is not None or self._user.has_grouped(text) or self._user.has_mark(text)
        if is_users and (is_part or not self._is_ambiguous(text)):
            return Origin("user")
        trusted = self._find_trusted(text)
        found = self._find_of_others(text)  # before the trusted ones: a stranger may name what is in them
        if found is not None:
            meant = self._find_meant(text) if trusted is not None and len(text) > _SHORT else None
            return meant or self._sources[found[0]].located(found[1])
        return Origin("user") if is_users else trusted

    def _find_trusted(self, text: str) -> Origin | None:
        """Return where a trusted result has a text; `chosen` where a stranger may have brought all that have it."""
        number, line = next(self._places(text), (-1, 0))
        if number < 0:
            return None
        if self._sources[number].is_beside:
            of_its_own = (at for at in self._places(text) if not self._sources[at[0]].is_beside)
            number, line = next(of_its_own, (number, line))
        piece = self._sources[number]
        if piece.is_beside:
            return self._find_meant(text) or replace(piece.located(line), kind="chosen")
        return piece.located(line)

    def _origin_of_number(self, value: float) -> Origin:
        others, is_users = self._untrusted.numbers.get(value), value in self._user.numbers
        is_either = others is not None and self._is_ambiguous(number_text(value))
        if is_users and not is_either:
            return Origin("user")
        trusted = self._first_known(number_text(value), self._trusted.numbers.get(value))
        is_beside = trusted is not None and self._sources[trusted].is_beside
        if trusted is not None and not is_either and (is_beside or others is not None):
            meant = self._find_meant_number(value)
            if meant is not None:
                return meant
        if others is not None and (trusted is None or abs(value) >= _IN_ANY_TEXT or value % 1):
            return self._sources[others].located()
        if trusted is not None:
            found = self._sources[trusted].located()
            return replace(found, kind="chosen") if is_beside or others is not None else found
        return Origin("model" if self._reads_others else "derived")

    def _origin_of_host(self, host: str) -> Origin:
        """Return the origin of the host of a link; one that is known by `https` alone is unknown by `http`."""
        bare = host.removeprefix("http://")
        origin = self._origin_of_key("hosts", bare, bare)
        is_open = bare != host and origin.kind in ("user", "trusted")
        if is_open and any(
            f"https://{bare}" in texts.hosts and host not in texts.hosts for texts in (self._user, self._trusted)
        ):
            return Origin("model")
        return origin

    def _origin_of_key(self, index: Literal["times", "hosts", "measures"], key: Any, text: str) -> Origin:
        """Return where a time of day, a host or a number with its unit comes from, which a text stands for."""
        indexes = (self._user, self._trusted, self._untrusted)
        user, trusted, others = (cast("Mapping[Any, int]", getattr(texts, index)) for texts in indexes)
        if key in user:
            return Origin("user")
        if key in others:
            return self._sources[others[key]].located()
        known = self._first_known(text, trusted.get(key))
        if known is not None and not self._sources[known].is_beside:
            return self._sources[known].located()
        return Origin("model" if self._reads_others else "derived")

    def _origin_of_date(self, date: tuple[int, ...]) -> Origin:
        """Return the origin of a date; one that is known without a year is known in the years that are."""
        year, day = date[0], (date[1], date[2])
        user, others = self._user.dates.get(day, {}), self._untrusted.dates.get(day, {})
        trusted = {} if self.is_full else self._trusted.dates.get(day, {})
        if self._is_known(date, user):
            return Origin("user")
        if others:
            return self._sources[others.get(year, next(iter(others.values())))].located()
        known = self._first_known(f"2000-{day[0]:02}-{day[1]:02}", next(iter(trusted.values()), None))
        if known is not None and self._is_known(date, trusted):
            return self._sources[known].located()
        return Origin("model" if self._reads_others else "derived")

    def _is_known(self, date: tuple[int, ...], years: Mapping[int, int]) -> bool:
        year, month, day = date
        if not years or not year or year in years:
            return bool(years)
        is_named = year in self._user.years or (not self.is_full and year in self._trusted.years)
        return 0 in years and (is_named or is_near(year, month, day, self.today))


def _is_joined(text: str, parts: Sequence[Component], found: Sequence[Origin]) -> bool:
    """Return whether a link or a path was put together of values of several records, or of one with the user's host."""
    places = {(origin.call_id, origin.path) for origin in found if origin.kind == "trusted"}
    hosts = [origin for part, origin in zip(parts, found, strict=False) if part.kind == "host"]
    is_path = bool(hosts) or ("/" in text and all(part.kind == "name" for part in parts))
    return is_path and (len(places) > 1 or (bool(places) and any(host.kind == "user" for host in hosts)))


def _is_telling(piece: str) -> bool:
    """Return whether a piece of a text is an address, a link, a path or an identifier, and no word or short number."""
    letter = _LETTER.search(piece)
    is_marked = letter is not None and _BEHIND_LETTER.search(piece, letter.end()) is not None
    return is_marked or _LONG_NUMBER.search(piece) is not None


def _spelling(value: str, has_cased: Callable[[str], bool]) -> str | None:
    """Return the part of a text that another program may read in another way than we compare it; None for none.

    That is a text with compatible characters, one of several lines or with other spaces, a word whose question mark may
    be a pattern's, and a segment of a link, a path, an option or an identifier in other capitals.
    """
    bare = value.strip(" \t\r\n")
    if _ODD_SPACE.search(bare) is not None and not has_cased(bare):
        return value
    lines = value.strip("\r\n")
    if _OTHER_SPACES.search(lines) is not None and _STORED.search(value) is not None and not has_cased(lines):
        return value
    if bare[-1:] == "?" and " " not in bare:
        return value
    if not value.isascii() and unicodedata.normalize("NFKC", value) != value:
        return value
    if _MAY_BE_EXACT.search(value) is None:
        return None
    segments = [part for path in _PATHS.findall(value) for part in _SEGMENTS.split(path.rstrip(".,:;!?"))]
    words = () if segments or is_long_number(bare) else map(_stripped, bare.split())
    exact = [*segments, *filter(_is_exact, words)]
    return next((part for part in exact if part.lower() != part.upper() and not has_cased(part)), None)


def _stripped(word: str) -> str:
    return word.strip(".,:;!?()\"'")


def _is_exact(word: str) -> bool:
    """Return whether other capitals make another value of a word: of an option, a path or an identifier."""
    is_exact = _EXACT.search(word) is not None and "@" not in word and "://" not in word
    return is_exact and _MOMENT.search(word) is None
