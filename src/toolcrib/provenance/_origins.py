"""Origins of values: where a text or a number comes from, by what a run has read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from toolcrib.provenance._flow import Flow
from toolcrib.provenance._links import hosts_of
from toolcrib.provenance._question import Origin
from toolcrib.provenance._texts import TextIndex, dates_in, flat

__all__ = ["PROGRAM", "WORDS_OF_USER", "Origins", "key_of"]

WORDS_OF_USER: Final = 0
"""Who wrote a text of the user's: the user."""
PROGRAM: Final = 1
"""Who wrote a text that counts as the user's: the model, in a program, before any text of others was read."""

_MOST_TEXT: Final = 20_000_000  # characters of results that one run keeps
_MOST_NUMBERS: Final = 64  # from which another may be computed: of more, most numbers could be
_AMBIGUOUS: Final = 3  # digits
_LONG: Final = 2_000  # characters of a text that is not looked at word by word
_NEAR: Final = 32  # values of one record that are looked through


class Origins:
    """The texts that a run knows: the user's, those of trusted results, and those that others may have written."""

    def __init__(self) -> None:
        self._user, self._trusted, self._untrusted = TextIndex(), TextIndex(), TextIndex()
        self._sources: list[tuple[Origin, str]] = []  # of each value, with its text
        self._left = _MOST_TEXT
        self._echoes: dict[int, set[str | float]] = {}  # of sources: what their calls were given, and not by others
        self._of_others: set[tuple[str, str]] = set()  # tools, and the fields of their results in which others wrote

    @property
    def is_full(self) -> bool:
        """Whether there was more to keep than is kept: then no result counts as trusted."""
        return self._left < 0

    @property
    def _reads_others(self) -> bool:
        return len(self._untrusted) > 0 or self.is_full

    def origin(self, value: Any, flow: Flow | None = None) -> Origin:
        """Return where a text or a number comes from.

        Args:
            value: The text or number.
            flow: What may come into the argument, as far as the text of a program says it.
        """
        key = key_of(value)
        if flow is None:
            return self._origin_of(key, None)
        stranger = next((each[0] for each in flow.results if self.is_full or each in self._of_others), None)
        if stranger is None:
            found = self._origin_within(key, flow) if flow.is_early else None
            return self._origin_of(key, flow) if found is None else found
        origin = self._origin_of(key, flow)
        is_computed = origin.kind in ("derived", "model") or (origin.kind == "trusted" and not self._is_from(key, flow))
        is_literal = key in flow.literals
        return Origin("untrusted", stranger, about="computed") if is_computed and not is_literal else origin

    def _origin_within(self, key: str | float, flow: Flow) -> Origin | None:
        """Return the origin of a value that nothing of others flows into; None where it has to be looked up.

        The program was written before anything of others was read, so that they did not choose it either. A text has to
        be one that the program says, or that is in such a result: only a number may be computed of them.
        """
        if key in flow.literals or (flow.literals and isinstance(key, str) and self._is_written_by(PROGRAM, key)):
            return Origin("user")
        return Origin("derived") if flow.results and self._is_from(key, flow) else None

    def _is_from(self, key: str | float, flow: Flow) -> bool:
        """Return whether a text is in a trusted result that may flow there; a number may be in any."""
        tools = {tool for tool, _ in flow.results}
        return not isinstance(key, str) or any(
            self._sources[number][0].tool in tools for number, _ in self._trusted.places(key)
        )

    def _is_written_by(self, who: int, key: str | float) -> bool:
        """Return whether a value is in the user's words, or in a program that counts as the user's."""
        if isinstance(key, str):
            return any(each == who for each, _ in self._user.places(key))
        return self._user.numbers.get(key) == who

    def _is_said(self, key: str | float, flow: Flow | None) -> bool:
        """Return whether the user wrote a value, or a program that counts as the user's; not what never flows there."""
        if flow is None or not flow.is_early:
            if isinstance(key, str):
                return self._user.find(key) is not None or self._user.has_grouped(key)
            return key in self._user.numbers
        return key in flow.literals or self._is_written_by(WORDS_OF_USER, key)

    def _origin_of(self, key: str | float, flow: Flow | None) -> Origin:
        """Return where a value comes from, by the value alone."""
        if isinstance(key, str):
            return self._origin_of_text(key, is_users=self._is_said(key, flow))
        return self._origin_of_number(key, is_said=self._is_said(key, flow))

    def _origin_of_text(self, text: str, *, is_users: bool) -> Origin:
        if is_users and not _is_ambiguous(text):
            return Origin("user")
        found = self._find_of_others(text)  # before the trusted ones: a stranger may name what is in them
        if found is None and is_users:
            return Origin("user")
        if found is None and not self.is_full:
            found = self._trusted.find(text)
        if found is not None:
            return self._source(*found)
        if dates := list(dates_in(text)):
            return self._origin_of_dates(dates)
        is_known = not self._reads_others or self._is_put_together(text)
        return Origin("derived" if is_known else "model")

    def _find_of_others(self, text: str) -> tuple[int, int] | None:
        """Return the first untrusted text with a value, and the line; not one of a call that was given the value."""
        return next((at for at in self._untrusted.places(text) if text not in self._echoes.get(at[0], ())), None)

    def _source(self, number: int, line: int = 0) -> Origin:
        return replace(self._sources[number][0], line=line)

    def _origin_of_number(self, value: float, *, is_said: bool) -> Origin:
        trusted, others = self._trusted.numbers, self._untrusted.numbers
        if is_said and not (value in others and _is_ambiguous(f"{value:g}")):
            return Origin("user")
        if value in trusted and not self.is_full:
            return self._source(trusted[value])
        if value in others:
            return self._source(others[value])
        is_known = not (others or self.is_full) or self._is_computed(value)
        return Origin("derived" if is_known else "model")

    def _is_computed(self, value: float) -> bool:
        """Return whether a number is the sum, difference, product or share of two that the user or a source gave."""
        known = [*self._user.numbers, *self._trusted.numbers][-_MOST_NUMBERS:]
        cents = {round(each, 2) for each in known}
        return any(
            round(value - each, 2) in cents
            or round(value + each, 2) in cents
            or (each and (round(value / each, 2) in cents or round(value * 100 / each, 2) in cents))
            for each in known
        )

    def _origin_of_dates(self, dates: Sequence[tuple[int, int]]) -> Origin:
        for date in dates:
            if date not in self._user.dates and date in self._untrusted.dates:
                return self._source(self._untrusted.dates[date])
        known = self._user.dates.keys() | self._trusted.dates.keys()
        is_known = not self._reads_others or (not self.is_full and known.issuperset(dates))
        return Origin("derived" if is_known else "model")

    def _is_put_together(self, text: str) -> bool:
        """Return whether a text is made of words that the user wrote, or that trusted results have."""
        words = [word.strip(".,:;!?'\"()") for word in text.split()] if len(text) <= _LONG else []
        return len(words) > 1 and all(
            not word or self._user.find(word) is not None or (not self.is_full and self._trusted.find(word) is not None)
            for word in words
        )

    def _is_meant(self, value: str) -> bool:
        """Return whether the user wrote another value of a record that a trusted value is in."""
        return any(self._is_in_users_record(number) for number, _ in self._trusted.places(flat(value)))

    def _is_in_users_record(self, number: int) -> bool:
        origin, record = self._sources[number][0], _record_of(self._sources[number][0].path)
        nearby = self._sources[max(0, number - _NEAR) : number + _NEAR]
        return bool(record) and any(
            each.call_id == origin.call_id
            and each.path != origin.path
            and _record_of(each.path) == record
            and self._is_users(text)
            for each, text in nearby
        )

    def _is_users(self, text: str) -> bool:
        try:
            return round(float(text), 4) in self._user.numbers
        except ValueError:
            return not _is_ambiguous(text) and self._user.find(flat(text)) is not None

    def _host_of_others(self, link: str) -> tuple[int] | None:
        """Return where a stranger names the host of a link, which the user and trusted results do not name."""
        for host in hosts_of(link):
            if host in self._user.hosts or (host in self._trusted.hosts and not self.is_full):
                return None
            if host in self._untrusted.hosts:
                return (self._untrusted.hosts[host],)
        return None


def key_of(value: Any) -> str | float:
    """Return a text or a number as it is looked up."""
    return round(float(value), 4) if isinstance(value, int | float) else flat(str(value))


def _is_ambiguous(text: str) -> bool:
    """Return whether a value is so short that, where both the user and a stranger wrote it, it may be either's."""
    return len(text) <= (_AMBIGUOUS if text.isdecimal() else _AMBIGUOUS - 1)


def _record_of(path: str) -> str:
    """Return the path of the record that a value is in."""
    return path[: max(path.rfind("."), path.rfind("["), 0)]
