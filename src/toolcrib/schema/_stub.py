"""Stub of a tool: a Python function without a body, for a prompt or a type checker; and its first line alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import Parameter
from typing import Any, NamedTuple, cast
from unicodedata import normalize

from toolcrib.jsonschema import SchemaWalk
from toolcrib.schema._parameters import Resolved, is_parameter_name
from toolcrib.schema._signature import has_default, joined, value_text
from toolcrib.schema._stub_types import SignatureTypes, StubTypes, camel, comment_of, docstring_lines


class StubSource(NamedTuple):
    """The source of a stub.

    Attributes:
        keys: The name of a parameter in `schema`, where it differs from the parameter's.
        schema: The JSON schema of the arguments.
        returns: The JSON schema of the result; None where it is not known.
        returns_name: The name of the result's type, when it is an object without one of its own.
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
    parameters, described = _parameters(source, types)
    result = _result_text(source, types)
    head = f"{'async ' if is_async else ''}def {_function_name(source.name)}({parameters}) -> {result}:"
    lines = [head, *(_docstring(source, described) if docs else ()), "    ..."]
    return "\n".join(lines)


def _function_name(name: str) -> str:
    """Return the name of a tool as Python takes it: `get_user` for `get-user`."""
    if is_parameter_name(name):
        return name
    identifier = normalize("NFKC", "".join(letter if f"_{letter}".isidentifier() else "_" for letter in name))
    return f"{identifier}_" if identifier.isidentifier() else f"_{identifier}"


def stub_signature(source: StubSource) -> str:
    """Return the call on one line, with `dict` for an object whose keys are known.

    Raises:
        SchemaTooLarge: Too much would have to be written.
    """
    types = SignatureTypes()
    parameters, _ = _parameters(source, types)
    arrow = "" if source.returns is None else f" -> {_result_text(source, types)}"
    return f"{source.name}({parameters}){arrow}"


def _parameters(source: StubSource, types: StubTypes) -> tuple[str, list[str]]:
    """Return the parameters as one list, and what is said of each, a line for each."""
    texts: list[tuple[Resolved, str]] = []
    unnamed: dict[str, Any] = {}
    described: list[str] = []
    with types.walking(source.schema, source.name) as walk:
        properties = walk.properties(source.schema)
        for parameter in source.parameters:
            part = _schema_of(parameter, source, properties)
            if is_parameter_name(parameter.name):
                annotation = types.annotation(part, walk, camel(f"{source.name}_{parameter.name}"))
                texts.append((parameter, _parameter_text(parameter, annotation, part)))
            else:
                unnamed[parameter.name] = part
            if comment := comment_of(part):
                described.append(f"    {parameter.name}: {comment}")
        rest = _unnamed(unnamed, source, types, walk) if unnamed else ""
    return ", ".join(filter(None, (joined(texts), rest))), described


def _unnamed(parts: Mapping[str, Any], source: StubSource, types: StubTypes, walk: SchemaWalk) -> str:
    required = [p.name for p in source.parameters if p.name in parts and not has_default(p)]
    name, used = "others", {p.name for p in source.parameters}
    while name in used:
        name += "_"
    return types.unnamed({"properties": parts, "required": required}, walk, f"{source.name}.{name}")


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
    has_value = isinstance(schema, Mapping) and "default" in schema
    shown = value_text(cast("Any", schema["default"])) if has_value else "..."
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
