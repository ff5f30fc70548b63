"""Checker of JSON values against a JSON schema of another party, within limits of size and time; it fetches nothing.

Needs `jsonschema`, which the extras `schema`, `mcp` and `console` bring. `jsonschema-rs` (0.61) is faster and has no
limit of time or steps: a choice that doubles over 30 levels held it for 21 s, in which nothing else runs, and a value
that is nested 100,000 deep ended the process.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice
from math import isfinite
from typing import Any, cast

from pydantic import ValidationError as InvalidInput
from pydantic_core import InitErrorDetails, PydanticCustomError

from toolcrib._extras import Extra

with Extra("checking a value against a JSON schema", "schema", ("jsonschema", "referencing")):
    from jsonschema import Draft202012Validator, validators
    from jsonschema.exceptions import SchemaError
    from referencing import Registry
    from referencing.exceptions import Unresolvable

from toolcrib.errors import FieldProblem, InvalidSchema
from toolcrib.jsonschema._bounded import (
    DEEPEST,
    WIDEST,
    Budget,
    TooLongError,
    bounded,
    budget_of_check,
    of_one_version,
    require_valid,
)
from toolcrib.jsonschema._patterns import matches
from toolcrib.jsonschema._references import dangling
from toolcrib.jsonschema._repair import satisfiable
from toolcrib.jsonschema._visitor import kinds_of, properties_of, values_of
from toolcrib.jsonschema._walk import SchemaWalk, check_nesting
from toolcrib.jsonschema._well_formed import well_formed
from toolcrib.jsonschema._words import brief, path_of

__all__ = [
    "SMALL",
    "Checker",
    "Misfit",
    "checker_of",
    "checks_of",
    "misfits",
    "repaired_checker",
    "require_schema",
]

SMALL = 400
"""Parts of a schema, as `check_size` counts them, whose checker takes no longer than an event loop may stand still."""

_log = logging.getLogger("toolcrib.tools")
_NOTHING: Any = Registry[Any]()  # of schemas that others may refer to
_MOST = 20  # problems that are named
_STEPS = 20_000  # of one check: a schema may double with each step, or lead into itself
_LARGEST = 2**63  # below which pydantic, which checks the arguments of Python functions, reads a float as an integer
_STEPS_ON_LOOP = 500  # of a check, before it goes on in a worker thread
_UNCHECKED = (
    "takes too long to be checked against the schema; send fewer values, or values that are nested less",
    "cannot be checked: the schema refers to one that is not in it",
)

_UNFINISHED = ("that takes too long", "the schema refers to one that is not in it")


@dataclass(frozen=True, slots=True)
class Misfit:
    """One place where a value does not fit a schema.

    Attributes:
        place: The names and numbers that lead to it.
        keyword: The keyword of the schema that it does not fit: `type`, `required`, `minimum`.
        text: The rule that it breaks, as the end of a sentence about the place: `must be a string`.
        value: The value there; of what is missing or unknown, the object around it.
    """

    place: tuple[str | int, ...]
    keyword: str
    text: str
    value: Any

    def __str__(self) -> str:
        found = "" if self.keyword in _PYDANTIC_KINDS else f"; got {brief(self.value)}"
        return f"{path_of(self.place) or 'the whole'}: {self.text}{found}"


class Checker:
    """A schema of another party, which may have been made to keep its readers busy.

    A check that takes too long ends with what it has found until then; where that is nothing, the log says so.

    Args:
        schema: The schema.
        what: The name of the value, for the log.

    Raises:
        SchemaError: It is not a schema.
    """

    def __init__(self, schema: Mapping[str, Any], what: str = "a value") -> None:
        self._noun = what
        kind: Any = validators.validator_for(dict(schema), default=Draft202012Validator)
        require_valid(kind, schema)
        self._schema = schema
        self._validator: Any = bounded(kind)(of_one_version(dict(schema)), registry=_NOTHING)

    def iter_errors(self, value: Any) -> Sequence[Any]:
        """Return where a value does not fit, and why: the first few.

        Raises:
            Unresolvable: The schema refers to one that is not in it.
        """
        return self._resolved(*self._errors(value))

    async def find_errors(self, value: Any) -> Sequence[Any]:
        """Return the errors as `iter_errors` does; a check of more than a few milliseconds runs in a worker thread.

        Raises:
            Unresolvable: As `iter_errors`.
        """
        found, unfinished = self._errors(value, _STEPS_ON_LOOP)
        if isinstance(unfinished, TooLongError):
            found, unfinished = await asyncio.to_thread(self._errors, value)
        return self._resolved(found, unfinished)

    def misfits(self, value: Any, *, whole: bool = False) -> list[Misfit]:
        """Return where a value does not fit.

        Args:
            whole: Whether a value that could not be checked to its end, as the check took too long or the schema refers
                to one that is not in it, does not fit. Otherwise the party that made the schema looks after that.
        """
        errors, unfinished = self._errors(value)
        found = [misfit for error in errors for misfit in _misfits_of(error)][:_MOST]
        if whole and unfinished is not None and not found:
            return [Misfit((), "unchecked", _UNCHECKED[isinstance(unfinished, Unresolvable)], value)]
        self._log_unfinished(found, unfinished)
        return found

    def with_integers(self, value: Any) -> Any:
        """Return a value that fits, with integers for the floats, as `2.0`, that are where the schema has integers.

        Raises:
            LostDigitsError: A float is too large to be read as an integer.
        """
        return _Integers(self._schema).of(value, self._schema, ()) if _has_whole_float(value) else value

    def _resolved(self, found: list[Any], unfinished: Exception | None) -> list[Any]:
        """Return the errors of a check; raise what ended it where the schema refers to one that is not in it."""
        if isinstance(unfinished, Unresolvable):
            raise unfinished
        self._log_unfinished(found, unfinished)
        return found

    def _log_unfinished(self, found: list[Any], unfinished: Exception | None) -> None:
        if unfinished is not None and not found:
            why = _UNFINISHED[isinstance(unfinished, Unresolvable)]
            _log.warning("%s: not all of it is checked against its schema, as %s", self._noun, why)

    def _errors(self, value: Any, steps: int = _STEPS) -> tuple[list[Any], Exception | None]:
        """Return the first few errors, and what ended the check before its end."""
        found: list[Any] = []
        token = budget_of_check.set(Budget(steps, self._schema))
        try:
            found.extend(islice(self._validator.iter_errors(value), _MOST))
        except (TooLongError, Unresolvable) as unfinished:
            return found, unfinished
        finally:
            budget_of_check.reset(token)
        return found, None


def checker_of(schema: Mapping[str, Any]) -> Checker | None:
    """Return the checker of a schema; None where it is not a valid schema, which is reported elsewhere."""
    try:
        return Checker(schema)
    except (SchemaError, RecursionError):
        return None


def require_schema(tool: str, schema: object, where: str = "") -> None:
    """Raise InvalidSchema for what is not a JSON schema, with the place that is wrong.

    Args:
        tool: The tool that is to be made of it.
        schema: The object that was given as one.
        where: The beginning of the place.

    Raises:
        SchemaTooLarge: It is nested too deep to be read.
    """
    check_nesting(tool, schema)
    problem = FieldProblem("", f"it is {schema!r:.80}; give a dict")
    if isinstance(schema, Mapping):
        named = cast("Mapping[str, Any]", schema)
        problem = _no_json(named) or _no_schema(named) or _leads_nowhere(named)
    if problem is not None:
        place = ".".join(filter(None, (where, problem.field))) or "the schema"
        raise InvalidSchema(tool, FieldProblem(place, problem.problem))


def _no_json(schema: object) -> FieldProblem | None:
    """Return the first place in a schema that is not JSON, or None."""
    waiting: list[tuple[tuple[str | int, ...], object]] = [((), schema)]
    visited = set[int]()
    while waiting:
        place, part = waiting.pop()
        if problem := _no_json_value(part):
            return FieldProblem(path_of(place), problem)
        if isinstance(part, Mapping | list) and id(cast("object", part)) not in visited:
            visited.add(id(cast("object", part)))
            is_named = isinstance(part, Mapping)
            items: Any = cast("Mapping[Any, Any]", part).items() if is_named else enumerate(cast("list[Any]", part))
            waiting += [((*place, key), inner) for key, inner in items]
    return None


def _no_json_value(part: object) -> str:
    """Return why one value is not JSON, what is in it left out; empty where it is."""
    if isinstance(part, Mapping):
        keys = cast("Mapping[object, object]", part)
        bad = [key for key in keys if not (isinstance(key, str) and _is_unicode(key))]
        return f"the key {bad[0]!r} is not JSON; write it as a text" if bad else ""
    if isinstance(part, str):
        return "" if _is_unicode(part) else "its text has half a character in it; write it again"
    if isinstance(part, float):
        return "" if isfinite(part) else f"{part} is not JSON; leave it out, or give a number"
    is_known = part is None or isinstance(part, int | list)
    return "" if is_known else f"{part!r:.80} is not JSON; give a dict, a list, a text or a number"


def _is_unicode(text: str) -> bool:
    return text.isascii() or text.encode("utf-8", "replace").decode() == text


def _no_schema(schema: Mapping[str, Any]) -> FieldProblem | None:
    """Return the place where JSON is not a schema, and why."""
    if not isinstance(schema.get("$schema", ""), str):
        return FieldProblem("$schema", "it names a version of JSON Schema as a text; leave it out")
    try:
        Checker(schema)
    except SchemaError as error:
        return FieldProblem(
            path_of(tuple(error.absolute_path)), f"{error.message:.{WIDEST}}; see https://json-schema.org"
        )
    except RecursionError:
        return FieldProblem("", "it is nested too deep; give it fewer levels")
    return None


def _leads_nowhere(schema: Mapping[str, Any]) -> FieldProblem | None:
    """Return the place of a reference to what is not in the schema."""
    lost = dangling(schema)
    if lost is None:
        return None
    place, ref = lost
    return FieldProblem(path_of((*place, "$ref")), f"{ref!r:.200} is not in the schema; put it into `$defs`")


def misfits(schema: Mapping[str, Any], value: Any, what: str = "an answer") -> list[Misfit]:
    """Return where a value does not fit a schema, and why, as `repaired_checker` checks it.

    Args:
        schema: The schema.
        value: The value.
        what: The name of the value, for the log.
    """
    checker = repaired_checker(what, schema, log_wrong=True)
    return [] if checker is None else checker.misfits(value)


def checks_of(
    tool: str, schema: Mapping[str, Any], *, whole: bool = False, prepared: bool = False
) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return a check that raises pydantic's ValidationError for arguments that do not fit a schema.

    It returns the arguments `with_integers`.

    Args:
        whole: Whether arguments that could not be checked to their end do not fit; see `Checker.misfits`.
        prepared: Whether the schema is read now; else when the first arguments are checked.
    """
    cached = cache(partial(repaired_checker, f"the arguments of `{tool}`", schema))
    if prepared:
        cached()

    def check(arguments: dict[str, Any]) -> dict[str, Any]:
        checker = cached()
        found = [] if checker is None else checker.misfits(arguments, whole=whole)
        if found:
            raise InvalidInput.from_exception_data(tool, [_detail(misfit) for misfit in found])
        try:
            return arguments if checker is None else checker.with_integers(arguments)
        except LostDigitsError as error:
            wrong = error.misfit
        raise InvalidInput.from_exception_data(tool, [_detail(wrong)])

    return check


