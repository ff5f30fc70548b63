"""Conditions on rows, such as `price > 10 and city = 'Oslo'`."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from toolcrib.errors import ModelRetry

__all__ = ["Condition", "parse_where"]

_MOST_CHARS, _MOST_CONDITIONS = 500, 20
_QUOTED = r"'[^']*'|\"[^\"]*\""
_CONDITION = re.compile(
    rf"\s*(?P<column>{_QUOTED}|[^\s'\"=!<>]+)\s*(?P<op>==|!=|<=|>=|=|<|>|\bcontains\b)\s*"
    rf"(?P<value>{_QUOTED}|[^\s'\"]+)(?:\s+(?P<and>and)\b|\s*$)",
    re.IGNORECASE,
)
_FORMS = "conditions are like price >= 10 and city = 'Oslo' and name contains 'berg'"
_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "contains": lambda value, part: part.lower() in value.lower(),
}


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition.

    Attributes:
        text: The value as it was written, for a column of texts.
        value: What it means: a number, true, false, null, or the text.
    """

    column: str
    op: str
    text: str
    value: Any

    def holds(self, row: Any) -> bool:
        """Return whether a row meets it: an object by a member's name, a list by an item's number."""
        found = _column(row, self.column)
        if isinstance(found, str):
            return _COMPARE[self.op](found, self.text)
        if self.op == "contains":
            return isinstance(found, list) and (self.value in found or self.text in found)
        if self.op in ("=", "==", "!=") or (_is_number(found) and _is_number(self.value)):
            same_kind = isinstance(found, bool) == isinstance(self.value, bool)
            return _COMPARE[self.op](found if same_kind else None, self.value if same_kind else 0)
        return False


def parse_where(text: str) -> tuple[Condition, ...]:
    """Return the conditions, all of which have to hold.

    Raises:
        ModelRetry: They cannot be read.
    """
    if len(text) > _MOST_CHARS:
        raise ModelRetry(f"`where` has {len(text)} characters, and may have {_MOST_CHARS}")
    made, at, ended = list[Condition](), 0, not text
    while not ended:
        found = _CONDITION.match(text, at)
        if found is None or len(made) == _MOST_CONDITIONS:
            raise ModelRetry(f"`where` cannot be read from `{text[at : at + 40]}` on: {_FORMS}")
        written = found["value"]
        made.append(Condition(_bare(found["column"]), found["op"].lower(), _bare(written), _meaning(written)))
        at, ended = found.end(), not found["and"]
    return tuple(made)


def _column(row: Any, name: str) -> Any:
    if isinstance(row, dict):
        return cast("dict[str, Any]", row).get(name)
    if isinstance(row, list) and name.isdecimal() and int(name[:9]) < len(cast("list[Any]", row)):
        return cast("list[Any]", row)[int(name[:9])]
    return None


def _bare(text: str) -> str:
    return text[1:-1] if text[0] in "'\"" else text


def _meaning(written: str) -> Any:
    if written[0] in "'\"":
        return _bare(written)
    try:
        return json.loads(written.lower() if written.lower() in ("true", "false", "null") else written)
    except ValueError:
        return written


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
