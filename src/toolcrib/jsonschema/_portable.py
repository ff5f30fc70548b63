"""Portable patterns: regular expressions that RE2, ECMAScript, Python and Rust take, and read in the same way."""

from __future__ import annotations

import re
from dataclasses import dataclass

_MOST_REPEATS = 1_000  # of RE2, for repeats in repeats as well
_MOST_STATES = 100_000  # RE2 refuses a pattern of about 350,000 states; here they are counted as more than they are
_DEEPEST = 50  # Rust takes 250 levels, of which a group may be four
_STATES_OF_CLASS, _STATES_OF_RANGE = 12, 18  # of a named class, and of a range that is not ASCII

_BORDERS, _CLASSES, _SPACES = "bB", "dDwWsS", "tnvfr"  # the last from the character 9 on
_SYNTAX = frozenset("^$\\.*+?()[]{}|")
_CLASS_SYNTAX = frozenset("[]\\^-")
_AMBIGUOUS = ("[:", "&&", "--", "~~")  # in a class: of POSIX, and operators on sets in Rust
_ESCAPE = (
    r"\\(?:u\{(?P<braced>[0-9a-fA-F]{1,6})\}"
    r"|u(?P<high>[dD][89abAB][0-9a-fA-F]{2})\\u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|u(?P<four>[0-9a-fA-F]{4})|U(?P<eight>[0-9a-fA-F]{8})|x(?P<two>[0-9a-fA-F]{2})"
    r"|c(?P<control>[a-zA-Z])|(?P<zero>0(?![0-9]))|(?P<other>.))"
)
_TOKEN = re.compile(
    rf"{_ESCAPE}|(?P<open>\((?:\?(?::|P?<[A-Za-z_][A-Za-z0-9_]*>))?)|(?P<class>\[\^?)"
    r"|(?P<repeat>(?:[*+?]|\{(?P<least>[0-9]+)(?:,(?P<most>[0-9]*))?\})\??)|(?P<to>\{,[0-9]*\})|(?P<plain>.)",
    re.DOTALL,
)
_ITEM = re.compile(rf"{_ESCAPE}|(?P<plain>.)", re.DOTALL)


def portable(pattern: object) -> str | None:
    """Return a pattern as every engine takes it and reads it alike; None for one that cannot be written so.

    It is read as ECMAScript reads it, as JSON Schema says. A character given by its number becomes the character
    itself, and a group loses its name. A pattern that looks around, refers back, sets flags or needs the tables of
    Unicode cannot be written, nor one with more repeats than RE2 takes, nor what two engines read in different ways.
    """
    if not isinstance(pattern, str):
        return None
    try:
        return _Writer(pattern).written()
    except _NotPortableError:
        return None


class _NotPortableError(Exception):
    """A pattern has what cannot be written for every engine."""


@dataclass(slots=True)
class _Part:
    """The size of a part of a pattern as RE2 compiles it.

    Attributes:
        states: How many states it has, at most.
        repeats: The product of the repeats that are in each other in it, at most.
    """

    states: int
    repeats: int = 1

    def add(self, part: _Part) -> None:
        """Add the part that follows."""
        self.states, self.repeats = self.states + part.states, max(self.repeats, part.repeats)
        if self.states > _MOST_STATES or self.repeats > _MOST_REPEATS:
            raise _NotPortableError