def repaired_checker(what: str, schema: Mapping[str, Any], *, log_wrong: bool = False) -> Checker | None:
    """Return a checker of another party's schema as it is shown to models, its faults repaired.

    Where there is no such check, it is None, and the log says so.

    Args:
        what: The name of the value, for the log: `the arguments of "pay"`.
        schema: The schema.
        log_wrong: Whether the log says which keywords are wrong, and left out.
    """
    try:
        repaired = well_formed(what, schema)
        checker = Checker(satisfiable(what, repaired.schema), what)
    except (AttributeError, TypeError, ValueError, RecursionError, SchemaError) as error:
        problem = str(getattr(error, "message", error))  # it is not a schema, or too large to be repaired
    else:
        if log_wrong and repaired.wrong:
            text = "%s: the schema is wrong at %s, which is left out and not checked"
            _log.warning(text, what, repaired.wrong_text)
        return checker
    checker = checker_of(schema)
    if checker is None:
        _log.error("%s: not checked, as the schema cannot be read: %.300r", what, problem)
    return checker


_PYDANTIC_KINDS = {  # as pydantic calls them
    **dict.fromkeys(("additionalProperties", "unevaluatedProperties"), "extra_forbidden"),
    "required": "missing",
}


def _detail(misfit: Misfit) -> InitErrorDetails:
    other = PydanticCustomError("json_schema", "{problem}", {"problem": misfit.text})
    return InitErrorDetails(type=_PYDANTIC_KINDS.get(misfit.keyword, other), loc=misfit.place, input=misfit.value)


