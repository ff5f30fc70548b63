"""Types of entities and arguments in a Cedar policy, which validate it before any call; and edits of numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import product
from math import prod
from typing import Any, Final, NamedTuple, cast

from toolcrib.calls import number_of

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


_STEPS: Final = {"Long": Decimal(1), "decimal": Decimal("0.0001")}
"""The least difference of two numbers of a type."""
_MOST: Final = 64  # edits of one call that are told apart


class EditedCall:
    """A call (`Call`) with other arguments, as far as a policy reads it."""

    def __init__(self, call: Any, arguments: Mapping[str, Any]) -> None:
        self.name, self.tool, self.run, self.request = call.name, call.tool, call.run, call.request
        self.arguments = {**call.arguments, **arguments}


class NumberRange(NamedTuple):
    """Numbers that are alike for all comparisons of a policy: over one, and at most another; and one of them."""

    over: Decimal | None
    up_to: Decimal | None
    example: int | float


def edits_of(numbers: Sequence[Decimal], schemas: Mapping[str, Any]) -> Iterator[dict[str, NumberRange]]:
    """Yield the edits of arguments that a policy may tell apart, by argument; none where they are too many.

    Args:
        numbers: The numbers that the policy compares with.
        schemas: The JSON schemas of the arguments that it reads; others than numbers are left out.
    """
    kinds = {name: type_of(schema) for name, schema in schemas.items()}
    steps = {name: _STEPS.get(text_of(kind)) for name, kind in kinds.items() if kind is not None}
    ranges = {name: _ranges(numbers, step) for name, step in steps.items() if step is not None}
    if numbers and ranges and prod(map(len, ranges.values())) <= _MOST:
        for chosen in product(*ranges.values()):
            yield dict(zip(ranges, chosen, strict=True))


def numbers_in(part: Any) -> Iterator[Decimal]:
    """Yield the numbers in the conditions of policies, as Cedar writes them in JSON."""
    if isinstance(part, list):
        for item in cast("list[Any]", part):
            yield from numbers_in(item)
    elif isinstance(part, Mapping):
        for name, value in cast("Mapping[str, Any]", part).items():
            if name == "decimal" and (number := number_of(value[0].get("Value"))) is not None:
                yield number
            elif name == "Value" and isinstance(value, int) and not isinstance(value, bool):
                yield Decimal(value)
            else:
                yield from numbers_in(value)


def _ranges(numbers: Sequence[Decimal], step: Decimal) -> list[NumberRange]:
    """Return the ranges of numbers of 0 or more that some numbers part; each of those is a range by itself."""
    cuts = sorted({cut for number in numbers for cut in (number - step, number) if cut >= 0})
    ends: list[tuple[Decimal | None, Decimal | None]] = [*zip((None, *cuts), (*cuts, None), strict=True)]
    of_kind = int if step == 1 else float
    return [
        NumberRange(over, up_to, of_kind((over or Decimal(0)) + step if up_to is None else up_to))
        for over, up_to in ends
    ]
