"""Checker of JSON values against a schema of another party, within limits of time; it fetches nothing.

Needs `jsonschema`, which the extra `mcp` brings; for the two MCP adapters, of which neither imports the other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, TypeAlias, cast

from jsonschema import Draft202012Validator, ValidationError, validators
from jsonschema.exceptions import SchemaError
from pydantic_core import SchemaError as PatternError
from pydantic_core import SchemaValidator
from pydantic_core.core_schema import str_schema
from referencing import Registry
from referencing.exceptions import Unresolvable

__all__ = ["Checker", "Misfit", "checker_of", "misfits"]

_Keyword: TypeAlias = Callable[[Any, Any, Any, Any], Iterable[ValidationError] | None]
_NOTHING: Any = Registry[Any]()  # of schemas that others may refer to
_WIDE = 300  # characters of a problem; it may quote what does not fit
_MOST = 20  # problems that are told
_STEPS, _DEEP, _SECONDS = 20_000, 60, 2.0  # of one check: a schema may double with each step, or lead into itself
_UNIQUE = 1_000  # items that are compared with one another


@dataclass(frozen=True, slots=True)
class Misfit:
    """One place where a value does not fit a schema.

    Attributes:
        place: The names and numbers that lead to it.
        path: The same as a JSON path.
        value: What is there.
    """

    place: tuple[str | int, ...]
    path: str
    text: str
    value: Any


class Checker:
    """Somebody else's schema, which may have been made to keep whoever reads it busy.

    A check that takes too long finds no more than it has found, since whoever made the schema looks after their values
    themselves.

    Raises:
        SchemaError: It is no schema.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        kind: Any = validators.validator_for(dict(schema), default=Draft202012Validator)
        kind.check_schema(schema)
        self._validator: Any = _bounded(kind)(_alike(dict(schema)), registry=_NOTHING)

    def iter_errors(self, value: Any) -> Iterable[Any]:
        """Return where a value does not fit, and why: the first few.

        Raises:
            Unresolvable: The schema refers to one that is not in it.
        """
        found: list[Any] = []
        token = _budget.set(_Budget())
        try:
            found.extend(islice(self._validator.iter_errors(value), _MOST))
        except _TooLongError:
            pass  # those that came before are there
        finally:
            _budget.reset(token)
        return found

    def misfits(self, value: Any) -> list[Misfit]:
        """Return where a value does not fit; nothing where the schema refers to one that is not in it."""
        try:
            errors = self.iter_errors(value)
        except Unresolvable:
            return []
        return [
            Misfit(tuple(error.absolute_path), error.json_path, error.message[:_WIDE], error.instance)
            for error in errors
        ]


def checker_of(schema: Mapping[str, Any]) -> Checker | None:
    """Return what checks a schema's values; None where it is none, and its maker has to look after them."""
    try:
        return Checker(schema)
    except (SchemaError, RecursionError):
        return None


def misfits(schema: Mapping[str, Any], value: Any) -> list[Misfit]:
    """Return where a value does not fit a schema, and why; nothing where the schema itself is broken."""
    checker = checker_of(schema)
    return [] if checker is None else checker.misfits(value)


# --- how long a check may take


class _TooLongError(Exception):
    """A check took too long."""


class _Budget:
    """What is left of the steps and the time of one check, and how deep in its schema it is."""

    def __init__(self) -> None:
        self._steps, self._end = _STEPS, time.monotonic() + _SECONDS
        self._deep = 0

    def enter(self) -> None:
        """Go one keyword deeper; the stack must not run out, since not all that is called here survives that."""
        self._steps -= 1
        if self._steps < 0 or self._deep >= _DEEP or time.monotonic() > self._end:
            raise _TooLongError
        self._deep += 1

    def leave(self) -> None:
        """Come back from a keyword."""
        self._deep -= 1


_budget: ContextVar[_Budget] = ContextVar("toolcrib_schema_check")


@lru_cache(maxsize=16)
def _bounded(kind: Any) -> Any:
    """Return a version of JSON Schema whose every keyword counts, and whose patterns cannot take for ever."""
    keywords: dict[str, _Keyword] = {name: _counted(check) for name, check in kind.VALIDATORS.items()}
    ours = {name: _counted(check) for name, check in _OURS.items() if name in keywords}
    make = cast("Any", validators).extend
    return make(kind, {**keywords, **ours})


def _counted(check: _Keyword) -> _Keyword:
    def counted(validator: Any, rule: Any, value: Any, schema: Any) -> Generator[ValidationError]:
        budget = _budget.get()
        budget.enter()
        try:
            yield from check(validator, rule, value, schema) or ()
        finally:
            budget.leave()

    return counted


def _alike(part: Any) -> Any:
    """Return a schema whose parts name no other version of JSON Schema, by which they would be read as that says."""
    if isinstance(part, list):
        return [_alike(one) for one in cast("list[Any]", part)]
    if not isinstance(part, dict):
        return part
    named = cast("dict[str, Any]", part).items()
    return {name: _alike(one) for name, one in named if not (name == "$schema" and isinstance(one, str))}


# --- keywords that would take for ever


@lru_cache(maxsize=256)
def _pattern(text: str) -> SchemaValidator | None:
    """Return what matches a pattern in a time that grows with the text alone; None for what is beyond that."""
    try:
        return SchemaValidator(str_schema(pattern=text, regex_engine="rust-regex"))
    except PatternError:
        return None


def _fits(pattern: str, text: str) -> bool | None:
    """Return whether a pattern is in a text; None where that cannot be told."""
    made = _pattern(pattern)
    return None if made is None else made.isinstance_python(text)


def _check_pattern(validator: Any, pattern: Any, value: Any, schema: Any) -> Generator[ValidationError]:
    if isinstance(value, str) and _fits(pattern, value) is False:
        yield ValidationError(f"{value!r:.200} does not match {pattern!r:.200}")


def _check_named_like(validator: Any, patterns: Any, value: Any, schema: Any) -> Generator[ValidationError]:
    for pattern, part in patterns.items() if isinstance(value, dict) else ():
        for name, held in cast("dict[str, Any]", value).items():
            if _fits(pattern, name):
                yield from validator.descend(held, part, path=name, schema_path=pattern)


def _check_others(validator: Any, rule: Any, value: Any, schema: Any) -> Generator[ValidationError]:
    if not isinstance(value, dict):
        return
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    held = cast("dict[str, Any]", value)
    others = [name for name in held if name not in known and all(_fits(one, name) is False for one in patterns)]
    if isinstance(rule, dict):
        for name in others:
            yield from validator.descend(held[name], rule, path=name)
    elif not rule and others:
        names = ", ".join(map(repr, sorted(others)[:_MOST]))
        yield ValidationError(
            f"Additional properties are not allowed ({names} {'was' if len(others) == 1 else 'were'} unexpected)"
        )


def _check_unique(validator: Any, rule: Any, value: Any, schema: Any) -> Iterable[ValidationError] | None:
    few = not isinstance(value, list) or len(cast("list[Any]", value)) <= _UNIQUE
    return Draft202012Validator.VALIDATORS["uniqueItems"](validator, rule, value, schema) if few else None


def _unchecked(validator: Any, rule: Any, value: Any, schema: Any) -> None:
    """Leave it to the schema's maker: which parts are looked at already takes as long as it likes to find out."""


_OURS: Mapping[str, _Keyword] = {
    "pattern": _check_pattern,
    "patternProperties": _check_named_like,
    "additionalProperties": _check_others,
    "uniqueItems": _check_unique,
    "unevaluatedProperties": _unchecked,
    "unevaluatedItems": _unchecked,
}