# --- integers that were sent as floats


def _is_whole_float(value: object) -> bool:
    return type(value) is float and value.is_integer()


def _has_whole_float(value: object) -> bool:
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if _is_whole_float(part):
            return True
        if isinstance(part, dict):
            waiting += cast("dict[str, object]", part).values()
        elif isinstance(part, list):
            waiting += cast("list[object]", part)
    return False


_OTHERS = ("additionalProperties", "unevaluatedProperties")


class LostDigitsError(ValueError):
    """A float stands for an integer, and has not all of its digits.

    Attributes:
        misfit: Where it is.
    """

    def __init__(self, misfit: Misfit) -> None:
        super().__init__(str(misfit))
        self.misfit = misfit


class _Integers:
    """A walk over a value and its schema; what the schema has of a value is looked up once."""

    def __init__(self, schema: Any) -> None:
        self._walk = SchemaWalk(schema)
        self._known: dict[int, list[dict[str, Any]]] = {}

    def of(self, value: Any, schema: Any, place: tuple[int | str, ...]) -> Any:
        """Return one part of a value; it stays as it is where the schema says nothing, or too deep to be checked."""
        if not schema or len(place) > DEEPEST:
            return value
        choices = self._choices(schema)
        if isinstance(value, list):
            items = enumerate(cast("list[Any]", value))
            return [self.of(item, self._item(choices, at), (*place, at)) for at, item in items]
        if isinstance(value, dict):
            named = cast("dict[str, Any]", value).items()
            return {name: self.of(part, self._named(choices, name), (*place, name)) for name, part in named}
        return self._integer(value, choices, place) if _is_whole_float(value) else value

    def _integer(self, value: float, choices: Sequence[Mapping[str, Any]], place: tuple[int | str, ...]) -> float:
        values = [value_of_choice for choice in choices for value_of_choice in values_of(choice) or ()]
        if any(type(value_of_choice) is int and value_of_choice == value for value_of_choice in values):
            return int(value)
        kinds = {kind for choice in choices for kind in kinds_of(choice)}
        if "integer" not in kinds or "number" in kinds:
            return value
        if abs(value) >= _LARGEST:
            raise LostDigitsError(Misfit(place, "type", "must be an integer, with all of its digits", value))
        return int(value)

    def _choices(self, schema: Any) -> list[dict[str, Any]]:
        if id(schema) not in self._known:
            self._known[id(schema)] = list(self._walk.choices(schema))
        return self._known[id(schema)]

    def _named(self, choices: Sequence[Mapping[str, Any]], name: str) -> Any:
        tables = (properties_of(choice) for choice in choices)
        schema = next((table[name] for table in tables if table.get(name) not in (None, True, {})), None)
        patterns = (item for choice in choices for item in properties_of(choice, "patternProperties").items())
        schema = schema or next((part for pattern, part in patterns if matches(pattern, name)), None)
        others = (choice[key] for key in _OTHERS for choice in choices if key in choice)
        return schema or next(others, None)

    def _item(self, choices: Sequence[Mapping[str, Any]], place: int) -> Any:
        for choice in choices:
            items: Any = choice.get("items")
            first = cast("list[Any]", items if isinstance(items, list) else choice.get("prefixItems") or [])
            if place < len(first):
                return first[place]
            if items is not None:
                return choice.get("additionalItems") if isinstance(items, list) else items
        return None


