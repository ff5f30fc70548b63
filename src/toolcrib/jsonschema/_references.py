"""References of a JSON schema of another party: each is resolved once, and written anew as one to `#/$defs/...`.

A reference may lead anywhere in its schema: to `#/definitions/A`, `#/properties/a`, `#`, an `$anchor`, an `$id`, or
`%3C` for a character. Few providers read all of these, and what is made of a schema here reads `$defs` alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple, TypeAlias, cast
from urllib.parse import unquote, urljoin

from toolcrib.jsonschema._composition import as_one
from toolcrib.jsonschema._visitor import children, pointed_at, ref_of, rewrite
from toolcrib.jsonschema._walk import SchemaWalk

_PLAIN = re.compile(r"#/\$defs/([\w.-]+)", re.ASCII)
_BOOLEANS: Mapping[bool, dict[str, Any]] = {True: {}, False: {"not": {}}}
_RESOLVED = frozenset({"$id", "$anchor", "$defs", "definitions"})  # of no use once each reference is written anew
_Path: TypeAlias = tuple[str | int, ...]


class _Place(NamedTuple):
    """The target of a reference: a schema, and the address by which references in it are read."""

    schema: Mapping[str, Any] | bool
    base: str


def with_definitions(tool: str, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema whose references all lead to `#/$defs/NAME`; one that leads nowhere is left out of it.

    It is `schema` itself where they do so already.

    Raises:
        SchemaTooLarge: Their targets would have to be written too often; names the tool.
    """
    index = _Index(schema)
    table: Any = schema.get("$defs", {})
    definitions = cast("Mapping[str, Any]", table if isinstance(table, Mapping) else {})
    plain = (_PLAIN.fullmatch(ref) for _, _, ref in index.references)
    known = all(found and isinstance(definitions.get(found[1]), Mapping) for found in plain)
    as_it_is = known and not index.addresses and "definitions" not in schema
    return schema if as_it_is else _Rewriting(tool, index).copy()


