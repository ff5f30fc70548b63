"""Conditions on rows, such as `price > 10 and city = 'Oslo'`."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, cast

from toolcrib.errors import ModelRetry
from toolcrib.results._shape import head_of

__all__ = ["Condition", "columns_of", "parse_where", "require_columns", "require_kinds"]

_MOST_CHARS, _MOST_CONDITIONS = 500, 20
_MOST_COLUMNS = 1_000  # of a row that is a list
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
        found = columns_of(row).get(self.column)
        if isinstance(found, str):
            return _COMPARE[self.op](found, self.text)
        if self.op == "contains":
            return isinstance(found, list) and (self.value in found or self.text in found)
        if self.op in ("=", "==", "!=") or (_is_number(found) and _is_number(self.value)):
            same_kind = isinstance(found, bool) == isinstance(self.value, bool)
            return _COMPARE[self.op](found if same_kind else None, self.value if same_kind else 0)
        return False

    def fits(self, found: Any) -> bool:
        """Return whether a value of its column is of a kind that it can hold for."""
        if isinstance(found, str) or found is None or self.value is None:
            return True
        if self.op == "contains":
            return isinstance(found, list)
        return type(found) is type(self.value) or (_is_number(found) and _is_number(self.value))


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


def require_columns(rows: Iterable[Any], columns: Iterable[str]) -> None:
    """Refuse columns that no row has; where there are no rows nothing is known of them.

    Raises:
        ModelRetry: It names a column, the one that was meant, and those that there are.
    """
    missing, known, count = dict.fromkeys(columns), dict[str, str](), 0
    for row in rows if missing else ():
        own, count = columns_of(row), count + 1
        missing = {name: None for name in missing if name not in own}
        if not missing:
            return
        if len(known) < _MOST_COLUMNS:
            known |= {name.lower(): name for name in own}
    if not count or not missing:
        return
    if not known:
        raise ModelRetry("`where` and `columns` are for rows that are objects, and these are none")
    name = next(iter(missing))
    near = get_close_matches(name.lower(), known, n=1)
    hint = f"; did you mean `{known[near[0]]}`?" if near else "."
    raise ModelRetry(f"no row has a column `{name}`{hint} The columns are {head_of(', '.join(known.values()), 1_000)}")


def require_kinds(rows: Iterable[Any], conditions: Sequence[Condition]) -> None:
    """Refuse a condition whose value is of another kind than each value of its column, and so holds for none.

    Raises:
        ModelRetry: It names the condition, and a value that the column has.
    """
    unlike = dict[int, Any]()
    unknown = [*range(len(conditions))]
    for row in rows if unknown else ():
        own = columns_of(row)
        for at in [at for at in unknown if conditions[at].column in own]:
            unlike[at] = own[conditions[at].column]
            if conditions[at].fits(unlike[at]):
                unknown.remove(at)
        if not unknown:
            return
    for at in unknown:
        if at in unlike:
            one = conditions[at]
            asked, like = (json.dumps(value, ensure_ascii=False) for value in (one.value, unlike[at]))
            raise ModelRetry(
                f"`{one.column} {one.op} {asked}` holds for no row: a value of that column is like {like:.80}, which "
                "is of another kind"
            )


def columns_of(row: Any) -> Mapping[str, Any]:
    """Return the values of a row by their columns: an object's members, a list's items by their numbers."""
    if isinstance(row, dict):
        return cast("dict[str, Any]", row)
    if isinstance(row, list):
        return {f"{number}": value for number, value in enumerate(cast("list[Any]", row)[:_MOST_COLUMNS])}
    return {}


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
