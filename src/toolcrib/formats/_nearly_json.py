"""Arguments that are nearly JSON: single quotes, trailing commas, and Python's words for true, false and null.

Each is changed where it stands outside of a text, and the result has to be one JSON object. Nothing is added, so
that a text which was cut is never completed, and nothing is guessed: a quote too many, or a key that is there twice,
leaves the arguments unchanged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, cast

from toolcrib._json_writer import unique_keys
from toolcrib.formats._canonical_json import raw_arguments

_PARTS = re.compile(
    r"""
    "(?:[^"\\]|\\.)*"               # a text as JSON has it
    | '(?:[^'\\]|\\.)*'             # a text in single quotes
    | \b(?:True|False|None)\b
    | ,(?=\s*[}\]])                 # a trailing comma
    | [{\[]\s*,                     # a comma after nothing
    | ["']                          # a quote that nothing closes
    """,
    re.VERBOSE | re.DOTALL,
)
_WORDS = {"True": "true", "False": "false", "None": "null", ",": ""}
_QUOTED = re.compile(r'\\.|"', re.DOTALL)
_REQUOTED = {"\\'": "'", '"': '\\"'}
_KEYS = ("arguments", "input")


def repaired_arguments(text: str) -> str | None:
    """Return the JSON object that a text nearly is, as text; None where it is JSON, or cannot be read so."""
    if _is_object(text):
        return None
    try:
        repaired = _PARTS.sub(_repaired_part, text)
    except ValueError:
        return None
    return repaired if _is_object(repaired, unique=True) else None


def with_arguments(value: Any, repaired: Mapping[str, str]) -> Any:
    """Return an item of a reply with repaired texts in the place of the arguments that came; free texts stay."""
    if isinstance(value, list):
        return [with_arguments(part, repaired) for part in cast("list[Any]", value)]
    if not isinstance(value, Mapping):
        return value
    fields, replaced = cast("Mapping[str, Any]", value), dict[str, Any]()
    if str(fields.get("type")).startswith("custom"):
        return fields
    for key, part in fields.items():
        text = repaired.get(str(raw_arguments(part))) if key in _KEYS and isinstance(part, str) else None
        replaced[key] = with_arguments(part, repaired) if text is None else text
    return replaced


def _repaired_part(found: re.Match[str]) -> str:
    part = found[0]
    if part[0] in "{[" or part in ('"', "'"):
        raise ValueError(part)
    if part[0] == "'":
        return f'"{_QUOTED.sub(lambda quote: _REQUOTED.get(quote[0], quote[0]), part[1:-1])}"'
    return _WORDS.get(part, part)


def _is_object(text: str, *, unique: bool = False) -> bool:
    try:
        read: object = json.loads(text, object_pairs_hook=unique_keys if unique else None, parse_constant=_refused)
    except (ValueError, RecursionError):
        return False
    return isinstance(read, dict)


def _refused(word: str) -> None:
    raise ValueError(word)
