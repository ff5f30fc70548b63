"""Tools that bring a JSON schema along, in place of a function's signature. Needs the extra `schema`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, cast

from toolcrib._extras import Extra
from toolcrib.errors import FieldProblem, InvalidSchema
from toolcrib.jsonschema import of_newer_version
from toolcrib.schema import ToolSpec
from toolcrib.tools._options import only_options
from toolcrib.tools._tool import Tool

with Extra("a tool from a JSON schema", "schema", ("jsonschema", "referencing")):
    from toolcrib.jsonschema.checker import checks_of, require_schema

__all__ = ["schema_tool"]


def schema_tool(
    name: str,
    schema: Mapping[str, Any],
    fn: Callable[..., Any] | None = None,
    *,
    description: str | None = None,
    output_schema: Mapping[str, Any] | None = None,
    **keywords: Any,
) -> Tool[..., Any]:
    """Make a tool of a JSON schema, as it comes from a database, a configuration or another system.

    A model is shown the schema as it is, and its arguments are checked against it, within limits of time, before
    anything runs. The function is given them as JSON values.

    Args:
        name: The name that models call it by.
        schema: The JSON schema of the arguments, an object.
        fn: The function, sync or async, which takes the arguments by keyword; a generator streams. A parameter that the
            run fills (`RunContext`, `Injected`) need not be in the schema. None for an input that your own code
            executes, as with `tool_input`.
        description: Its purpose; the first paragraph of the function's docstring when None.
        output_schema: The JSON schema of the result, for stubs, prompts and definitions.
        keywords: Options of `@tool`.

    Raises:
        InvalidSchema: The name is not text, a schema is not valid, or that of the arguments is not an object's. The
            error names the tool, the place and what would be right.
        TypeError: The function does not take an argument that the schema describes.
        SchemaTooLarge: A schema is nested too deep to be read.
    """
    _require_name(name)
    kind: Any = _required(name, schema).get("type", "object")
    if output_schema is not None:
        _required(name, output_schema, "output_schema")
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        problem = f"arguments are an object, and this is {kind!r}; make it a property of one"
        raise InvalidSchema(name, FieldProblem("type", problem))
    schema, output_schema = deepcopy(schema), deepcopy(output_schema)
    options = only_options("schema_tool", name, {**keywords, "name": name, "description": description})
    spec = ToolSpec.from_schema(
        fn, schema, name=name, description=description, returns=output_schema, check=checks_of(name, schema, whole=True)
    )
    return Tool(spec, options, bare=True)


def _required(name: str, schema: Any, where: str = "") -> Mapping[str, Any]:
    """Return a schema of the newest version; raises InvalidSchema for what is not a schema."""
    newer = of_newer_version(name, cast("Mapping[str, Any]", schema)) if isinstance(schema, dict) else schema
    require_schema(name, newer, where)
    return cast("Mapping[str, Any]", newer)


def _require_name(name: object) -> None:
    """Raise InvalidSchema for what cannot be a name: not text, empty, or with half a character in it."""
    if not isinstance(name, str) or not name or name.encode("utf-8", "replace").decode() != name:
        problem = f"{name!r:.80} is not the name of a tool; give it a text, as in schema_tool('search', ...)"
        raise InvalidSchema(str(name).encode("utf-8", "replace").decode(), FieldProblem("name", problem))