class _Writer:
    """One pattern while it is written anew, in one pass."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._written: list[str] = []
        self._groups = [_Part(0)]  # the pattern, and the groups that are open
        self._last: _Part | None = None  # what a repeat would repeat

    def written(self) -> str:
        """Return the pattern."""
        while self._at < len(self._text):
            token = self._next(_TOKEN)
            repeat, last = token["repeat"], self._last
            if repeat is not None:
                if self._last is None or self._text.startswith(("*", "+", "?"), self._at):
                    raise _NotPortableError
                least, most = _number(token["least"]), _number(token["most"])
                if most is not None and least is not None and most < least:
                    raise _NotPortableError
                times = max(least or 1, most or 1)
                limits = re.sub("(?<![0-9])0+(?=[0-9])", "", token[0])  # RE2 reads {01} as text
                self._written.append(limits)
                self._groups[-1].add(_Part((self._last.states + 1) * (times + 1), self._last.repeats * times))
                self._last = None
                continue
            if last is not None:
                self._groups[-1].add(last)
                self._last = None
            self._add(token)
        self._groups[-1].add(self._last or _Part(0))
        if len(self._groups) > 1:
            raise _NotPortableError
        return "".join(self._written)

    def _next(self, kinds: re.Pattern[str]) -> re.Match[str]:
        found = kinds.match(self._text, self._at)
        if found is None:  # the pattern ended before
            raise _NotPortableError
        self._at = found.end()
        return found

    def _add(self, token: re.Match[str]) -> None:
        text: str = token["plain"] or ""
        if token["to"] is not None or text == "\\":
            raise _NotPortableError
        if token["open"] is not None:
            self._open(token["open"])
        elif text == ")":
            self._close()
        elif (text and text in "^$|") or (token["other"] or " ") in _BORDERS:
            self._written.append(token[0])
            self._groups[-1].add(_Part(2))
        elif token["class"] is not None:
            self._append(*self._class(token["class"]))
        elif text == "." or _is_class(token):
            self._append(token[0], _STATES_OF_CLASS)
        else:
            self._append(_character(_code_of(token), _SYNTAX), 4)

    def _append(self, text: str, states: int) -> None:
        """Append what may be repeated."""
        self._written.append(text)
        self._last = _Part(states)

    def _open(self, text: str) -> None:
        if len(self._groups) > _DEEPEST or self._text.startswith("?", self._at):
            raise _NotPortableError
        self._written.append("(?:" if text == "(?:" else "(")
        self._groups.append(_Part(2))

    def _close(self) -> None:
        if len(self._groups) == 1:
            raise _NotPortableError
        self._written.append(")")
        self._last = self._groups.pop()

    def _class(self, opening: str) -> tuple[str, int]:
        """Return a class of characters and how many states it has; its opening bracket is read."""
        if self._text.startswith("]", self._at):
            self._at += 1
            if self._text.find("]", self._at) >= 0:  # all but ECMAScript read the first as a character of the class
                raise _NotPortableError
            return "[\\s\\S]" if opening == "[^" else "[^\\s\\S]", _STATES_OF_CLASS
        items: list[str] = []
        states = _Part(_STATES_OF_CLASS)
        while not self._text.startswith("]", self._at):
            text = self._item(is_first=not items)
            items.append(text)
            states.add(_Part(_STATES_OF_RANGE if not text.isascii() else _STATES_OF_CLASS if text[0] == "\\" else 1))
        self._at += 1
        return f"{opening}{''.join(items)}]", states.states

    def _item(self, *, is_first: bool) -> str:
        """Return a character, a range or a named class in a class."""
        if self._text.startswith(_AMBIGUOUS, self._at):
            raise _NotPortableError
        first = self._next(_ITEM)
        if first["plain"] == "-" and (is_first or self._text.startswith("]", self._at)):
            return "-"
        is_range = self._text.startswith("-", self._at) and not self._text.startswith("-]", self._at)
        if _is_class(first):
            self._at += is_range
            return first[0] + "\\-" * is_range
        code = _code_of(first, in_class=True)
        text = "^" if first["plain"] == "^" else _character(code, _CLASS_SYNTAX)
        if not is_range:
            return text
        self._at += 1
        if self._text.startswith(_AMBIGUOUS, self._at):
            raise _NotPortableError
        last = self._next(_ITEM)
        if _is_class(last):
            return f"{text}\\-{last[0]}"
        end = _code_of(last, in_class=True)
        if end < code:
            raise _NotPortableError
        return f"{text}-{_character(end, _CLASS_SYNTAX)}"


def _is_class(token: re.Match[str]) -> bool:
    return token["other"] is not None and token["other"] in _CLASSES


def _number(digits: str | None) -> int | None:
    """Return how often something is repeated; None where there is no limit."""
    if digits and len(digits) > len(str(_MOST_REPEATS)):
        raise _NotPortableError
    return int(digits) if digits else None


def _code_of(token: re.Match[str], *, in_class: bool = False) -> int:
    """Return the number of the character that a token is."""
    number = token["braced"] or token["four"] or token["eight"] or token["two"]
    other: str | None = token["other"]
    if number is not None:
        return int(number, 16)
    if token["high"] is not None:
        return 0x10000 + ((int(token["high"], 16) - 0xD800) << 10) + int(token["low"], 16) - 0xDC00
    if token["control"] is not None:
        return ord(token["control"]) % 32
    if token["zero"] is not None:
        return 0
    if other is None:
        return ord(token["plain"])
    if other in _SPACES:
        return 9 + _SPACES.index(other)
    if other == "b" and in_class:
        return 8
    if other.isascii() and other.isalnum():
        raise _NotPortableError
    return ord(other)


def _character(code: int, syntax: frozenset[str]) -> str:
    """Return a character as a pattern has it, where the characters of `syntax` mean something else."""
    if 0xD800 <= code < 0xE000 or code > 0x10FFFF:
        raise _NotPortableError
    if 9 <= code < 9 + len(_SPACES):
        return f"\\{_SPACES[code - 9]}"
    if code < 0x20 or 0x7F <= code < 0xA0:
        return f"\\x{code:02x}"
    return f"\\{chr(code)}" if chr(code) in syntax else chr(code)
