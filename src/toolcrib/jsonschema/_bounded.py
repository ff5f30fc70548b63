"""Validators of JSON Schema within limits of steps and time: every keyword of theirs counts."""

from __future__ import annotations

import json
import marshal
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, TypeAlias, cast

from jsonschema import Draft202012Validator, FormatChecker, ValidationError, validators
from jsonschema.exceptions import SchemaError

from toolcrib.jsonschema._patterns import is_pattern, matches
from toolcrib.jsonschema._visitor import CHOICES, pointed_at, properties_of, ref_of

DEEPEST = 60
"""Keywords in each other that a check descends into: a schema may lead into itself."""

WIDEST = 300
"""Characters of a problem; it may quote what does not fit."""

_Keyword: TypeAlias = Callable[[Any, Any, Any, Any], Iterable[ValidationError] | None]
_SECONDS = 2.0
_MOST_BYTES = 20_000  # of a schema that is remembered
_WITHOUT_REFERENCES = 2  # marshal's version whose bytes depend on the value alone
_OF_ALL_VERSIONS = ("dependentRequired", "dependentSchemas")  # in place of `dependencies` of older ones


class TooLongError(Exception):
    """A check took too long."""


class Budget:
    """The steps and the time that one check has left, and its depth in the schema.

    Attributes:
        root: The schema in which references are looked up.
    """

    def __init__(self, steps: int, root: Any) -> None:
        self.root = root
        self._steps, self._end = steps, time.monotonic() + _SECONDS
        self._deep = 0

    def step(self) -> None:
        """Count one comparison."""
        self._steps -= 1
        if self._steps < 0 or time.monotonic() > self._end:
            raise TooLongError

    def enter(self) -> None:
        """Descend by one keyword; the stack must not run out, since not all that is called here survives that."""
        self.step()
        if self._deep >= DEEPEST:
            raise TooLongError
        self._deep += 1

    def leave(self) -> None:
        """Return from a keyword."""
        self._deep -= 1


budget_of_check: ContextVar[Budget] = ContextVar("toolcrib_schema_check")


@lru_cache(maxsize=16)
def bounded(kind: Any) -> Any:
    """Return a version of JSON Schema whose every keyword counts, and whose patterns cannot take for ever."""
    checks = {name: Draft202012Validator.VALIDATORS[name] for name in _OF_ALL_VERSIONS} | {**kind.VALIDATORS}
    keywords: dict[str, _Keyword] = {name: _counted(check) for name, check in checks.items()}
    ours = {name: _counted(check) for name, check in _OURS.items() if name in keywords}
    make = cast("Any", validators).extend
    return make(kind, {**keywords, **ours})


def require_valid(kind: Any, schema: Any) -> None:
    """Raise SchemaError for what is not a schema of a version; one that equals a valid one of before is not checked."""
    try:
        packed = marshal.dumps(schema, _WITHOUT_REFERENCES)  # tells 1 from True; takes no class that is not built in
    except ValueError:
        packed = b""
    if packed and len(packed) <= _MOST_BYTES:
        _check_packed(kind, packed)
    else:
        _check_schema(kind, schema)


@lru_cache(maxsize=256)
def _check_packed(kind: Any, packed: bytes) -> None:
    _check_schema(kind, marshal.loads(packed))


def _check_schema(kind: Any, schema: Any) -> None:
    for error in _schema_validator(kind).iter_errors(schema):
        raise SchemaError.create_from(error)


@lru_cache(maxsize=16)
def _schema_validator(kind: Any) -> Any:
    """Return a validator for the schemas of a version of JSON Schema; its time grows with their size alone."""
    make = cast("Any", validators).extend
    validator = make(kind, {"uniqueItems": _check_unique})
    return validator(of_one_version(kind.META_SCHEMA), format_checker=_FORMATS)


def _counted(check: _Keyword) -> _Keyword:
    def counted(validator: Any, rule: Any, value: Any, schema: Any) -> Generator[ValidationError]:
        budget = budget_of_check.get()
        budget.enter()
        try:
            yield from check(validator, rule, value, schema) or ()
        finally:
            budget.leave()

    return counted


def of_one_version(part: Any) -> Any:
    """Return a schema whose parts name no other version of JSON Schema, by which they would be read as that says."""
    if isinstance(part, list):
        return [of_one_version(value) for value in cast("list[Any]", part)]
    if not isinstance(part, dict):
        return part
    named = cast("dict[str, Any]", part).items()
    return {name: of_one_version(value) for name, value in named if not (name == "$schema" and isinstance(value, str))}


# --- keywords that would take for ever, or do not say where


_FORMATS = FormatChecker(formats=())
_FORMATS.checks("regex")(is_pattern)


def _fits(pattern: str, text: str) -> bool | None:
    """Return whether a pattern is in a text; None where that cannot be known."""
    budget_of_check.get().step()
    return matches(pattern, text)


def _check_pattern(validator: Any, pattern: Any, value: Any, schema: Any) -> Generator[ValidationError]:
    if isinstance(value, str) and _fits(pattern, value) is False:
        yield ValidationError(f"{value!r:.200} does not match {pattern!r:.200}")


def _check_named_like(validator: Any, patterns: Any, value: Any, schema: Any) -> Generator[ValidationError]:
    for pattern, part in patterns.items() if isinstance(value, dict) else ():
        for name, property_value in cast("dict[str, Any]", value).items():
            if _fits(pattern, name):
                yield from validator.descend(property_value, part, path=name, schema_path=pattern)


