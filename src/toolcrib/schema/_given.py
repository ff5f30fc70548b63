"""The input model of a tool that brings its JSON schema along instead of a signature."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from inspect import Parameter
from typing import Any, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import InitErrorDetails

from toolcrib.schema._parameters import EMPTY, Resolved

__all__ = ["Check", "model_of_schema", "parameters_of_schema"]

Check: TypeAlias = Callable[[dict[str, Any]], object]
"""Raises pydantic's ValidationError, or a ValueError, for arguments that do not fit."""

_KINDS = {True: Parameter.POSITIONAL_OR_KEYWORD, False: Parameter.KEYWORD_ONLY}
_TYPES: Mapping[Any, type] = {"string": str, "integer": int, "number": float, "boolean": bool, "array": list}


def model_of_schema(tool: str, schema: Mapping[str, Any], check: Check | None) -> type[BaseModel]:
    """Return a model that keeps the arguments as they are, shows `schema` as it is, and takes what `check` lets pass.

    Required arguments and undeclared ones are looked after here, in case nobody else does.
    """

    class Arguments(BaseModel):
        model_config = ConfigDict(extra="allow", protected_namespaces=(), ser_json_inf_nan="strings")

        @model_validator(mode="before")
        @classmethod
        def fits(cls, values: Any) -> Any:
            if isinstance(values, dict):
                arguments = cast("dict[str, Any]", values)
                problems = _misnamed(arguments, schema)
                if problems:
                    raise ValidationError.from_exception_data(tool, problems)
                if check is not None:
                    check(arguments)
            return cast("Any", values)

        @classmethod
        def model_json_schema(cls, *args: Any, **kwargs: Any) -> dict[str, Any]:
            return deepcopy({"type": "object", **schema})

    return Arguments


def _misnamed(values: Mapping[str, Any], schema: Mapping[str, Any]) -> list[InitErrorDetails]:
    missing = (name for name in schema.get("required", ()) if name not in values)
    problems = [InitErrorDetails(type="missing", loc=(name,), input=values) for name in missing]
    if schema.get("additionalProperties") is False and not schema.get("patternProperties"):
        extra = (name for name in values if name not in schema.get("properties", {}))
        problems += [InitErrorDetails(type="extra_forbidden", loc=(name,), input=values[name]) for name in extra]
    return problems


def parameters_of_schema(schema: Mapping[str, Any]) -> tuple[Resolved, ...]:
    """Return the properties of a schema as parameters, the required first; by name alone if that is no Python name."""
    required = schema.get("required", ())
    properties: Mapping[str, Any] = schema.get("properties", {})
    kinds = {name: _KINDS[name.isidentifier()] for name in properties}
    ordered = sorted(properties, key=lambda name: (kinds[name], name not in required))
    return tuple(
        Resolved(name, _type_of(properties[name]), EMPTY, kinds[name], omitted=name not in required) for name in ordered
    )


def _type_of(part: Any) -> Any:
    kind: Any = cast("Mapping[str, Any]", part).get("type") if isinstance(part, Mapping) else None
    return _TYPES.get(kind, Any) if isinstance(kind, str) else Any
