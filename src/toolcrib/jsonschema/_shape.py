"""Shape of a JSON schema: a short text that a person or a model reads at a glance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcrib.jsonschema._composition import as_one
from toolcrib.jsonschema._visitor import alternatives, kinds_of, properties_of, ref_of, values_of
from toolcrib.jsonschema._walk import SchemaWalk

PYTHON_TYPES: Mapping[str, str] = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
}
"""Types of JSON without parts, with those of Python."""


def describe_shape(schema: Mapping[str, Any] | bool, tool: str = "", walk: SchemaWalk | None = None) -> str:
    """Return the shape of what `schema` describes: `{location: str, temp: int}`, `list[{id: int, tag?: str}]`.

    `?` marks a key that may be absent, quoted texts are the only ones allowed, and `...` stands for a type that
    contains itself.

    Args:
        schema: The schema.
        tool: The tool whose schema it is, for messages.
        walk: The walk over the schema that it is a part of, which may have other parts described.

    Raises:
        SchemaTooLarge: It would have too many parts; names the tool.
    """
    return _Shape(SchemaWalk(schema, tool) if walk is None else walk).of(schema)


class _Shape:
    def __init__(self, walk: SchemaWalk) -> None:
        self.walk = walk

    def of(self, schema: Any) -> str:
        """Return the shape of one part."""
        if not isinstance(schema, Mapping):
            return "Any"
        ref = ref_of(schema)
        if ref in self.walk.open:
            return "..."
        with self.walk.part(ref):
            return self._of_resolved(as_one(self.walk.resolved(schema), self.walk))

    def _of_resolved(self, schema: Mapping[str, Any]) -> str:
        values, choices = values_of(schema), alternatives(schema)
        if values is not None:
            return " | ".join(map(repr, values))
        if choices:
            return " | ".join(dict.fromkeys(map(self.of, choices)))
        kinds = kinds_of(schema) or ["object" if "properties" in schema else ""]
        return " | ".join(self._of_type(kind, schema) for kind in kinds)

    def _of_type(self, kind: str, schema: Mapping[str, Any]) -> str:
        if kind == "array":
            if isinstance(schema.get("prefixItems"), list):
                return f"[{', '.join(self.of(item) for item in schema['prefixItems'])}]"
            return f"list[{self.of(schema['items'])}]" if "items" in schema else "list"
        if kind == "object":
            properties = properties_of(schema)
            if not properties:
                values = schema.get("additionalProperties")
                return f"dict[str, {self.of(values)}]" if isinstance(values, Mapping) else "dict"
            required = schema.get("required", ())
            parts: list[str] = []
            for name, part in properties.items():
                key = name if name.isidentifier() else repr(name)
                parts.append(f"{key}{'' if name in required else '?'}: {self.of(part)}")
            return f"{{{', '.join(parts)}}}"
        return PYTHON_TYPES.get(kind, "Any")
