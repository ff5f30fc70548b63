"""Patterns of JSON schemas, and matching in a time that grows with the text alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from warnings import catch_warnings, simplefilter

from pydantic_core import SchemaError as PatternError
from pydantic_core import SchemaValidator
from pydantic_core.core_schema import str_schema

from toolcrib.jsonschema._portable import portable

# What ECMAScript takes and Python does not, each with something that both take in its place:
_UNICODE_CLASS = re.compile(r"\\[pP](?:\{[^{}]*\}|.)|\\c[a-zA-Z]")
_NAMED_CLASS_AND_HYPHEN = re.compile(r"(\\[dDwWsS])-")
_NO_CHARACTER = re.compile(r"\[\^?\]")
_NAME = re.compile(r"\(\?<(?![=!])")
_SPACES = r"\t-\r\p{Zs}\u{2028}\u{2029}\u{feff}"
_CLASSES = {  # as ECMAScript has them; for Rust, they are of all languages
    r"\d": "[0-9]", r"\D": "[^0-9]", r"\w": "[0-9A-Za-z_]", r"\W": "[^0-9A-Za-z_]",
    r"\s": f"[{_SPACES}]", r"\S": f"[^{_SPACES}]",
}  # fmt: skip
_NAMED_BEFORE = re.compile(r"\\k<(\w+)>")


@lru_cache(maxsize=256)
def pattern_of(text: str) -> tuple[tuple[SchemaValidator, bool], ...] | None:
    """Return the patterns that a text must match and must not match; the time of a match grows with the text alone.

    A pattern that looks ahead from its beginning, as those of passwords do, is several patterns. None is returned for
    one that is beyond that: it looks around elsewhere, or refers back.
    """
    found, rest = _looks_ahead(text)
    try:
        return tuple((_validator(pattern), wanted) for pattern, wanted in [*found, (rest, True)])
    except PatternError:
        return None


def matches(pattern: str, text: str) -> bool | None:
    """Return whether a pattern is in a text; None where that cannot be known."""
    parts = pattern_of(pattern)
    return None if parts is None else all(part.isinstance_python(text) is wanted for part, wanted in parts)


def _validator(pattern: str) -> SchemaValidator:
    """Return a validator of a pattern as ECMAScript reads it, or of the nearest that can be written."""
    written = portable(pattern)
    text = _with_classes(pattern if written is None else written)
    return SchemaValidator(str_schema(pattern=text, regex_engine="rust-regex"))


def _with_classes(pattern: str) -> str:
    """Return a pattern for Rust whose named classes, and whose borders of words, are those of ECMAScript."""
    parts, at, in_class = list[str](), 0, False
    while at < len(pattern):
        here = pattern[at : at + (2 if pattern[at] == "\\" else 1)]
        at += len(here)
        in_class = here != "]" if in_class else here == "["
        is_border = not in_class and here in (r"\b", r"\B")
        parts.append(f"(?-u:{here})" if is_border else _CLASSES.get(here, here))
    return "".join(parts)


def _looks_ahead(text: str) -> tuple[list[tuple[str, bool]], str]:
    """Return the look-aheads at the start of a pattern, each with whether it must match, and the rest."""
    found: list[tuple[str, bool]] = []
    rest = text.removeprefix("^")
    while text.startswith("^") and rest.startswith(("(?=", "(?!")) and not _chooses(rest):
        end = next((at + 1 for at, mark, depth in _marks(rest) if mark == ")" and depth == 0), len(rest))
        found.append((f"^(?:{rest[3 : end - 1]})", rest[2] == "="))
        rest = rest[end:]
    return found, f"^{rest}" if found else text


def _chooses(text: str) -> bool:
    return any(mark == "|" and depth == 0 for _, mark, depth in _marks(text))


def _marks(text: str) -> Iterator[tuple[int, str, int]]:
    """Yield the brackets and bars of a pattern, each with its place and the groups that are open after it."""
    depth, in_class, at = 0, False, 0
    while at < len(text):
        place, mark = at, text[at]
        at += 2 if mark == "\\" else 1
        if in_class:
            in_class = mark != "]"
        elif mark == "[":
            in_class = True
            at += 1 if text.startswith("^", at) else 0
            at += 1 if text.startswith("]", at) else 0
        elif mark in "()|":
            depth += {"(": 1, ")": -1}.get(mark, 0)
            yield place, mark, depth


def is_pattern(value: object) -> bool:
    """Return whether a text is a pattern: of this checker, of ECMAScript, or of Python."""
    if not isinstance(value, str) or pattern_of(value) is not None:
        return True
    try:
        with catch_warnings():
            simplefilter("ignore")
            text = _NAMED_CLASS_AND_HYPHEN.sub(r"\1\\-", _UNICODE_CLASS.sub(r"\\w", value))
            re.compile(_NAMED_BEFORE.sub(r"(?P=\1)", _NAME.sub("(?P<", _NO_CHARACTER.sub(".", text))))
    except (re.error, RecursionError, OverflowError):
        return False
    return True
