"""Checks of arguments and results against the schemas of a server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from jsonschema.exceptions import SchemaError
from mcp.client import ClientSession
from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from toolcrib.schema.checker import Checker, Misfit, checker_of

__all__ = ["check_results", "checks_of"]

_KINDS = {"additionalProperties": "extra_forbidden", "required": "missing"}  # as pydantic calls them


def checks_of(tool: str, schema: Mapping[str, Any]) -> Callable[[dict[str, Any]], object]:
    """Return a check that raises pydantic's ValidationError for arguments that do not fit a schema."""
    made: list[Checker | None] = []

    def check(arguments: dict[str, Any]) -> None:
        if not made:
            made.append(checker_of(schema))
        checker = made[0]
        found = [] if checker is None else checker.misfits(arguments)
        if found:
            raise ValidationError.from_exception_data(tool, [_detail(misfit) for misfit in found])

    return check


def check_results(session: ClientSession) -> None:
    """Have a session check results within limits of time: a server gives both schema and result, and may be hostile."""
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


def _detail(misfit: Misfit) -> InitErrorDetails:
    other = PydanticCustomError("json_schema", "{problem}", {"problem": misfit.text})
    return InitErrorDetails(type=_KINDS.get(misfit.keyword, other), loc=misfit.place, input=misfit.value)
