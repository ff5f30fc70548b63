"""Repair of JSON schemas of another party: what no value could ever fit is read as its author meant it.

A model is shown, and its arguments are checked against, the same repaired schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from itertools import count
from typing import Any, cast

from toolcrib.errors import SchemaTooLarge
from toolcrib.jsonschema._composition import conjunction
from toolcrib.jsonschema._merging import merged
from toolcrib.jsonschema._visitor import (
    CHOICES,
    children,
    definitions_in,
    properties_of,
    ref_of,
    rewrite,
    subschemas,
)
from toolcrib.jsonschema._walk import SchemaWalk, check_nesting

_OLD_VERSIONS = ("http://json-schema.org/draft-03/schema", "http://json-schema.org/draft-04/schema")
_KINDS = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
_MAY_BE_NULL = frozenset({"const", "default", "example"})
_LIMITS = (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum"))
_LISTED_ITEMS = "http://json-schema.org/draft-07/schema#"
_LISTING = (  # the versions whose `items` may be a list, as those before them
    "http://json-schema.org/draft-06/schema",
    "http://json-schema.org/draft-07/schema",
    "https://json-schema.org/draft/2019-09/schema",
)
_IF = ("then", "else")
_BRANCHES = ("allOf", *CHOICES, *_IF, "dependentSchemas", "dependencies")
_APPLIED = ("$ref", *_BRANCHES)
_MOST_STEPS = 50_000  # from a schema to one that its value has to fit besides


def of_newer_version(tool: str, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema with what only drafts 3 and 4 say in their way said as the drafts after them do.

    An exclusive limit was `true` beside the limit, and a property itself said that it is required. A type of another
    name than JSON Schema has, as `any` and `file`, was one that any value fits. What `dependencies` say is said by
    `dependentRequired` and `dependentSchemas`. A schema that names no version is often
    of these. A keyword that is null is left out, and null in a list of types is the type of that name. A name that is
    required twice is so once.

    Raises:
        SchemaTooLarge: It is nested too deep to be read; names the tool.
    """
    check_nesting(tool, schema)
    newer = _newer(schema)
    declared: Any = newer.get("$schema")
    version = declared.rstrip("#") if isinstance(declared, str) else ""
    if version in _OLD_VERSIONS or (version not in _LISTING and _lists_items(newer)):
        newer["$schema"] = _LISTED_ITEMS
    return newer


def drops_keywords(schema: Mapping[str, Any]) -> bool:
    """Return whether `of_newer_version` leaves a keyword out: one that is null, or a type that older drafts leave open.

    Such a schema is refused as a whole by who reads it as of the newest version.
    """
    return any(
        _is_open_type(part.get("type")) or any(value is None for key, value in part.items() if key not in _MAY_BE_NULL)
        for part in subschemas(schema)
    )


def _is_open_type(kinds: Any) -> bool:
    named = cast("list[Any]", kinds) if isinstance(kinds, list) else [kinds]
    return any(isinstance(kind, str) and kind not in _KINDS for kind in named)


def _newer(part: Mapping[str, Any]) -> dict[str, Any]:
    newer = rewrite({key: value for key, value in part.items() if value is not None or key in _MAY_BE_NULL}, _newer)
    kinds: Any = newer.get("type")
    named = cast("list[Any]", kinds) if isinstance(kinds, list) else [kinds]
    if _is_open_type(kinds):
        del newer["type"]
    elif isinstance(kinds, list) and all(kind is None or isinstance(kind, str) for kind in named):
        newer["type"] = [*dict.fromkeys("null" if kind is None else kind for kind in named)]
    for exclusive, limit in _LIMITS:
        if isinstance(newer.get(exclusive), bool) and newer.pop(exclusive) and limit in newer:
            newer[exclusive] = newer.pop(limit)
    rest = dict(properties_of(newer, "dependencies"))
    for name, needed in [*rest.items()]:
        key = "dependentSchemas" if isinstance(needed, Mapping | bool) else "dependentRequired"
        if isinstance(needed, Mapping | bool | list):
            newer[key] = {**properties_of(newer, key), name: rest.pop(name)}
    if isinstance(newer.get("dependencies"), Mapping):
        newer["dependencies"] = rest
        newer = newer if rest else {key: part for key, part in newer.items() if key != "dependencies"}
    table = properties_of(newer).items()
    flagged = [name for name, inner in table if _flag(inner) is True]
    required: Any = newer.get("required", [])
    names = cast("list[Any]", required if isinstance(required, list) else [None])
    if (flagged or names) and all(isinstance(name, str) for name in names):
        newer["required"] = [*dict.fromkeys([*names, *flagged])]
    if table:
        newer["properties"] = {name: _without_flag(inner) for name, inner in table}
    return newer


