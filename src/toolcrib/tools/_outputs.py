"""Outputs and arguments that a host or an approver gives in place of others, checked against what a tool declares."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from toolcrib.errors import InvalidOutput, SchemaError
from toolcrib.schema import hidden_paths, modern, output_problems
from toolcrib.tools._tool import Tool


def checked_output(tool: Tool[..., Any], name: str, output: Any) -> Any:
    """Return an output as the tool's declared type, converted where pydantic can; as it is where no type is known.

    Raises:
        InvalidOutput: It does not fit; every problem is named.
    """
    adapter = _adapter_of(tool)
    if adapter is None:
        return output
    try:
        return adapter.validator.validate_python(output)
    except ValidationError as error:
        problems = output_problems(error, adapter, output)
    raise InvalidOutput(name, problems)  # out here, so that it does not carry pydantic's error along


def require_arguments(tool: Tool[..., Any], arguments: Mapping[str, Any]) -> None:
    """Check the arguments that an approver gives, where they hold no hidden secret, whose value only the call has.

    Raises:
        InvalidArguments: They do not fit; every problem is named.
    """
    spec = tool.spec
    if spec.unresolved or hidden_paths(arguments):
        return
    values = {key: arguments[key] for key in arguments if key not in spec.fixed and key not in spec.injected}
    with suppress(SchemaError):  # a tool without a schema says nothing of them
        spec.validate_model(values)


@lru_cache(maxsize=1024)
def _adapter_of(tool: Tool[..., Any]) -> TypeAdapter[Any] | None:
    kind = tool.spec.return_type
    if kind is None:
        return None
    declared: Any = list[kind] if tool.is_streaming else kind
    try:
        return TypeAdapter(modern(declared))
    except Exception:  # the annotation is the user's, and may be of a type that pydantic does not know
        return None


def output_schema(tool: Tool[..., Any]) -> dict[str, Any] | None:
    """Return the JSON schema of an output, of a stream the list of its values; None where nothing is said of it."""
    try:
        schema = tool.return_schema
    except SchemaError:  # outputs are shown as they are
        return None
    if schema is None or not tool.is_streaming:
        return schema
    items = {key: value for key, value in schema.items() if key != "$defs"}
    array: dict[str, Any] = {"type": "array", "items": items}
    return {**array, "$defs": schema["$defs"]} if "$defs" in schema else array
