"""Edits of a call's numbers, parted by the numbers that a policy in Cedar compares with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import product
from math import prod
from typing import Any, Final, NamedTuple, cast

from toolcrib.approvers._cedar_types import text_of, type_of
from toolcrib.calls import number_of

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