def _flag(part: Any) -> Any:
    return cast("Mapping[str, Any]", part).get("required") if isinstance(part, Mapping) else None


def _without_flag(part: Any) -> Any:
    if not isinstance(_flag(part), bool):
        return part
    return {name: value for name, value in cast("Mapping[str, Any]", part).items() if name != "required"}


def _lists_items(part: Mapping[str, Any]) -> bool:
    return isinstance(part.get("items"), list) or any(_lists_items(inner) for _, inner in children(part))


def satisfiable(tool: str, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema that something can fit, as far as its faults are those that generators of schemas make.

    A name that is required is declared. A name that an object declares or requires, or that one of the schemas does
    which it has to fit besides, is declared also where other names are refused, if no object could have it otherwise.
    An enum without values says nothing of what has to be given; one of an optional property still allows it no value.

    Each repair lets more values fit. What is under `not`, in an `if`, or counted by `maxContains` stays as it is, with
    the definitions that it refers to; and a `oneOf` with a repair in it becomes an `anyOf`.

    Raises:
        SchemaTooLarge: The targets of its references come to too much; names the tool.
    """
    return _Repair(tool, schema).schema()


class _Repair:
    """The repair of one schema."""

    def __init__(self, tool: str, schema: Mapping[str, Any]) -> None:
        self._walk = SchemaWalk(schema, tool)
        self._definitions = properties_of(schema, "$defs")
        self._has_closed = any(_is_closed(part) for part in subschemas(schema))
        self._steps = 0
        self._added: dict[tuple[str, tuple[str, ...]], str] = {}
        self._waiting: list[tuple[str, str, tuple[str, ...]]] = []
        self._widened = 0

    def schema(self) -> dict[str, Any]:
        """Return the schema with its definitions, and with those that its references need besides."""
        root = self._walk.root
        repaired = self._part({key: value for key, value in root.items() if key != "$defs"})
        exact, table, widened = self._exact(), dict[str, Any](), set[str]()
        for name, part in self._definitions.items():
            before = self._widened
            table[name] = _exact(part) if name in exact else self._part(part)
            widened |= {name} if self._widened > before else set()
        while self._waiting:
            name, ref, admitted = self._waiting.pop()
            table[name] = self._part(self._walk.resolved({"$ref": ref}), admitted=admitted)
            widened.add(name)
        repaired = {**repaired, "$defs": table} if table else repaired
        repaired = {key: repaired[key] for key in (*root, *repaired) if key in repaired}
        return _one_of_any(repaired, referring(table, widened)) if widened else repaired

    def _exact(self) -> set[str]:
        """Return the definitions that stay as they are, as it matters whether a value does not fit them."""
        schemas = [part[key] for part in subschemas(self._walk.root) for key in _exact_keys(part)]
        found, waiting = set[str](), [name for part in schemas for name in definitions_in(part)]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += definitions_in(self._definitions.get(name))
        return found

    def _part(
        self, part: Any, *, needed: bool = True, known: Set[str] = frozenset(), admitted: Iterable[str] = ()
    ) -> Any:
        """Return one part of a schema, repaired.

        Args:
            part: The part.
            needed: The value has to be there.
            known: The names that the object around a branch of a choice declares.
            admitted: The names that it may not refuse.
        """
        if not isinstance(part, Mapping):
            return part
        with self._walk.part():
            source = cast("Mapping[str, Any]", part)
            repaired = dict(source)
            if needed and repaired.get("enum") == []:
                del repaired["enum"]
                self._widened += 1
            if self._has_closed and isinstance(repaired.get("allOf"), list):
                repaired = self._joined(repaired)
            table, rest = properties_of(repaired), cast("Any", repaired.get("additionalProperties"))
            if table and rest is not False:
                missing = [name for name in _texts(repaired.get("required")) if name not in known and name not in table]
                schema_of_others = cast("Mapping[str, Any]", rest if isinstance(rest, Mapping) else {})
                repaired["properties"] = {**table, **dict.fromkeys(missing, schema_of_others)}
            if self._has_closed:
                self._open(repaired, admitted)
            return self._with_parts(repaired, needed, known, admitted)

    def _with_parts(
        self, part: Mapping[str, Any], needed: bool, known: Set[str], admitted: Iterable[str]
    ) -> dict[str, Any]:
        """Return a part with the schemas in it repaired."""
        table, required = properties_of(part), _texts(part.get("required"))
        handled = {"properties", *_BRANCHES, *_exact_keys(part)}
        repaired = {**part, **rewrite({key: value for key, value in part.items() if key not in handled}, self._part)}
        repaired |= {key: _exact(part[key]) for key in _exact_keys(part)}
        if table:
            repaired["properties"] = {name: self._part(inner, needed=name in required) for name, inner in table.items()}
        inside = known | table.keys()
        for key in _BRANCHES:
            if key not in part:
                continue
            before = self._widened
            names = [*admitted, *(self._admitted(part, key) if self._has_closed else ())]
            branch = partial(self._part, needed=needed, known=inside, admitted=names)
            repaired |= rewrite({key: part[key]}, branch)
            if key == "oneOf" and self._widened > before:
                repaired = any_of(repaired)
        return repaired

    # --- closed objects

    def _joined(self, part: dict[str, Any]) -> dict[str, Any]:
        """Return an object with the parts that it has to fit as one, where one of them is closed."""
        outer = {key: value for key, value in part.items() if key != "allOf"}
        parts = conjunction(part["allOf"], self._walk)
        if parts is None or ref_of(outer) is not None:
            return part
        schemas = (outer, *parts)
        if not all(_is_object(schema) for schema in schemas) or not any(_is_closed(schema) for schema in schemas):
            return part
        self._widened += 1
        return merged(*schemas)

    def _open(self, part: dict[str, Any], admitted: Iterable[str]) -> None:
        """Declare the names that a closed object could not have otherwise, also in what its reference leads to."""
        names: dict[str, Any] = {}
        if not part.keys().isdisjoint(_APPLIED):
            names = self._names(part)
        elif part.get("additionalProperties") is False:
            names = {name: {} for name in _texts(part.get("required"))}
        names |= {name: {} for name in admitted if name not in names}
        ref = ref_of(part)
        if ref is not None and names and self._refuses(ref, names):
            part["$ref"] = f"#/$defs/{self._definition(ref, tuple(sorted(names)))}"
        table = properties_of(part)
        if part.get("additionalProperties") is False or (part.get("unevaluatedProperties") is False and admitted):
            missing = {name: schema for name, schema in names.items() if name not in table}
            if missing:
                part["properties"] = {**table, **missing}
                self._widened += 1

    def _definition(self, ref: str, names: tuple[str, ...]) -> str:
        """Return the name of a definition that is what a reference leads to, and admits some names."""
        if (ref, names) not in self._added:
            used = {*self._definitions, *self._added.values()}
            wanted = ref.rsplit("/", 1)[-1]
            number = next(number for number in count(2) if f"{wanted}_{number}" not in used)
            self._added[ref, names] = name = f"{wanted}_{number}"
            self._waiting.append((name, ref, names))
        self._widened += 1
        return self._added[ref, names]

    def _refuses(self, ref: str, names: Iterable[str]) -> bool:
        """Return whether what a reference leads to is closed to one of some names."""
        closed = [properties_of(part) for part in self._applied({"$ref": ref}) if _is_closed(part)]
        return any(name not in table for table in closed for name in names)

    def _admitted(self, part: Mapping[str, Any], key: str) -> list[str]:
        """Return the names that the schemas of a keyword may not refuse, as no object could have them otherwise."""
        if key == "allOf":
            return [*self._names(part)]
        branches, required = _choice(part, key)
        beside = {name: value for name, value in part.items() if name not in (_IF if key in _IF else (key,))}
        for applied in self._applied(beside, keys=("allOf",)):
            required += _texts(applied.get("required"))
        if any(not self._is_closed(branch) for branch in branches):
            return required
        possible = {*self._names(*branches)}
        return [*required, *(name for name in self._names(beside) if name not in possible)]

    def _is_closed(self, part: Any) -> bool:
        return part is False or any(_is_closed(applied) for applied in self._applied(part, keys=("allOf",)))

    def _names(self, *parts: Any) -> dict[str, Any]:
        """Return the names that parts, and what has to be fit besides, in any choice, declare or require.

        Each has the schema of its values.
        """
        found: dict[str, list[Any]] = {}
        for part in self._applied(*parts):
            for name, schema in properties_of(part).items():
                schemas = found.setdefault(name, [])
                schemas += [schema] if schema not in schemas and schema is not False else []
            for name in _texts(part.get("required")):
                found.setdefault(name, [])
        return {
            name: schemas[0] if len(schemas) == 1 else {"anyOf": schemas} if schemas else {}
            for name, schemas in found.items()
        }

    def _applied(self, *parts: Any, keys: Sequence[str] = _BRANCHES) -> Iterator[Mapping[str, Any]]:
        """Yield parts, and the schemas that the same value has to fit besides; each reference is followed once."""
        waiting, followed = [*reversed(parts)], set[str]()
        while waiting:
            part = waiting.pop()
            if not isinstance(part, Mapping):
                continue
            self._steps += 1
            if self._steps > _MOST_STEPS:
                raise SchemaTooLarge(self._walk.tool)
            named = cast("Mapping[str, Any]", part)
            yield named
            ref = ref_of(named)
            if ref is not None and ref not in followed:
                followed.add(ref)
                waiting.append(self._walk.resolved({"$ref": ref}))
            waiting += [inner for (key, *_), inner in children(named) if key in keys]


def _is_object(part: Mapping[str, Any]) -> bool:
    return part.get("type", "object") in ("object", ["object"])


def _is_closed(part: Mapping[str, Any]) -> bool:
    return part.get("additionalProperties") is False or part.get("unevaluatedProperties") is False


def _choice(part: Mapping[str, Any], key: str) -> tuple[list[Any], list[str]]:
    """Return the schemas of which a value has to fit one, by a keyword, and the names that it has where they count."""
    if key in CHOICES:
        return cast("list[Any]", part[key] if isinstance(part[key], list) else []), []
    if key in _IF:
        condition: Any = part.get("if")
        required = cast("Mapping[str, Any]", condition).get("required") if isinstance(condition, Mapping) else None
        return [part.get(name, True) for name in _IF], _texts(required)
    return [True], [*properties_of(part, key)]


def _texts(names: Any) -> list[str]:
    return [name for name in cast("list[Any]", names) if isinstance(name, str)] if isinstance(names, list) else []


def _exact_keys(part: Mapping[str, Any]) -> list[str]:
    """Return the keywords of a schema that values must not fit, or not too many, or whose fit has consequences."""
    return [key for key in ("not", "if", *(("contains",) if "maxContains" in part else ())) if key in part]


def _exact(part: Any) -> Any:
    """Return a schema that the same values fit, without an enum of no values: no provider takes one."""
    if not isinstance(part, Mapping):
        return part
    same = rewrite(cast("Mapping[str, Any]", part), _exact)
    return {"not": {}} if same.get("enum") == [] else same


# --- a `oneOf` with a repair in it


def any_of(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema with an `anyOf` in place of its `oneOf`."""
    choice = {"anyOf": part["oneOf"]}
    if "anyOf" in part:
        choice = {"allOf": [*part.get("allOf", ()), choice]}
    return {key: value for key, value in part.items() if key != "oneOf"} | choice


def referring(table: Mapping[str, Any], names: Set[str]) -> Set[str]:
    """Return the names of some definitions, and of those that refer to them at any depth."""
    users: dict[str, list[str]] = {}
    for name, part in table.items():
        for used in definitions_in(part):
            users.setdefault(used, []).append(name)
    found, waiting = set[str](), [*names]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += users.get(name, ())
    return found


def _one_of_any(part: Mapping[str, Any], widened: Set[str]) -> dict[str, Any]:
    """Return a schema whose `oneOf` refer to none of the definitions that more values fit than did."""
    exact = {key: part[key] for key in _exact_keys(part)}
    changed = rewrite(part, lambda inner: _one_of_any(inner, widened)) | exact
    refers = any(name in widened for branch in part.get("oneOf") or () for name in definitions_in(branch))
    return any_of(changed) if refers else changed
