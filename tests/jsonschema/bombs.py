"""Schemas of a few kilobytes that come to a billion parts when their references are written out."""

from typing import Any

KINDS = ("properties", "anyOf", "prefixItems", "allOf", "pointer")
LEVELS = 28


def bomb(kind: str) -> dict[str, Any]:
    """Return a schema whose every definition refers twice to the one before it."""
    definitions: dict[str, Any] = {"L0": {"type": "object", "properties": {"z": {"type": "string"}}}}
    for level in range(1, LEVELS):
        ref = {"$ref": f"#/$defs/{'a/' if kind == 'pointer' and level > 1 else ''}L{level - 1}".replace("a/", "a~1")}
        match kind:
            case "anyOf":
                made: dict[str, Any] = {
                    "anyOf": [{"type": "array", "items": ref}, {"type": "object", "additionalProperties": ref}]
                }
            case "prefixItems":
                made = {"type": "array", "prefixItems": [ref, ref], "items": False}
            case "allOf":
                made = {"allOf": [ref, ref]}
            case _:
                made = {"type": "object", "properties": {"a": ref, "b": ref}}
        definitions[f"{'a/' if kind == 'pointer' else ''}L{level}"] = made
    top = {"$ref": f"#/$defs/{'a~1' if kind == 'pointer' else ''}L{LEVELS - 1}"}
    return {
        "type": "object",
        "properties": {"x": top, "y": {"type": "array", "items": top}},
        "required": ["x"],
        "$defs": definitions,
    }


def repeated() -> dict[str, Any]:
    """Return a schema whose references lead into each other, so that a definition of each comes to too much."""
    level: dict[str, Any] = {"properties": {f"p{n}": {"type": "string"} for n in range(400)}}
    for _ in range(80):
        level = {"properties": {"in": level}}
    refs = {f"r{n}": {"$ref": "#/properties/a" + "/properties/in" * n} for n in range(80)}
    return {"type": "object", "properties": {"a": level, **refs}}
