"""JSON schemas of servers, read as JSON Schema says, never fetched from anywhere, and not for as long as they like."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from itertools import islice
from typing import Any, TypeAlias, cast

from jsonschema import Draft202012Validator, validators
from jsonschema import ValidationError as Misfit
from jsonschema.exceptions import SchemaError
from mcp.client import ClientSession
from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError, SchemaValidator
from pydantic_core import SchemaError as PatternError
from pydantic_core.core_schema import str_schema
from referencing import Registry
from referencing.exceptions import Unresolvable

__all__ = ["check_results", "checks_of", "misfits"]

_Place: TypeAlias = tuple[str | int, ...]
_Keyword: TypeAlias = Callable[[Any, Any, Any, Any], Iterable[Misfit] | None]
_NOTHING: Any = Registry[Any]()  # of schemas that others may refer to
_WIDE = 300  # characters of a problem; it may quote what does not fit
_MOST = 20  # problems that are told
_STEPS, _DEEP, _SECONDS = 20_000, 60, 2.0  # of one check: a schema may double with each step, or lead into itself
_UNIQUE = 1_000  # items that are compared with one another


class Checker:
    """A server's schema, which may have been made to keep whoever reads it busy.

    A check that takes too long finds no more than it has found, since the server looks after its values itself.

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


def misfits(schema: Mapping[str, Any], value: Any) -> list[tuple[_Place, str]]:
    """Return where a value does not fit a schema, and why; nothing where the schema itself is broken."""
    return [(place, text) for place, text, _ in _problems(_checker(schema), value)]


def checks_of(tool: str, schema: Mapping[str, Any]) -> Callable[[dict[str, Any]], object]:
    """Return what raises pydantic's ValidationError for arguments that do not fit a schema, which is compiled once."""
    made: list[Checker | None] = []

    def check(arguments: dict[str, Any]) -> None:
        if not made:
            made.append(_checker(schema))
        problems = _problems(made[0], arguments)
        if problems:
            raise ValidationError.from_exception_data(tool, [_detail(*problem) for problem in problems])

    return check


def check_results(session: ClientSession) -> None:
    """Have a session compare results with their schemas as it is done here: a server says both, and may mean harm."""
    made: dict[str, tuple[Mapping[str, Any], Checker]] = {}

    def checker(name: str, schema: dict[str, Any]) -> Checker:
        known = made.get(name)
        if known is not None and known[0] is schema:
            return known[1]
        try:
            made[name] = schema, Checker(schema)
        except (SchemaError, RecursionError) as error:
            raise RuntimeError(f"Invalid schema for tool {name}: {error}") from error
        return made[name][1]

    own: Any = session
    own._output_schema_validator = checker  # the SDK has no public way


def _detail(place: _Place, text: str, value: Any) -> InitErrorDetails:
    kind = PydanticCustomError("json_schema", "{problem}", {"problem": text})
    return InitErrorDetails(type=kind, loc=place, input=value)


def _checker(schema: Mapping[str, Any]) -> Checker | None:
    try:
        return Checker(schema)
    except (SchemaError, RecursionError):
        return None  # the server has to look after its arguments itself


def _problems(checker: Checker | None, value: Any) -> list[tuple[_Place, str, Any]]:
    try:
        errors: Iterable[Any] = () if checker is None else checker.iter_errors(value)
    except Unresolvable:  # it refers to a schema that is not in it
        return []
    return [(tuple(error.absolute_path), error.message[:_WIDE], error.instance) for error in errors]


# --- how long a check may take


class _TooLongError(Exception):
    """A check took too long."""


class _Budget:
    """What is left of the steps and the time of one check, and how deep in its schema it is."""

    def __init__(self) -> None:
        self._steps, self._end = _STEPS, time.monotonic() + _SECONDS
        self._deep = 0

    @contextmanager
    def step(self) -> Generator[None]:
        """Go one keyword deeper; the stack must not run out, since not all that is called here survives that."""
        self._steps -= 1
        if self._steps < 0 or self._deep >= _DEEP or time.monotonic() > self._end:
            raise _TooLongError
        self._deep += 1
        try:
            yield
        finally:
            self._deep -= 1


_budget: ContextVar[_Budget] = ContextVar("toolcrib_mcp_check")


@lru_cache(maxsize=16)
def _bounded(kind: Any) -> Any:
    """Return a version of JSON Schema whose every keyword counts, and whose patterns cannot take for ever."""
    keywords: dict[str, _Keyword] = {name: _counted(check) for name, check in kind.VALIDATORS.items()}
    ours = {name: _counted(check) for name, check in _OURS.items() if name in keywords}
    make = cast("Any", validators).extend
    return make(kind, {**keywords, **ours})


def _counted(check: _Keyword) -> _Keyword:
    def counted(validator: Any, rule: Any, value: Any, schema: Any) -> Generator[Misfit]:
        with _budget.get().step():
            yield from check(validator, rule, value, schema) or ()

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


def _check_pattern(validator: Any, pattern: Any, value: Any, schema: Any) -> Generator[Misfit]:
    if isinstance(value, str) and _fits(pattern, value) is False:
        yield Misfit(f"{value!r:.200} does not match {pattern!r:.200}")


def _check_named_like(validator: Any, patterns: Any, value: Any, schema: Any) -> Generator[Misfit]:
    for pattern, part in patterns.items() if isinstance(value, dict) else ():
        for name, held in cast("dict[str, Any]", value).items():
            if _fits(pattern, name):
                yield from validator.descend(held, part, path=name, schema_path=pattern)


def _check_others(validator: Any, rule: Any, value: Any, schema: Any) -> Generator[Misfit]:
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
        yield Misfit(
            f"Additional properties are not allowed ({names} {'was' if len(others) == 1 else 'were'} unexpected)"
        )


def _check_unique(validator: Any, rule: Any, value: Any, schema: Any) -> Iterable[Misfit] | None:
    few = not isinstance(value, list) or len(cast("list[Any]", value)) <= _UNIQUE
    return Draft202012Validator.VALIDATORS["uniqueItems"](validator, rule, value, schema) if few else None


def _unchecked(validator: Any, rule: Any, value: Any, schema: Any) -> None:
    """Leave it to the server: which parts are looked at already takes as long as it likes to find out."""


_OURS: Mapping[str, _Keyword] = {
    "pattern": _check_pattern,
    "patternProperties": _check_named_like,
    "additionalProperties": _check_others,
    "uniqueItems": _check_unique,
    "unevaluatedProperties": _unchecked,
    "unevaluatedItems": _unchecked,
}