# --- what is said of a misfit


_TYPES = {
    "array": "an array",
    "boolean": "true or false",
    "integer": "an integer",
    "number": "a number",
    "object": "an object",
    "string": "a string",
}
_WORDS = {
    "exclusiveMaximum": "must be less than {}",
    "exclusiveMinimum": "must be more than {}",
    "maxItems": "must have at most {} items",
    "maxLength": "must have at most {} characters",
    "maxProperties": "must have at most {} keys",
    "maximum": "must be at most {}",
    "minItems": "must have at least {} items",
    "minLength": "must have at least {} characters",
    "minProperties": "must have at least {} keys",
    "minimum": "must be at least {}",
    "multipleOf": "must be a multiple of {}",
    "pattern": "must match the pattern {}",
}


_NO_VALUE = "must be left out, as the schema allows it no value"


def _misfits_of(error: Any) -> list[Misfit]:
    choices: dict[Any, list[Any]] = {}
    for inner in error.context if error.validator in ("anyOf", "oneOf") else ():
        choices.setdefault(next(iter(inner.schema_path), None), []).append(inner)  # `false` has no path
    tried = [[misfit for inner in inside for misfit in _misfits_of(inner)] for inside in choices.values()]
    place = tuple(error.absolute_path)
    entered = [found for found in tried if any(len(misfit.place) > len(place) for misfit in found)]
    if entered:  # the value looks like that choice
        return min(entered, key=len)
    texts = dict.fromkeys(misfit.text for found in tried for misfit in found) or [_expectation(error)]
    rest = [text.removeprefix("must be ") for text in [*texts][1:]]
    return [Misfit(place, error.validator or "false", " or ".join([next(iter(texts)), *rest])[:WIDEST], error.instance)]


def _expectation(error: Any) -> str:
    keyword, rule = cast("str | None", error.validator), error.validator_value
    if keyword is None:  # the schema is `false`
        return _NO_VALUE
    if keyword == "type":
        kinds: list[str] = [rule] if isinstance(rule, str) else rule
        return f"must be {' or '.join(_TYPES.get(kind, kind) for kind in kinds)}"
    if keyword in ("const", "enum"):
        values: Sequence[Any] = rule if keyword == "enum" else [rule]
        if not values:
            return _NO_VALUE
        return f"must be {' or '.join(json.dumps(value, ensure_ascii=False) for value in values[:_MOST])}"
    return _WORDS[keyword].format(rule) if keyword in _WORDS else error.message
