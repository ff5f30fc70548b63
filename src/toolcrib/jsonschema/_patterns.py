"""Patterns of JSON schemas, and matching in a time that grows with the text alone."""

from __future__ import annotations

import re
from functools import lru_cache
from warnings import catch_warnings, simplefilter

from pydantic_core import SchemaError as PatternError
from pydantic_core import SchemaValidator
from pydantic_core.core_schema import str_schema

from toolcrib.jsonschema._portable import portable

__all__ = ["is_pattern", "pattern_of"]

# What ECMAScript takes and Python does not, each with something that both take in its place:
_UNICODE_CLASS = re.compile(r"\\[pP](?:\{[^{}]*\}|.)|\\c[a-zA-Z]")
_NAMED_CLASS_AND_HYPHEN = re.compile(r"(\\[dDwWsS])-")
_NO_CHARACTER = re.compile(r"\[\^?\]")
_NAME = re.compile(r"\(\?<(?![=!])")
_LETTERS, _NOT_ASCII = "0-9A-Za-z_", r"\x{80}-\x{10ffff}"  # inside of a class
_NAMED_BEFORE = re.compile(r"\\k<(\w+)>")


@lru_cache(maxsize=256)
def pattern_of(text: str) -> tuple[tuple[SchemaValidator, bool], ...] | None:
    """Return what a text has to match, and what it must not, in a time that grows with the text alone.

    A pattern that looks ahead from its beginning, as those of passwords do, is several patterns. None is returned for
    one that is beyond that: it looks around elsewhere, or refers back.
    """
    found, rest = _looks_ahead(text)
    try:
        return tuple((_validator(one, wanted), wanted) for one, wanted in [*found, (rest, True)])
    except PatternError:
        return None


def _validator(pattern: str, wanted: bool) -> SchemaValidator:
    """Return what matches a pattern as ECMAScript reads it, or, where that cannot be written, as Rust does.

    Unicode's letters, many times in one pattern, are too large to be compiled. Where a text has to match, any
    character beyond ASCII counts as a letter then: what fits is taken, and what is not in ASCII's letters is refused.
    """
    written = portable(pattern)
    text = pattern if written is None else written
    try:
        return _compiled(text)
    except PatternError:
        coarse = _with_coarse_letters(text)
        if not wanted or coarse == text:
            raise
        return _compiled(coarse)


def _compiled(pattern: str) -> SchemaValidator:
    return SchemaValidator(str_schema(pattern=pattern, regex_engine="rust-regex"))


def _with_coarse_letters(pattern: str) -> str:
    parts, at, around = list[str](), 0, ""
    while at < len(pattern):
        here = pattern[at : at + (2 if pattern[at] == "\\" else 1)]
        at += len(here)
        if around and here == "]":
            around = ""
        elif not around and here == "[":
            around = "[^" if pattern.startswith("^", at) else "["
        elif here == r"\w":
            here = {"": f"[{_LETTERS}{_NOT_ASCII}]", "[": _LETTERS + _NOT_ASCII, "[^": _LETTERS}[around]
        parts.append(here)
    return "".join(parts)


def _looks_ahead(text: str) -> tuple[list[tuple[str, bool]], str]:
    """Return what a pattern looks ahead for from its beginning, with whether it has to be there; and its rest."""
    found: list[tuple[str, bool]] = []
    rest = text.removeprefix("^")
    while text.startswith("^") and rest.startswith(("(?=", "(?!")) and "|" not in rest[_end_of_group(rest) :]:
        end = _end_of_group(rest)
        found.append((f"^(?:{rest[3 : end - 1]})", rest[2] == "="))
        rest = rest[end:]
    return found, f"^{rest}" if found else text


def _end_of_group(text: str) -> int:
    """Return where the group ends that a text begins with."""
    depth, in_class, at = 0, False, 0
    while at < len(text):
        mark = text[at]
        at += 2 if mark == "\\" else 1
        if in_class:
            in_class = mark != "]"
        elif mark == "[":
            in_class = True
            at += 1 if text.startswith("^", at) else 0
            at += 1 if text.startswith("]", at) else 0
        elif mark in "()":
            depth += 1 if mark == "(" else -1
            if depth == 0:
                return at
    return at


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
