"""JSON schemas of servers, read as JSON Schema says, and never fetched from anywhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from jsonschema.validators import validator_for
from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError
from referencing import Registry
from referencing.exceptions import Unresolvable

__all__ = ["checks_of", "misfits"]

_Place: TypeAlias = tuple[str | int, ...]
_NOTHING: Any = Registry[Any]()  # of schemas that others may refer to
_WIDE = 300  # characters of a problem; it may quote what does not fit


def misfits(schema: Mapping[str, Any], value: Any) -> list[tuple[_Place, str]]:
    """Return where a value does not fit a schema, and why; nothing where the schema itself is broken."""
    validator = _validator(schema)
    return [] if validator is None else [(place, text) for place, text, _ in _problems(validator, value)]


def checks_of(tool: str, schema: Mapping[str, Any]) -> Callable[[dict[str, Any]], object]:
    """Return what raises pydantic's ValidationError for arguments that do not fit a schema, which is compiled once."""
    made: list[Any] = []

    def check(arguments: dict[str, Any]) -> None:
        if not made:
            made.append(_validator(schema))
        problems = [] if made[0] is None else _problems(made[0], arguments)
        if problems:
            raise ValidationError.from_exception_data(tool, [_detail(*problem) for problem in problems])

    return check


def _detail(place: _Place, text: str, value: Any) -> InitErrorDetails:
    kind = PydanticCustomError("json_schema", "{problem}", {"problem": text})
    return InitErrorDetails(type=kind, loc=place, input=value)


def _validator(schema: Mapping[str, Any]) -> Any:
    kind: Any = validator_for(dict(schema), default=Draft202012Validator)
    try:
        kind.check_schema(schema)
    except SchemaError:
        return None  # the server has to look after its arguments itself
    return kind(dict(schema), registry=_NOTHING)


def _problems(validator: Any, value: Any) -> list[tuple[_Place, str, Any]]:
    try:
        errors: list[Any] = list(validator.iter_errors(value))
    except Unresolvable:  # it refers to a schema that is not in it
        return []
    return [(tuple(error.absolute_path), error.message[:_WIDE], error.instance) for error in errors]