def _check_required(validator: Any, names: Any, value: Any, schema: Any) -> Generator[ValidationError]:
    for name in names if isinstance(value, dict) else ():
        if name not in value:
            yield ValidationError("missing, it is required", path=(name,))


def _check_others(validator: Any, rule: Any, value: Any, schema: Any) -> Generator[ValidationError]:
    if isinstance(value, dict):
        known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        yield from _misfits_of_others(validator, rule, cast("dict[str, Any]", value), known, patterns)


def _misfits_of_others(
    validator: Any, rule: Any, value: Mapping[str, Any], known: Mapping[str, Any], patterns: Iterable[str]
) -> Generator[ValidationError]:
    """Yield where the properties that are not known by name or pattern do not fit a rule."""
    for name, property_value in value.items():
        if name in known or any(_fits(pattern, name) is not False for pattern in patterns):
            continue
        if isinstance(rule, dict):
            yield from validator.descend(property_value, rule, path=name)
        elif not rule:
            keys = f"the keys are {', '.join(known)}" if known else "no keys are allowed"
            yield ValidationError(f"unknown key; {keys}"[:WIDEST], path=(name,))


def _check_unique(validator: Any, rule: Any, value: Any, schema: Any) -> Generator[ValidationError]:
    """Compare the items as text, as comparing each with each other one takes the square of their number."""
    if rule and isinstance(value, list):
        items = cast("list[Any]", value)
        if len({json.dumps(item, sort_keys=True) for item in items}) < len(items):
            yield ValidationError(f"{value!r:.200} has non-unique elements")


def _check_unevaluated_names(validator: Any, rule: Any, value: Any, schema: Any) -> Generator[ValidationError]:
    if not isinstance(value, dict):
        return
    known, patterns = dict[str, Any](), dict[str, Any]()
    for part in _applied(validator, _without("unevaluatedProperties", schema), value):
        if part is None or part.keys() & {"additionalProperties", "unevaluatedProperties"}:
            return
        known |= properties_of(part)
        patterns |= properties_of(part, "patternProperties")
    yield from _misfits_of_others(validator, rule, cast("dict[str, Any]", value), known, patterns)


def _check_unevaluated_items(validator: Any, rule: Any, value: Any, schema: Any) -> Generator[ValidationError]:
    if not isinstance(value, list):
        return
    items, first, contained = cast("list[Any]", value), 0, set[int]()
    for part in _applied(validator, _without("unevaluatedItems", schema), value):
        if part is None or part.keys() & {"additionalItems", "unevaluatedItems"}:
            return
        listed: Any = part.get("items", part.get("prefixItems", []))
        if not isinstance(listed, list):
            return
        first = max(first, len(cast("list[Any]", listed)))
        wanted = part.get("contains", False)
        contained |= {
            place for place, item in enumerate(items) if wanted is not False and _is_valid(validator, wanted, item)
        }
    for place, item in enumerate(items):
        if place < first or place in contained:
            continue
        if rule is False:
            yield ValidationError("must be left out, as the schema says nothing of this item", path=(place,))
        else:
            yield from validator.descend(item, rule, path=place)


def _without(keyword: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {key: part for key, part in schema.items() if key != keyword}


def _applied(validator: Any, schema: Any, value: Any) -> Iterator[Mapping[str, Any] | None]:
    """Yield a schema and those that it applies to the same value, at any depth; None for what cannot be looked up.

    Of a choice, these are the schemas that the value fits; all of them where it fits none.
    """
    if not isinstance(schema, Mapping):
        return
    budget, named = budget_of_check.get(), cast("Mapping[str, Any]", schema)
    budget.enter()
    try:
        yield None if named.keys() & {"$dynamicRef", "$recursiveRef"} else named
        for part in _beside(validator, named, value):
            if part is None:
                yield None
            yield from _applied(validator, part, value)
    finally:
        budget.leave()


def _beside(validator: Any, schema: Mapping[str, Any], value: Any) -> Iterator[Any]:
    """Yield the schemas that a schema applies to the same value; None for a reference that cannot be resolved."""
    yield from schema.get("allOf", ())
    for key in CHOICES:
        choices: list[Any] = schema.get(key, [])
        yield from [choice for choice in choices if _is_valid(validator, choice, value)] or choices
    if "if" in schema:
        holds = _is_valid(validator, schema["if"], value)
        yield from (schema["if"], schema.get("then", True)) if holds else (schema.get("else", True),)
    for name, part in properties_of(schema, "dependentSchemas").items():
        if isinstance(value, dict) and name in value:
            yield part
    ref = ref_of(schema)
    if ref is not None:
        yield pointed_at(budget_of_check.get().root, ref[1:]) if ref == "#" or ref.startswith("#/") else None


def _is_valid(validator: Any, schema: Any, value: Any) -> bool:
    return next(validator.descend(value, schema), None) is None


_OURS: Mapping[str, _Keyword] = {
    "pattern": _check_pattern,
    "patternProperties": _check_named_like,
    "additionalProperties": _check_others,
    "required": _check_required,
    "uniqueItems": _check_unique,
    "unevaluatedProperties": _check_unevaluated_names,
    "unevaluatedItems": _check_unevaluated_items,
}