def arguments_schema(tool: str, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of a tool's arguments `with_definitions`, and with the properties at its root.

    What the root refers to, or has to fit besides (`allOf`), becomes part of it; a model is then shown all arguments.

    Raises:
        SchemaTooLarge: As `with_definitions`.
    """
    complete = with_definitions(tool, schema)
    walk = SchemaWalk(complete, tool)
    root = _without_reference(complete, walk)
    joined = as_one(dict(root), walk) if "allOf" in root else root
    return joined if "allOf" not in joined else root


def _without_reference(root: Mapping[str, Any], walk: SchemaWalk) -> Mapping[str, Any]:
    """Return a root that refers to nothing itself: it is what it refers to, or has to fit that besides its own."""
    if ref_of(root) is None:
        return root
    if not root.keys() & {"properties", "required", "allOf"}:
        return walk.resolved(root)
    rest = {key: value for key, value in root.items() if key not in ("$ref", "allOf")}
    return {**rest, "allOf": [{"$ref": root["$ref"]}, *root.get("allOf", ())]}


def dangling(schema: Mapping[str, Any]) -> tuple[_Path, str] | None:
    """Return the place and the text of the first reference that leads nowhere, or None."""
    index = _Index(schema)
    lost = ((place, ref) for place, base, ref in index.references if index.find(ref, base) is None)
    return next(lost, None)


class _Index:
    """All schemas in a schema: what they refer to, and by what addresses references find them.

    Attributes:
        references: The place, the base address and the text of each reference.
        addresses: The places that `$id` and `$anchor` name.
    """

    def __init__(self, root: Mapping[str, Any]) -> None:
        self.root = root
        self.references: list[tuple[_Path, str, str]] = []
        self.addresses: dict[str, Mapping[str, Any]] = {}
        self._bases: dict[int, str] = {}
        waiting: list[tuple[_Path, Any, str]] = [((), root, "")]
        while waiting:
            place, part, base = waiting.pop()
            if isinstance(part, Mapping) and id(cast("object", part)) not in self._bases:
                named = cast("Mapping[str, Any]", part)
                base = self._note(place, named, base)
                waiting += [((*place, *keys), inner, base) for keys, inner in children(named)]

    def _note(self, place: _Path, part: Mapping[str, Any], base: str) -> str:
        """Keep the addresses and the reference of one schema, and return its base address."""
        for key in ("$id", "$anchor"):
            text: Any = part.get(key)
            if isinstance(text, str):
                address = _joined(base, text if key == "$id" else f"#{text}")
                self.addresses.setdefault(address, part)
                base = base if "#" in address else address
        self._bases[id(part)] = base
        ref = ref_of(part)
        if ref is not None:
            self.references.append((place, base, ref))
        return base

    def base_of(self, part: Mapping[str, Any], base: str) -> str:
        """Return the base address of one schema; `base` for one that stands where no schema does."""
        return self._bases.get(id(part), base)

    def find(self, ref: str, base: str) -> _Place | None:
        """Return where a reference leads; None where that is not in the schema."""
        address, _, fragment = _joined(base, ref).partition("#")
        document = self.addresses.get(address) if address else self.root
        found: Any = self.addresses.get(f"{address}#{fragment}")
        if found is None and document is not None and (not fragment or fragment.startswith("/")):
            found = pointed_at(document, fragment)
        if isinstance(found, bool):
            return _Place(found, address)
        if not isinstance(found, Mapping):
            return None
        named = cast("Mapping[str, Any]", found)
        return _Place(named, self.base_of(named, address))


def _joined(base: str, ref: str) -> str:
    try:
        return urljoin(base, ref) if base else ref
    except ValueError:  # it is not an address
        return ref


class _Rewriting:
    """One schema on its way to a schema with definitions."""

    def __init__(self, tool: str, index: _Index) -> None:
        self._tool, self._index = tool, index
        self._walk = SchemaWalk(index.root, tool)
        self._names: dict[int, str] = {}
        self._once: set[int] = set()
        self._waiting: list[tuple[str, _Place]] = []
        self._used_names: set[str] = set()

    def copy(self) -> dict[str, Any]:
        """Return the schema with definitions of what it refers to."""
        root = self._index.root
        written = self._written(root, self._index.base_of(root, ""))
        definitions: dict[str, Any] = {}
        while self._waiting:
            name, place = self._waiting.pop(0)
            definitions[name] = self._definition(place)
        return {**written, "$defs": definitions} if definitions else written

    def _definition(self, place: _Place) -> dict[str, Any]:
        if isinstance(place.schema, bool):
            return _BOOLEANS[place.schema]
        return self._written(place.schema, place.base)

    def _written(self, part: Any, base: str) -> Any:
        if not isinstance(part, Mapping):
            return part
        named = cast("Mapping[str, Any]", part)
        if id(named) in self._once:
            self._walk.count()
        self._once.add(id(named))
        base = self._index.base_of(named, base)
        rest = {key: value for key, value in named.items() if key not in _RESOLVED}
        copied = rewrite(rest, partial(self._written, base=base))
        ref = ref_of(named)
        if ref is not None:
            del copied["$ref"]
            found = self._index.find(ref, base)
            copied = copied if found is None else {"$ref": f"#/$defs/{self._name_of(found, ref)}", **copied}
        return copied

    def _name_of(self, place: _Place, ref: str) -> str:
        """Return the name of the definition that a reference leads to; the first reference to it names it."""
        if id(place.schema) not in self._names:
            last = re.split(r"[/#]", ref.rstrip("/#"))[-1]
            wanted = re.sub(r"[^\w.-]+", "_", unquote(last), flags=re.ASCII).strip("_") or "Whole"
            name, number = wanted, 2
            while name in self._used_names:
                name, number = f"{wanted}_{number}", number + 1
            self._used_names.add(name)
            self._names[id(place.schema)] = name
            self._waiting.append((name, place))
        return self._names[id(place.schema)]
