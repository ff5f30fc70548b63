"""Check of results against the schemas of a server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jsonschema.exceptions import SchemaError
from mcp.client import ClientSession

from toolcrib.schema.checker import Checker

__all__ = ["check_results"]


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
