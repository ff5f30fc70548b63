"""Types of the entities and arguments in a Cedar policy: a schema that validates policies before any call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

_STRING: Final = {"type": "String"}
_LONG: Final = {"type": "Long"}
_BOOLEAN: Final = {"type": "Boolean"}
_DECIMAL: Final = {"type": "Extension", "name": "decimal"}
_SIMPLE: Final[Mapping[str, Any]] = {"string": _STRING, "integer": _LONG, "boolean": _BOOLEAN, "number": _DECIMAL}
_SINGLE: Final = (_LONG, _DECIMAL, _STRING, _BOOLEAN)
TYPES: Final[tuple[Mapping[str, Any], ...]] = (*_SINGLE, *({"type": "Set", "element": type} for type in _SINGLE))
"""The types that an argument has in Cedar, where its tool is not known, and it is not a record."""


def schema_of(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of Cedar for calls whose arguments have these types, by name.

    What a call may lack counts as there: whether it is, is known at the call alone.
    """
    of_tool = {"name": _STRING, "tags": {"type": "Set", "element": _STRING}, "effect": _STRING, "server": _STRING}
    requester = {"type": "Entity", "name": "Person"}
    context = _record({"arguments": _record(arguments), "requester": requester})
    applies = {"principalTypes": ["Person"], "resourceTypes": ["Tool"], "context": context}
    return {
        "": {
            "entityTypes": {"Group": {}, "Person": {"memberOfTypes": ["Group"]}, "Tool": {"shape": _record(of_tool)}},
            "actions": {name: {"appliesTo": applies} for name in ("run", "approve")},
        }
    }


def type_of(schema: Any) -> Mapping[str, Any] | None:
    """Return the type that values of a JSON schema have in Cedar; None where it is not one, or not known."""
    node = cast("dict[str, Any]", schema) if isinstance(schema, dict) else {}
    several: Any = node.get("anyOf") or node.get("oneOf")
    if isinstance(several, list):  # null is left out of what Cedar is given
        types = [part for part in cast("list[Any]", several) if part != {"type": "null"}]
        return type_of(types[0]) if len(types) == 1 else None
    named: Any = node.get("type")
    names = [name for name in (cast("list[Any]", named) if isinstance(named, list) else [named]) if name != "null"]
    if len(names) != 1:
        return None
    if names == ["array"]:
        element = type_of(node.get("items"))
        # a whole number in a list of numbers is a Long, and not a decimal
        return None if element in (None, _DECIMAL) else {"type": "Set", "element": element}
    return _SIMPLE.get(names[0])


def text_of(kind: Mapping[str, Any]) -> str:
    """Return a type as Cedar writes it: `Long`, `decimal`, `Set<String>`."""
    return f"Set<{text_of(kind['element'])}>" if kind["type"] == "Set" else str(kind.get("name", kind["type"]))


def _record(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "Record", "attributes": dict(attributes)}
