"""Well-formed JSON schemas: a keyword with a value that JSON Schema does not allow is left out, and all else stays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from math import isfinite
from typing import Any, NamedTuple, cast

from toolcrib.jsonschema._patterns import is_pattern
from toolcrib.jsonschema._references import dangling, with_definitions
from toolcrib.jsonschema._repair import any_of, of_newer_version, referring
from toolcrib.jsonschema._visitor import ABOUT, children, definitions_in, properties_of, ref_of, rewrite
from toolcrib.jsonschema._words import described, in_prose, path_of

_KINDS = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
_SAYS_NOTHING = ABOUT | {"format", "contentEncoding", "contentMediaType", "contentSchema"}  # of what fits
_WRONG = object()
_MOST_NAMED = 5


class WellFormed(NamedTuple):
    """A schema without wrong keywords.

    Attributes:
        schema: The schema, of the newest version, whose references all lead to `#/$defs/NAME`.
        wrong: The places of the keywords that are left out of it, in full or in part.
    """

    schema: Mapping[str, Any]
    wrong: Sequence[str]

    @property
    def wrong_text(self) -> str:
        """The first few of the places, for a line of a log; empty without any."""
        named = ", ".join(f"{place!r:.200}" for place in self.wrong[:_MOST_NAMED])
        return f"{named} and {len(self.wrong) - _MOST_NAMED} more" if len(self.wrong) > _MOST_NAMED else named


def well_formed(tool: str, schema: Mapping[str, Any]) -> WellFormed:
    """Return a schema without the keywords whose value JSON Schema does not allow.

    Leaving one out lets more values fit. So a condition with one in it (`not`, `if`, and `contains` with a
    `maxContains`) is said in words instead, and a `oneOf` becomes an `anyOf`.

    Raises:
        SchemaTooLarge: It is nested too deep, or what references lead to would have to be written too often.
    """
    newer = of_newer_version(tool, schema)
    lost = dangling(newer)
    complete = with_definitions(tool, newer)
    # definitions with a wrong keyword, and those that refer to them
    table, found = properties_of(complete, "$defs"), set[str]()
    for name, part in table.items():
        repair = _Keywords(frozenset())
        repair.part(part, ())
        found |= {name} if repair.widened else set()
    repair = _Keywords(referring(table, found) if found else found)
    repaired = repair.part(complete, ())
    places = [] if lost is None else [path_of((*lost[0], "$ref"))]
    return WellFormed(repaired, [*dict.fromkeys([*places, *repair.wrong])])


def keyword_fits(keyword: str, value: Any) -> bool:
    """Return whether JSON Schema allows a keyword to have a value; schemas in the value are not looked into."""
    read = _READERS.get(keyword)
    return read is None or read(value)[1]


class _Keywords:
    """The repair of the keywords of one schema.

    Attributes:
        wrong: The places of wrong keywords.
        widened: How many of them, and of references to a definition with one, say what fits.
    """

    def __init__(self, definitions: Set[str]) -> None:
        self._definitions = definitions
        self.wrong: list[str] = []
        self.widened = 0

    def part(self, part: Any, place: tuple[str | int, ...]) -> Any:
        """Return one part of a schema, with the schemas in it, without wrong keywords."""
        if not isinstance(part, Mapping):
            return part
        source = cast("Mapping[str, Any]", part)
        right = self._right(source, place)
        self.widened += not self._definitions.isdisjoint(definitions_in({"$ref": ref_of(right)}))
        places = {id(inner): keys for keys, inner in children(right)}
        repaired, widened = dict[str, Any](), set[str]()
        for key, value in right.items():
            before = self.widened
            inside = rewrite({key: value}, lambda inner: self.part(inner, (*place, *places[id(inner)])))
            repaired |= inside
            widened |= {key} if self.widened > before else set()
        return _with_conditions_in_words(repaired, source, widened)

    def _right(self, part: Mapping[str, Any], place: tuple[str | int, ...]) -> dict[str, Any]:
        """Return the keywords of one schema that are right; in what they hold may be wrong ones."""
        right: dict[str, Any] = {}
        for key, value in part.items():
            read = _READERS.get(key)
            found, is_right = (value, True) if read is None else read(value)
            if found is not _WRONG:
                right[key] = found
            if not is_right:
                self.wrong.append(path_of((*place, key)))
                self.widened += key not in _SAYS_NOTHING
        return right


def _with_conditions_in_words(repaired: dict[str, Any], source: Mapping[str, Any], widened: Set[str]) -> dict[str, Any]:
    """Return a schema whose conditions are exact: those that more values fit now are said in words."""
    lost: list[str] = ["not"] if "not" in widened else []
    lost += ["if", "then", "else"] if "if" in widened else []
    lost += ["maxContains"] if "contains" in widened else []
    in_words = {key: source[key] for key in lost if repaired.pop(key, None) is not None}
    exact = described(repaired, in_prose(in_words, ()))
    return any_of(exact) if "oneOf" in widened else exact


# --- what each keyword may be: each reader returns the value that is right, and whether all of it was

_Read = tuple[Any, bool]


def _if(is_right: Callable[[Any], bool]) -> Callable[[Any], _Read]:
    return lambda value: (value, True) if is_right(value) else (_WRONG, False)


def _of(kind: type) -> Callable[[Any], _Read]:
    return _if(lambda value: isinstance(value, kind))


def _is_number(value: Any) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and isfinite(value))


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and (isinstance(value, int) or value.is_integer())


def _is_schema(value: Any) -> bool:
    return isinstance(value, Mapping | bool)


def _is_choice(value: Any) -> bool:
    return isinstance(value, list) and bool(cast("list[Any]", value)) and all(map(_is_schema, cast("list[Any]", value)))


def _read_kinds(value: Any) -> _Read:
    kinds = cast("list[Any]", value if isinstance(value, list) else [value])
    if not kinds or not all(isinstance(kind, str) and kind in _KINDS for kind in kinds):
        return _WRONG, False
    different: list[Any] = [*dict.fromkeys(kinds)]
    return different if isinstance(value, list) else value, True


def _read_names(value: Any) -> _Read:
    if not isinstance(value, list):
        return _WRONG, False
    names = cast("list[Any]", value)
    texts = [name for name in names if isinstance(name, str)]
    return [*dict.fromkeys(texts)], len(texts) == len(names)


def _read_all_of(value: Any) -> _Read:
    items = cast("list[Any]", value if isinstance(value, list) else [])
    parts = [part for part in items if _is_schema(part)]
    return (parts, len(parts) == len(items)) if parts else (_WRONG, False)


def _read_items(value: Any) -> _Read:
    """Read schemas by their place; one that is wrong keeps its place."""
    if _is_schema(value):
        return value, True
    parts = cast("list[Any]", value if isinstance(value, list) else [])
    right: list[Any] = [part if _is_schema(part) else {} for part in parts]
    return (right, all(map(_is_schema, parts))) if parts else (_WRONG, False)


def _read_table(value: Any) -> _Read:
    """Read schemas by name; a name whose schema is wrong may have any value."""
    if not isinstance(value, Mapping):
        return _WRONG, False
    table = cast("Mapping[str, Any]", value)
    right: dict[str, Any] = {name: part if _is_schema(part) else {} for name, part in table.items()}
    return right, all(map(_is_schema, table.values()))


def _read_patterns(value: Any) -> _Read:
    found, is_right = _read_table(value)
    if found is _WRONG:
        return found, False
    patterns = {name: part for name, part in found.items() if is_pattern(name)}
    return patterns, is_right and len(patterns) == len(found)


def _read_dependencies(value: Any) -> _Read:
    """Read schemas, or lists of names, by name."""
    if not isinstance(value, Mapping):
        return _WRONG, False
    table = cast("Mapping[str, Any]", value)
    read = {name: (part, True) if _is_schema(part) else _read_names(part) for name, part in table.items()}
    dependencies = {name: part for name, (part, _) in read.items() if part is not _WRONG}
    return dependencies if dependencies or not table else _WRONG, all(is_right for _, is_right in read.values())


def _read_dependent_names(value: Any) -> _Read:
    if not isinstance(value, Mapping):
        return _WRONG, False
    table = cast("Mapping[str, Any]", value)
    found, is_right = _read_dependencies({name: part for name, part in table.items() if isinstance(part, list)})
    return found, is_right and len(found) == len(table)


_READERS: Mapping[str, Callable[[Any], _Read]] = {
    **dict.fromkeys(("title", "description", "format", "contentEncoding", "contentMediaType"), _of(str)),
    **dict.fromkeys(("$schema", "$id", "$anchor", "$comment", "$ref", "$dynamicRef"), _of(str)),
    **dict.fromkeys(("$dynamicAnchor", "$recursiveRef"), _of(str)),
    **dict.fromkeys(("uniqueItems", "deprecated", "readOnly", "writeOnly", "$recursiveAnchor"), _of(bool)),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), _if(_is_count)),
    **dict.fromkeys(("minProperties", "maxProperties", "minContains", "maxContains"), _if(_is_count)),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _if(_is_number)),
    "multipleOf": _if(lambda value: _is_number(value) and value > 0),
    "pattern": _if(lambda value: isinstance(value, str) and is_pattern(value)),
    **dict.fromkeys(("enum", "examples"), _of(list)),
    "type": _read_kinds,
    "required": _read_names,
    **dict.fromkeys(("anyOf", "oneOf"), _if(_is_choice)),
    "allOf": _read_all_of,
    "prefixItems": lambda value: _read_items(value) if isinstance(value, list) else (_WRONG, False),
    "items": _read_items,
    **dict.fromkeys(("additionalItems", "unevaluatedItems", "contains", "contentSchema"), _if(_is_schema)),
    **dict.fromkeys(("additionalProperties", "unevaluatedProperties", "propertyNames"), _if(_is_schema)),
    **dict.fromkeys(("not", "if", "then", "else"), _if(_is_schema)),
    **dict.fromkeys(("properties", "$defs", "definitions", "dependentSchemas"), _read_table),
    "patternProperties": _read_patterns,
    "dependencies": _read_dependencies,
    "dependentRequired": _read_dependent_names,
}
