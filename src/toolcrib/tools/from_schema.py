"""Tools that bring a JSON schema along, in place of a function's signature. Needs the extra `schema`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from toolcrib.errors import MissingExtraError
from toolcrib.schema import ToolSpec
from toolcrib.tools._options import only_options
from toolcrib.tools._tool import Tool

try:
    from toolcrib.schema.checker import checker_of, checks_of
except ModuleNotFoundError as error:
    raise MissingExtraError("a tool from a JSON schema", "schema") from error

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
        name: What models call it.
        schema: The JSON schema of the arguments, an object.
        fn: The function, sync or async, which takes the arguments by keyword; a generator streams. A parameter that the
            run fills (`RunContext`, `Injected`) need not be in the schema. None for an input that your own code
            executes, as with `tool_input`.
        description: What it is for; the first paragraph of the function's docstring when None.
        output_schema: The JSON schema of the result, for stubs, prompts and definitions.
        keywords: Options of `@tool`.

    Raises:
        ValueError: A schema is no JSON schema.
        TypeError: The schema is not an object's, or the function does not take an argument that it describes.
        SchemaTooLarge: A schema is nested too deep to be read.
    """
    for noun, given in (("schema of its arguments", schema), ("output_schema", output_schema or {})):
        if not isinstance(given, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] -- it may come from anywhere
            raise TypeError(f"`{name}`: the {noun} must be a dict, and is {given!r:.80}")
    if schema.get("type", "object") != "object":
        raise TypeError(f"`{name}`: the schema of its arguments must be an object's, and is of type {schema['type']!r}")
    options = only_options("schema_tool", {**keywords, "name": name})
    spec = ToolSpec.from_schema(
        fn, schema, name=name, description=description, returns=output_schema, check=checks_of(name, schema, whole=True)
    )
    for noun, given in (("schema", schema), ("output_schema", output_schema)):
        if given is not None and checker_of(given) is None:
            raise ValueError(f"`{name}`: its {noun} is no JSON schema; see https://json-schema.org")
    return Tool(spec, options, bare=True)
