"""Stub of a tool: a Python function without a body, for a prompt or a type checker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import Parameter
from typing import Any, NamedTuple

from toolcrib.schema._parameters import Resolved
from toolcrib.schema._signature import has_default, joined, value_text
from toolcrib.schema._stub_types import StubTypes, camel, comment_of, docstring_lines

__all__ = ["StubSource", "stub_text"]


class StubSource(NamedTuple):
    """What a stub is written from.

    Attributes:
        keys: The name of a parameter in `schema`, where it differs from the parameter's.
        schema: The JSON schema of the arguments.
        returns: The JSON schema of the result; None where it is not known.
        returns_name: What the result's type is called, when it is an object without a name of its own.
        returns_none: The function says that it returns None.
        streams: The result is the list of what the tool yields.
    """

    name: str
    parameters: Sequence[Resolved]
    keys: Mapping[str, str]
    schema: Mapping[str, Any]
    returns: Mapping[str, Any] | None
    returns_name: str
    returns_none: bool
    streams: bool
    description: str
    returns_doc: str


def stub_text(source: StubSource, types: StubTypes, docs: bool, is_async: bool) -> str:
    """Return the function; the definitions that its annotations name are added to `types`."""
    properties: Mapping[str, Any] = source.schema.get("properties", {})
    texts: list[tuple[Resolved, str]] = []
    described: list[str] = []
    with types.walking(source.schema, source.name) as walk:
        for parameter in source.parameters:
            part = _schema_of(parameter, source, properties)
            annotation = types.annotation(part, walk, camel(f"{source.name}_{parameter.name}"))
            texts.append((parameter, _parameter_text(parameter, annotation, part)))
            if comment := comment_of(part):
                described.append(f"    {parameter.name}: {comment}")
    result = _result_text(source, types)
    head = f"{'async ' if is_async else ''}def {source.name}({joined(texts)}) -> {result}:"
    lines = [head, *(_docstring(source, described) if docs else ()), "    ..."]
    return "\n".join(lines)


def _schema_of(parameter: Resolved, source: StubSource, properties: Mapping[str, Any]) -> Any:
    if parameter.kind == Parameter.VAR_KEYWORD:
        return source.schema.get("additionalProperties")
    part = properties.get(source.keys.get(parameter.name, parameter.name), {})
    if parameter.kind == Parameter.VAR_POSITIONAL:
        items = part.get("items", {})
        return {**items, "description": part["description"]} if "description" in part else items
    return part


def _parameter_text(parameter: Resolved, annotation: str, schema: Any) -> str:
    if parameter.kind == Parameter.VAR_KEYWORD:
        return f"**{parameter.name}: {annotation}"
    if parameter.kind == Parameter.VAR_POSITIONAL:
        return f"*{parameter.name}: {annotation}"
    if not has_default(parameter):
        return f"{parameter.name}: {annotation}"
    shown = value_text(schema["default"]) if "default" in schema else "..."
    return f"{parameter.name}: {annotation} = {shown}"


def _result_text(source: StubSource, types: StubTypes) -> str:
    if source.returns is None:
        result = "None" if source.returns_none else "Any"
    else:
        with types.walking(source.returns, source.name) as walk:
            result = types.annotation(source.returns, walk, source.returns_name)
    return f"list[{result}]" if source.streams else result


def _docstring(source: StubSource, described: Sequence[str]) -> list[str]:
    parts = [source.description] if source.description else []
    if described:
        parts.append("\n".join(["Args:", *described]))
    if source.returns_doc:
        parts.append(f"Returns:\n    {source.returns_doc}")
    return docstring_lines("\n\n".join(parts)) if parts else []
