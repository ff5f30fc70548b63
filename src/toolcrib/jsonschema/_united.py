"""One object in place of a choice of objects: the arguments of all of them, and in words which belong together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from itertools import combinations
from typing import Any, Literal, NamedTuple, cast

from toolcrib.jsonschema._composition import branches
from toolcrib.jsonschema._merging import both_of
from toolcrib.jsonschema._visitor import ABOUT, kind_of, properties_of, values_of
from toolcrib.jsonschema._walk import SchemaWalk
from toolcrib.jsonschema._words import in_prose

MOST_WORDS = 600
"""Characters of what is said in words of the choices of one object."""

_UNEVALUATED = {"unevaluatedProperties": "additionalProperties", "unevaluatedItems": "items"}
_APPLIED = frozenset({"$ref", "anyOf", "oneOf", "allOf", "if", "dependentSchemas", "contains"})
_OF_CHOICE = frozenset({"type", "properties", "required", "additionalProperties", "patternProperties"})


def write_unevaluated(schema: dict[str, Any]) -> None:
    """Write a rule for what is not evaluated as one for all others, where nothing but the schema itself evaluates."""
    if not schema.keys().isdisjoint(_APPLIED):
        return
    for keyword, others in _UNEVALUATED.items():
        rule = schema.pop(keyword, None)
        if rule is not None:
            schema.setdefault(others, rule)


def united(
    outer: dict[str, Any], choices: Sequence[Any], keyword: Literal["anyOf", "oneOf"], walk: SchemaWalk
) -> tuple[dict[str, Any], str]:
    """Return an object with the arguments of each of some choices, and in words which of them belong together.

    An argument that the object around the choices does not declare is shown as the choices have it that declare or
    require it.
    """
    options = [option for choice in choices for option in branches(choice, walk)]
    objects = [option for option in options if option.get("type", "object") in ("object", ["object"])]
    for option in objects:
        write_unevaluated(option)
    if not objects:
        return outer, ""
    table: dict[str, Any] = dict(properties_of(outer))
    around: Any = {} if outer.get("patternProperties") else outer.get("additionalProperties") or {}
    bounded, varying = set[str](), set[str]()
    for name in dict.fromkeys(name for choice in objects for name in _names(choice)):
        found = _in_choices(name, objects, table)
        free = [part for part in found if _is_free(part)]
        bounded |= {name} if free else set()
        varying |= {name} if len(_different(found)) > 1 else set()
        if not free or name not in table:
            joined = both_of(table.get(name, around), free[0] if free else _any_of(found))
            table[name] = {} if joined is True else joined
    needed = set[str].intersection(*(set(choice.get("required", ())) for choice in objects))
    required = [name for name in table if name in needed or name in outer.get("required", ())]
    shown = {**outer, "properties": table, **({"required": required} if required else {})}
    lost = _add_others(shown, objects)
    texts = _Texts(shown, outer, keyword, choices, walk)
    words = texts.of(objects, varying)
    words = words if len(words) <= MOST_WORDS else texts.of(objects, bounded)
    return shown, "; ".join(filter(None, (words, lost)))


def _names(choice: Mapping[str, Any]) -> list[str]:
    return [*dict.fromkeys([*properties_of(choice), *choice.get("required", ())])]


def _in_choices(name: str, objects: Sequence[Mapping[str, Any]], known: Mapping[str, Any]) -> list[Any]:
    """Return the schema of an argument in each choice that may have it.

    An argument that the object around the choices does not declare belongs to those that declare or require it.
    """
    found: list[Any] = []
    for choice in objects:
        if name in properties_of(choice):
            found.append(properties_of(choice)[name])
        elif name in known or name in choice.get("required", ()):
            found.append(_others(choice))
    return [part for part in found if part is not False] or [False]


def _others(choice: Mapping[str, Any]) -> Any:
    """Return the schema that an object has for undeclared properties."""
    return True if choice.get("patternProperties") else choice.get("additionalProperties", True)


def _add_others(shown: dict[str, Any], objects: Sequence[Mapping[str, Any]]) -> str:
    """Add the schema of all choices for undeclared names, and return in words the part of it that cannot be shown."""
    rules = [_others(choice) for choice in objects]
    open_rules = [rule for rule in rules if rule is not False]
    joined = True if any(map(_is_free, rules)) else _any_of(open_rules) if open_rules else False
    if joined is not True:
        shown["additionalProperties"] = both_of(shown.get("additionalProperties", True), joined)
    evaluates = any("additionalProperties" in choice or "patternProperties" in choice for choice in objects)
    is_lost = evaluates and open_rules and "unevaluatedProperties" in shown
    return in_prose({"unevaluatedProperties": shown.pop("unevaluatedProperties")}, ()) if is_lost else ""


def _is_free(part: Any) -> bool:
    return part is True or (isinstance(part, Mapping) and not part.keys() - ABOUT)


def _different(parts: Sequence[Any]) -> list[Any]:
    return [part for index, part in enumerate(parts) if part not in parts[:index]]


def _any_of(parts: Sequence[Any]) -> Any:
    different = _different(parts)
    if len(different) == 1:
        return different[0]
    values = [_constant(part) for part in different]
    if not all(value is not None for value in values):
        return {"anyOf": different}
    found = [value for (value,) in cast("list[tuple[Any]]", values)]
    about = {key: value for key, value in different[0].items() if key == "description"}
    kinds = [*dict.fromkeys(map(kind_of, found))]
    return {**about, "type": kinds[0] if len(kinds) == 1 else kinds, "enum": found}


def _constant(part: Any) -> tuple[Any] | None:
    values = values_of(part) or ()
    return (values[0],) if len(values) == 1 else None


# --- what is said in words


class _Texts(NamedTuple):
    """The words about the choices of one object.

    Attributes:
        shown: The object as it is shown.
        outer: The keywords beside the choices.
        keyword: The keyword of the choices.
        choices: The choices as they are written.
        walk: The walk over the schema in which references are looked up.
    """

    shown: Mapping[str, Any]
    outer: Mapping[str, Any]
    keyword: Literal["anyOf", "oneOf"]
    choices: Sequence[Any]
    walk: SchemaWalk

    def of(self, objects: Sequence[Mapping[str, Any]], varying: Set[str]) -> str:
        """Return which arguments have to be given together, and what is not shown of them; empty where nothing is.

        Args:
            objects: The choices.
            varying: The arguments of which each choice says what it does.
        """
        texts = [self._choice(choice, varying) for choice in objects]
        different = list(dict.fromkeys(texts))
        text = "" if "" in texts else f"give {', or '.join(different)}"
        inner = any("oneOf" in part for choice in self.choices for part in self.walk.choices(choice))
        if len(texts) == 1 or not (inner or self.keyword == "oneOf"):
            return text
        if "" in texts or len(different) < len(texts):
            return in_prose({self.keyword: [*self.choices]}, ())
        if all(self._exclude(choice, other) for choice, other in combinations(objects, 2)):
            return text
        return in_prose({self.keyword: [*self.choices]}, ()) if inner else f"{text}: only one of these"

    def _choice(self, choice: Mapping[str, Any], varying: Set[str]) -> str:
        table, required = properties_of(choice), choice.get("required", ())
        all_required = {*self.shown.get("required", ())}
        names: list[str] = []
        for name in _names(choice):
            words = self._value(name, table.get(name), varying)
            if name not in required and name not in all_required:
                names += [f"`{name}` (if given, {words})"] if words else []
            elif words or name not in all_required:
                value = _constant(table.get(name))
                names.append(
                    f"`{name}` {words}" if words and value else f"`{name}` ({words})" if words else f"`{name}`"
                )
        more = {key: part for key, part in choice.items() if key not in _OF_CHOICE | ABOUT and part is not True}
        names += filter(None, [in_prose(more, ()), *self._other_names(choice)])
        return " and ".join(names)

    def _value(self, name: str, part: Any, varying: Set[str]) -> str:
        """Return in words what a choice says of an argument that the object as it is shown does not."""
        value = _constant(part)
        if value is not None:
            return repr(value[0]).replace("'", '"') if properties_of(self.shown).get(name) != part else ""
        if not isinstance(part, Mapping) or name not in varying:
            return ""
        known: Any = properties_of(self.outer).get(name, {})
        keywords = self.walk.resolved(cast("Mapping[str, Any]", part)).items()
        return in_prose(
            {key: setting for key, setting in keywords if key not in ABOUT and known.get(key) != setting}, ()
        )

    def _other_names(self, choice: Mapping[str, Any]) -> list[str]:
        """Return in words what a choice says of the arguments that it does not declare."""
        rule, table = _others(choice), properties_of(self.shown)
        names = [f"`{name}`" for name in table if name not in _names(choice)]
        if rule is False:
            return [f"no {', '.join(names)}"] if names else []
        if _is_free(rule) or (not names and self.shown.get("additionalProperties") == rule):
            return []
        return [f"({', '.join([*names, 'others'])}: {in_prose(dict(rule), ABOUT)})"]

    def _exclude(self, first: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
        """Return whether nothing fits two choices: an argument of both has other values, or one refuses a name."""
        for choice, second in ((first, other), (other, first)):
            refused = _others(choice) is False
            if refused and any(name not in properties_of(choice) for name in second.get("required", ())):
                return True
        shared = [name for name in _names(first) if name in self._required(first) and name in self._required(other)]
        values = [(values_of(properties_of(first).get(n)), values_of(properties_of(other).get(n))) for n in shared]
        return any(mine and theirs and all(value not in theirs for value in mine) for mine, theirs in values)

    def _required(self, choice: Mapping[str, Any]) -> Set[str]:
        return {*choice.get("required", ()), *self.outer.get("required", ())}
