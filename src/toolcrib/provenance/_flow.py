"""Flows of a program: what may come into each argument of its calls, as its text says before it runs."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["Flow", "fields_of"]

_INDEX: Final = re.compile(r"\[[^\]]*\]")


def fields_of(path: str) -> str:
    """Return a path in a result without the places in lists: `items.subject` of `items[2].subject`."""
    return _INDEX.sub("", path).strip(".")


@dataclass(frozen=True, slots=True)
class Flow:
    """What may come into one argument.

    Attributes:
        results: The results that may, each as a tool's name and the fields of its result; no fields for all of it.
        literals: Texts and numbers of the program that may, texts flat.
        is_early: Whether the program was written before any text of others was read.
    """

    results: frozenset[tuple[str, str]] = frozenset()
    literals: frozenset[str | float] = frozenset()
    is_early: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON shapes."""
        literals = sorted(self.literals, key=lambda literal: (isinstance(literal, str), literal))
        return {"results": [list(each) for each in sorted(self.results)], "literals": literals, "early": self.is_early}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Flow:
        """Return the flow that `to_dict` described."""
        results = frozenset((str(tool), str(fields)) for tool, fields in data["results"])
        return cls(results, frozenset(data["literals"]), bool(data["early"]))

    @classmethod
    def any_of(cls, flows: Collection[Flow]) -> Flow:
        """Return what may come by one of several."""
        results = frozenset[tuple[str, str]]().union(*(each.results for each in flows))
        literals = frozenset[str | float]().union(*(each.literals for each in flows))
        return cls(results, literals, all(each.is_early for each in flows))
