"""Walk over a JSON schema: it follows references, and ends in an error when the schema comes to too much."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

from toolcrib.errors import SchemaTooLarge
from toolcrib.jsonschema._merging import merged_reference
from toolcrib.jsonschema._visitor import pointed_at, properties_of, ref_of, rewrite

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
        memo: The walker's earlier results, by reference.
    """

    __slots__ = ("_characters_left", "_deep", "_parts_left", "_sizes", "_targets", "memo", "open", "root", "tool")

    def __init__(self, root: Any, tool: str = "") -> None:
        self.root: Mapping[str, Any] = cast("Mapping[str, Any]", root) if isinstance(root, Mapping) else {}
        self.tool = tool
        self.open: list[str] = []
        self.memo: dict[str, Any] = {}
        self._targets: dict[str, Mapping[str, Any]] = {}
        self._sizes: dict[str, int] = {}
        self._parts_left, self._characters_left, self._deep = _MOST_PARTS, _MOST_CHARACTERS, 0

    def count(self) -> None:
        """Count one part of the schema.

        Raises:
            SchemaTooLarge: There are too many, or they are too deep in each other.
        """
        self._parts_left -= 1
        if self._parts_left < 0 or self._deep > _DEEPEST:
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
            self._characters_left -= 0 if ref is None else self._size(ref)
            if self._characters_left < 0:
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
        return merged_reference({key: value for key, value in named.items() if key != "$ref"}, self._target(ref))

    def _target(self, ref: str) -> Mapping[str, Any]:
        """Return the target of a reference, with the keywords beside it and beside the references on the way."""
        chain: list[tuple[str, Mapping[str, Any]]] = []
        followed = set[str]()
        further: str | None = ref
        while further is not None and further not in self._targets and further not in followed:  # an alias of an alias
            followed.add(further)
            chain.append((further, self._lookup(further)))
            further = ref_of(chain[-1][1])
        target: Mapping[str, Any] = {} if further is None else self._targets.get(further, {})
        for alias, found in reversed(chain):
            beside = {key: value for key, value in found.items() if key != "$ref"}
            target = self._targets[alias] = merged_reference(beside, target) if beside or not target else target
        return self._targets[ref]

    def _size(self, ref: str) -> int:
        """Return how many characters what a reference leads to has, the references in it not followed."""
        if ref not in self._sizes:
            self._sizes[ref] = sum(_characters_of(part) for part, _ in _values_in(self._target(ref)))
        return self._sizes[ref]

    def _lookup(self, ref: str) -> Mapping[str, Any]:
        target = pointed_at(self.root, ref[1:]) if ref == "#" or ref.startswith("#/") else None
        return cast("Mapping[str, Any]", target) if isinstance(target, Mapping) else {}

    def choices(self, schema: Any) -> Iterator[dict[str, Any]]:
        """Yield a schema, resolved, and all that it chooses from, at any depth; each reference is followed once."""
        waiting, followed = [schema], set[str]()
        while waiting:
            part = waiting.pop()
            ref = ref_of(part)
            if not isinstance(part, Mapping) or ref in followed:
                continue
            if ref is not None:
                followed.add(ref)
            named = self.resolved(part)
            yield named
            waiting += reversed([choice for key in _CHOICES for choice in named.get(key) or ()])

    def properties(self, schema: Any) -> dict[str, Any]:
        """Return the properties that an object schema declares, in any of its choices."""
        found: dict[str, Any] = {}
        for choice in self.choices(schema):
            for name, part in properties_of(choice).items():
                found.setdefault(name, part)
        return found

    def at(self, path: Sequence[int | str]) -> dict[str, Any]:
        """Return the schema of the value at `path`, empty where it is not declared."""
        schema: Any = self.root
        for part in path:
            schema = self._key(schema, part) if isinstance(part, str) else self.item(schema, part)
        return self.resolved(schema)

    def _key(self, schema: Any, name: str) -> Any:
        found = self.properties(schema)
        rest = (choice["additionalProperties"] for choice in self.choices(schema) if "additionalProperties" in choice)
        return found[name] if name in found else next(rest, None)

    def item(self, schema: Any, place: int) -> Any:
        """Return the schema of an item of an array; None where it is not declared."""
        for choice in self.choices(schema):
            prefix: list[Any] = choice.get("prefixItems") or []
            if place < len(prefix):
                return prefix[place]
            if "items" in choice:
                return choice["items"]
        return None


def written_out(schema: Any, walk: SchemaWalk) -> Any:
    """Return a schema with what its references lead to in their place; of a type inside itself, its `type` alone.

    Args:
        schema: The schema, or a part of it.
        walk: The walk over the schema in which references are looked up.

    Raises:
        SchemaTooLarge: It comes to too much.
    """
    if not isinstance(schema, Mapping):
        return schema
    named = cast("Mapping[str, Any]", schema)
    ref = ref_of(named)
    found = {key: value for key, value in walk.resolved(named).items() if key != "$defs"}
    if ref is not None and ref in walk.open:
        return {key: found[key] for key in ("type", "description") if key in found}
    with walk.part(ref):
        return rewrite(found, lambda part: written_out(part, walk))


def _values_in(*roots: Any) -> Iterator[tuple[Any, int]]:
    """Yield every value in JSON shapes with its depth, the roots themselves first."""
    waiting = [(root, 0) for root in roots]
    while waiting:
        part, depth = waiting.pop()
        yield part, depth
        if isinstance(part, Mapping):
            waiting += [(inner, depth + 1) for inner in cast("Mapping[Any, Any]", part).values()]
        elif isinstance(part, list):
            waiting += [(inner, depth + 1) for inner in cast("list[Any]", part)]


def _characters_of(part: Any) -> int:
    """Return the characters of a value, of an object those of its keys."""
    if isinstance(part, Mapping):
        return sum(len(str(key)) for key in cast("Mapping[Any, Any]", part))
    return 0 if isinstance(part, list) else len(str(part))


def check_nesting(tool: str, schema: Any) -> None:
    """Raise SchemaTooLarge for a schema that is nested deeper than a walk goes, its references not followed."""
    if any(depth > 2 * _DEEPEST for _, depth in _values_in(schema)):  # each schema is in a keyword of another
        raise SchemaTooLarge(tool)


def check_size(tool: str, *schemas: Any) -> int:
    """Return how many parts the schemas of a tool have, objects and lists, their references not followed.

    Raises:
        SchemaTooLarge: They are nested deeper, or come to more parts or characters than a walk takes.
    """
    parts = characters = 0
    for part, depth in _values_in(*schemas):
        parts += isinstance(part, Mapping | list)
        characters += _characters_of(part) + 1
        if parts > _MOST_PARTS or characters > _MOST_CHARACTERS or depth > 2 * _DEEPEST:
            raise SchemaTooLarge(tool)
    return parts
