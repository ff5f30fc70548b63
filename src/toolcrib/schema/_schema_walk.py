"""Walk over a JSON schema: it follows references, and ends in an error when the schema comes to too much."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast
from urllib.parse import unquote

from toolcrib.errors import SchemaTooLarge

__all__ = ["SchemaWalk", "check_nesting", "check_size", "pointed_at", "ref_of"]

_MOST_PARTS = 10_000  # a schema of 3 kB may come to a billion of them when its references are written out
_MOST_CHARACTERS = 1_000_000  # of what references lead to, written out
_DEEPEST = 100
_CHOICES = ("anyOf", "oneOf", "allOf")


class SchemaWalk:
    """One walk over a schema of a tool, with one budget for all that is written from it.

    Attributes:
        root: The schema in which references are looked up.
        tool: The tool whose schema it is, for messages; may be empty.
        open: The references that are being written out. One that is in it belongs to a type that holds itself.
        memo: What the walker has made of a reference before.
    """

    __slots__ = ("_deep", "_left", "_left_to_write", "_sizes", "_targets", "memo", "open", "root", "tool")

    def __init__(self, root: Any, tool: str = "") -> None:
        self.root: Mapping[str, Any] = cast("Mapping[str, Any]", root) if isinstance(root, Mapping) else {}
        self.tool = tool
        self.open: list[str] = []
        self.memo: dict[str, Any] = {}
        self._targets: dict[str, Mapping[str, Any]] = {}
        self._sizes: dict[str, int] = {}
        self._left, self._left_to_write, self._deep = _MOST_PARTS, _MOST_CHARACTERS, 0

    def count(self) -> None:
        """Count one part of the schema.

        Raises:
            SchemaTooLarge: There are too many, or they are too deep in each other.
        """
        self._left -= 1
        if self._left < 0 or self._deep > _DEEPEST:
            raise SchemaTooLarge(self.tool)

    def check_levels(self, levels: int) -> None:
        """Raise SchemaTooLarge where what is written of a part would be deeper than a walk goes."""
        if self._deep + levels > _DEEPEST:
            raise SchemaTooLarge(self.tool)

    @contextmanager
    def part(self, ref: str | None = None) -> Generator[None]:
        """Count a part while what is in it is walked over; `ref` is the reference that led to it.

        Raises:
            SchemaTooLarge: As `count`; or what references lead to has too many characters, written out.
        """
        self._deep += 1
        if ref is not None:
            self.open.append(ref)
        try:
            self.count()
            self._left_to_write -= 0 if ref is None else self._size(ref)
            if self._left_to_write < 0:
                raise SchemaTooLarge(self.tool)
            yield
        finally:
            self._deep -= 1
            if ref is not None:
                self.open.pop()

    def resolved(self, schema: Any) -> dict[str, Any]:
        """Return the schema that a `$ref` names, or `schema` itself; empty for one that is not an object."""
        if not isinstance(schema, Mapping):
            return {}
        named = cast("Mapping[str, Any]", schema)
        ref = ref_of(named)
        if ref is None:
            return dict(named)
        return {**self._target(ref), **{key: value for key, value in named.items() if key != "$ref"}}

    def _target(self, ref: str) -> Mapping[str, Any]:
        """Return what a reference leads to, with what stands beside it and beside the references on the way."""
        chain: list[tuple[str, Mapping[str, Any]]] = []
        seen = set[str]()
        further: str | None = ref
        while further is not None and further not in self._targets and further not in seen:  # an alias of an alias
            seen.add(further)
            chain.append((further, self._lookup(further)))
            further = ref_of(chain[-1][1])
        made: Mapping[str, Any] = {} if further is None else self._targets.get(further, {})
        for alias, found in reversed(chain):
            beside = {key: value for key, value in found.items() if key != "$ref"}
            made = self._targets[alias] = {**made, **beside} if beside or not made else made
        return self._targets[ref]

    def _size(self, ref: str) -> int:
        """Return how many characters what a reference leads to has, the references in it not followed."""
        if ref not in self._sizes:
            self._sizes[ref] = sum(len(text) for text in _texts(self._target(ref)))
        return self._sizes[ref]

    def _lookup(self, ref: str) -> Mapping[str, Any]:
        target = pointed_at(self.root, ref[1:]) if ref == "#" or ref.startswith("#/") else None
        return cast("Mapping[str, Any]", target) if isinstance(target, Mapping) else {}

    def choices(self, schema: Any) -> Iterator[dict[str, Any]]:
        """Yield a schema, resolved, and all that it chooses from, at any depth; each reference is followed once."""
        waiting, seen = [schema], set[str]()
        while waiting:
            part = waiting.pop()
            ref = ref_of(part)
            if not isinstance(part, Mapping) or ref in seen:
                continue
            if ref is not None:
                seen.add(ref)
            named = self.resolved(part)
            yield named
            waiting += reversed([choice for key in _CHOICES for choice in named.get(key) or ()])


def pointed_at(root: Any, pointer: str) -> Any:
    """Return what a JSON pointer in a reference leads to, from `/` on; None where there is nothing."""
    target = root
    for part in pointer.split("/")[1:]:
        step = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(target, list) and step.isdecimal():
            items = cast("list[Any]", target)
            target = items[int(step)] if int(step) < len(items) else None
        else:
            target = cast("Mapping[str, Any]", target).get(step) if isinstance(target, Mapping) else None
    return target


def ref_of(schema: Any) -> str | None:
    """Return the reference that a schema is; None for one that is none."""
    ref: Any = cast("Mapping[str, Any]", schema).get("$ref") if isinstance(schema, Mapping) else None
    return ref if isinstance(ref, str) else None


def _texts(value: Any) -> Iterator[str]:
    """Yield every text in JSON shapes, and every key."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, Mapping):
            named = cast("Mapping[Any, Any]", part)
            yield from map(str, named)
            waiting += named.values()
        elif isinstance(part, list):
            waiting += cast("list[Any]", part)


def check_nesting(tool: str, schema: Any) -> None:
    """Raise SchemaTooLarge for a schema that is nested deeper than a walk goes, its references not followed."""
    waiting: list[tuple[Any, int]] = [(schema, 0)]
    while waiting:
        part, depth = waiting.pop()
        if depth > 2 * _DEEPEST:  # each schema is in a keyword of another
            raise SchemaTooLarge(tool)
        if isinstance(part, Mapping):
            waiting += [(inner, depth + 1) for inner in cast("Mapping[str, Any]", part).values()]
        elif isinstance(part, list):
            waiting += [(inner, depth + 1) for inner in cast("list[Any]", part)]


def check_size(tool: str, *schemas: Any) -> int:
    """Return how many parts the schemas of a tool have, objects and lists, their references not followed.

    Raises:
        SchemaTooLarge: They are nested deeper, or come to more parts or characters than a walk takes.
    """
    parts, characters = 0, 0
    waiting: list[tuple[Any, int]] = [(schema, 0) for schema in schemas]
    while waiting:
        part, depth = waiting.pop()
        if isinstance(part, Mapping):
            named = cast("Mapping[str, Any]", part)
            characters += sum(map(len, named))
            waiting += [(inner, depth + 1) for inner in named.values()]
        elif isinstance(part, list):
            waiting += [(inner, depth + 1) for inner in cast("list[Any]", part)]
        else:
            characters += len(str(part))
        parts += isinstance(part, Mapping | list)
        too_long = characters + len(waiting) > _MOST_CHARACTERS
        if parts > _MOST_PARTS or too_long or depth > 2 * _DEEPEST:
            raise SchemaTooLarge(tool)
    return parts
