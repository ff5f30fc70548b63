"""JSON schemas of the kinds that servers and generators write, each with one oddity."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def object_of(properties: Mapping[str, Any], *required: str, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": list(required), **more}


def with_one(part: Any, **more: Any) -> dict[str, Any]:
    return object_of({"a": part}, "a", **more)


TEXT, WHOLE = {"type": "string"}, {"type": "integer"}
NODE = {"Node": object_of({"next": {"$ref": "#/$defs/Node", "description": "the next"}, "n": WHOLE}, "n")}
CAT = object_of({"kind": {"const": "cat"}, "lives": WHOLE}, "kind")
DOG = object_of({"kind": {"const": "dog"}, "name": TEXT}, "kind", "name")
KINDS: dict[str, dict[str, Any]] = {
    "a reference with constraints beside it": with_one(
        {"$ref": "#/$defs/A", "maxLength": 3, "minLength": 1}, **{"$defs": {"A": {"type": "string", "minLength": 2}}}
    ),
    "a reference with a type beside it": with_one(
        {"$ref": "#/$defs/A", "type": ["integer", "string"]}, **{"$defs": {"A": {"type": ["number", "null"]}}}
    ),
    "a reference with properties beside it": with_one(
        {"$ref": "#/$defs/A", "properties": {"y": TEXT}, "required": ["y"]},
        **{"$defs": {"A": object_of({"x": WHOLE}, "x")}},
    ),
    "a type that holds itself": with_one({"$ref": "#/$defs/Node"}, **{"$defs": NODE}),
    "a type that holds itself with a bound beside it": with_one(
        {"$ref": "#/$defs/N", "minProperties": 1},
        **{"$defs": {"N": object_of({"next": {"$ref": "#/$defs/N", "minProperties": 1}, "n": WHOLE})}},
    ),
    "a closed type that holds itself with a name beside it": with_one(
        {"$ref": "#/$defs/N"},
        **{
            "$defs": {
                "N": object_of(
                    {"next": {"$ref": "#/$defs/N", "properties": {"m": WHOLE}, "required": ["m"]}, "n": WHOLE},
                    "n",
                    additionalProperties=False,
                )
            }
        },
    ),
    "a required name that is missing": object_of({"a": TEXT}, "a", "b"),
    "a required name that is missing and refused": object_of({"a": TEXT}, "a", "b", additionalProperties=False),
    "a required name that is missing inside": with_one(object_of({"x": TEXT}, "y", additionalProperties=False)),
    "a required name with a type for all others": object_of({"a": TEXT}, "b", additionalProperties=WHOLE),
    "branches that only require": object_of({"a": TEXT, "b": WHOLE}, anyOf=[{"required": ["a"]}, {"required": ["b"]}]),
    "branches that only require, inside": with_one(
        object_of({"x": TEXT, "y": WHOLE}, anyOf=[{"required": ["x"]}, {"required": ["y"]}])
    ),
    "branches that only require, one of them, inside": with_one(
        {"type": "object", "oneOf": [{"required": ["x"]}, {"required": ["y"]}]}
    ),
    "branches that require and bound, inside": with_one(
        object_of(
            {"x": TEXT, "y": WHOLE},
            anyOf=[{"required": ["x", "z"]}, {"required": ["y"], "properties": {"x": {"maxLength": 1}}}],
        )
    ),
    "a branch that requires, by reference": with_one(
        object_of({"x": TEXT}, anyOf=[{"$ref": "#/$defs/R"}, {"maxProperties": 0}]),
        **{"$defs": {"R": {"required": ["x"]}}},
    ),
    "a condition that requires": object_of({"a": TEXT}, **{"if": {"required": ["b"]}, "else": {"required": ["a"]}}),
    "a required name without properties": {"type": "object", "required": ["a"]},
    "objects without a type": with_one({"properties": {"x": {"properties": {"y": WHOLE}, "required": ["y"]}}}),
    "arrays without a type": with_one({"items": WHOLE, "minItems": 1}),
    "arrays without items": with_one({"type": "array"}),
    "bounds without a type": object_of({"a": {"minLength": 2}, "b": {"maximum": 3}}, "a", "b"),
    "an empty enum that is required": with_one({"type": "string", "enum": []}),
    "an empty enum that is optional": object_of({"a": {"enum": []}, "b": TEXT}, "b"),
    "an empty enum in a list": with_one({"type": "array", "items": {"enum": []}}),
    "an empty enum under not": with_one({"type": "string", "not": {"enum": []}}),
    "an empty enum under not, by reference": with_one(
        {"type": "string", "not": {"$ref": "#/$defs/E"}}, **{"$defs": {"E": {"enum": []}}}
    ),
    "an empty enum in an if": with_one({"type": "string", "if": {"enum": []}, "then": False}),
    "an empty enum that is counted": with_one(
        {"type": "array", "items": TEXT, "contains": {"enum": []}, "minContains": 0, "maxContains": 0, "minItems": 1}
    ),
    "an empty enum in a choice of one": with_one({"oneOf": [{"enum": []}, TEXT]}),
    "an empty enum in a choice of one, by reference": with_one(
        {"oneOf": [{"$ref": "#/$defs/E"}, TEXT]}, **{"$defs": {"E": {"enum": []}}}
    ),
    "an enum without a type": with_one({"enum": ["x", 1, None, True]}),
    "an enum with values of other types": with_one({"type": "string", "enum": ["x", 1]}),
    "an enum with an empty text": with_one({"type": "string", "enum": ["", "x"]}),
    "allOf beside closed": with_one({"allOf": [object_of({"x": TEXT}, "x")], "additionalProperties": False}),
    "allOf of closed": with_one({"allOf": [object_of({n: TEXT}, n, additionalProperties=False) for n in ("x", "y")]}),
    "allOf of references": with_one(
        {"allOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}], "additionalProperties": False},
        **{"$defs": {"A": object_of({"x": TEXT}, "x"), "B": object_of({"y": WHOLE, "x": {"minLength": 2}})}},
    ),
    "allOf of bounds": with_one(
        {"allOf": [{"type": "number", "minimum": 1}, {"maximum": 15}, {"multipleOf": 2}, {"multipleOf": 3}]}
    ),
    "allOf of values": with_one({"allOf": [{"enum": ["x", "y", "z"]}, {"enum": ["z", "y"]}, {"not": {"const": "z"}}]}),
    "allOf of one reference with a text": with_one(
        {"allOf": [{"$ref": "#/$defs/A"}], "description": "an A"}, **{"$defs": {"A": object_of({"x": TEXT}, "x")}}
    ),
    "allOf at the root beside closed": object_of(
        {"a": TEXT}, allOf=[{"properties": {"x": TEXT}, "required": ["x"]}], additionalProperties=False
    ),
    "a union at the root": {"anyOf": [object_of({"a": TEXT}, "a"), object_of({"b": WHOLE, "a": WHOLE}, "b")]},
    "a union of closed objects at the root": {
        "type": "object",
        "oneOf": [{**CAT, "additionalProperties": False}, {**DOG, "additionalProperties": False}],
    },
    "a union of references at the root": {
        "anyOf": [{"$ref": "#/$defs/C"}, {"$ref": "#/$defs/D"}],
        "$defs": {"C": CAT, "D": DOG},
    },
    "a union in a union at the root": {
        "anyOf": [{"anyOf": [CAT, DOG]}, object_of({"b": WHOLE}, "b")],
        "properties": {"z": TEXT},
    },
    "a choice beside allOf at the root": {"allOf": [object_of({"z": TEXT}, "z")], "oneOf": [CAT, DOG]},
    "a choice at the root that bounds an argument in one branch": object_of(
        {"a": TEXT, "n": WHOLE}, "a", anyOf=[{"properties": {"a": {"const": "x"}}}, {"required": ["n"]}]
    ),
    "a choice at the root that limits an argument in one branch": object_of(
        {"a": TEXT, "n": WHOLE},
        anyOf=[{"properties": {"n": {"maximum": 1}}, "required": ["a"]}, {"not": {"required": ["a"]}}],
    ),
    "not at the root": object_of({"a": TEXT}, "a", **{"not": {"required": ["b"]}}),
    "letters of all languages": with_one({"type": "string", "pattern": r"^\p{L}+$"}),
    "a pattern that looks ahead": with_one({"type": "string", "pattern": r"^(?=.*\d)(?!.*x)[a-z\d]{2,6}$"}),
    "a pattern that names a group": with_one({"type": "string", "pattern": r"^(?<year>\d{4})$"}),
    "characters by their numbers": with_one({"type": "string", "pattern": r"^[\u0061-\u007a\cA\w-.]+$"}),
    "more repeats than RE2 takes": with_one({"type": "string", "pattern": r"^.{1,5000}$"}),
    "names by the numbers of their characters": with_one(
        {"type": "object", "patternProperties": {r"^\u00e9$": WHOLE, "^é$": {"minimum": 2}, "^.{0,2000}$": WHOLE}}
    ),
    "conditions with patterns": object_of(
        {
            "a": {"type": "string", "not": {"pattern": r"^[\u0061-\u0062]+$"}},
            "b": {"type": "string", "if": {"pattern": r"\u0061"}, "then": {"maxLength": 2}, "else": {"maxLength": 1}},
            "c": {"type": "array", "items": TEXT, "not": {"type": "array", "contains": {"$ref": "#/$defs/E"}}},
        },
        "a",
        **{"$defs": {"E": {"type": "string", "pattern": r"\u00e9"}}},
    ),
    "conditions with patterns that cannot be written": object_of(
        {
            "a": {"type": "string", "not": {"pattern": r"^(?=a).{2}$"}},
            "b": {"type": "string", "if": {"pattern": r"^\p{L}$"}, "then": {"maxLength": 2}, "else": {"maxLength": 1}},
            "c": {"type": "string", "not": {"anyOf": [{"$ref": "#/$defs/E"}, {"type": "array"}]}},
        },
        "a",
        **{"$defs": {"E": {"$ref": "#/$defs/F"}, "F": {"type": "string", "pattern": "^(?!a)"}}},
    ),
    "conditions on arrays and references": object_of(
        {
            "a": {"not": {"type": "array"}, "type": ["string", "array"]},
            "b": {"type": "string", "not": {"$ref": "#/$defs/E", "minLength": 3}},
        },
        "a",
        **{"$defs": {"E": TEXT}},
    ),
    "names that need the tables of Unicode": with_one(
        {"type": "object", "patternProperties": {r"^\p{L}+$": WHOLE}, "additionalProperties": False}
    ),
    "an array as a default": with_one({"type": "array", "items": TEXT, "default": ["x"]}),
    "lengths and counts": object_of(
        {
            "a": {"type": "string", "minLength": 2, "maxLength": 4},
            "b": {"type": "array", "items": WHOLE, "minItems": 2, "uniqueItems": True},
        },
        "a",
        "b",
    ),
    "several types": with_one({"type": ["string", "integer", "null"], "minLength": 2, "minimum": 3}),
    "draft 7 with a tuple": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        **with_one({"type": "array", "items": [TEXT, WHOLE]}),
    },
    "a tuple": with_one({"type": "array", "prefixItems": [TEXT, WHOLE], "items": False, "minItems": 2}),
    "names that nothing evaluates": with_one(object_of({"x": TEXT}, unevaluatedProperties=False)),
    "names that nothing evaluates, of a type": with_one(object_of({"x": TEXT}, unevaluatedProperties=WHOLE)),
    "names that nothing evaluates beside a choice": with_one(
        object_of({"x": TEXT}, unevaluatedProperties=False, anyOf=[object_of({"y": WHOLE}, "y"), {"maxProperties": 1}])
    ),
    "names that nothing evaluates beside allOf": with_one(
        object_of({"x": TEXT}, unevaluatedProperties=False, allOf=[object_of({"y": WHOLE}, "y")])
    ),
    "names that nothing evaluates beside a choice at the root": object_of(
        {"x": TEXT}, unevaluatedProperties=False, oneOf=[object_of({"y": WHOLE}, "y"), object_of({"z": WHOLE}, "z")]
    ),
    "items that nothing evaluates": with_one({"type": "array", "prefixItems": [TEXT], "unevaluatedItems": False}),
    "items that nothing evaluates beside some": with_one(
        {"type": "array", "contains": WHOLE, "items": True, "unevaluatedItems": False}
    ),
    "true and false in choices and lists": object_of(
        {
            "a": {"anyOf": [True]},
            "b": {"anyOf": [False, TEXT]},
            "c": {"oneOf": [False, True]},
            "d": {"type": "array", "items": True},
            "e": {"type": "array", "prefixItems": [True, TEXT]},
            "f": {"anyOf": [False]},
        },
        "a",
    ),
    "dependencies of draft 7": object_of(
        {"a": TEXT, "b": WHOLE, "c": TEXT},
        dependencies={"a": ["b"], "c": {"properties": {"b": {"minimum": 5}}, "required": ["b"]}},
    ),
    "true and false": object_of({"a": True, "b": False}, "a"),
    "several types for the root": {"type": ["object", "null"], "properties": {"a": TEXT}},
}


# --- closed objects that have to fit another schema besides

_X = object_of({"x": TEXT}, "x")
_BESIDE: dict[str, Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]] = {
    "allOf": lambda y, z: {"allOf": [y]},
    "anyOf": lambda y, z: {"anyOf": [y, z]},
    "oneOf": lambda y, z: {"oneOf": [y, z]},
    "anyOf of references": lambda y, z: {"anyOf": [{"$ref": "#/$defs/Y"}, {"$ref": "#/$defs/Z"}]},
    "oneOf in anyOf": lambda y, z: {"anyOf": [{"oneOf": [y, z]}]},
    "$ref": lambda y, z: {"$ref": "#/$defs/Y"},
    "then": lambda y, z: {"if": {"required": ["x"]}, "then": y},
    "else": lambda y, z: {"if": {"required": ["z"]}, "else": y},
    "dependentSchemas": lambda y, z: {"dependentSchemas": {"x": y}},
}
_PLACES: dict[str, Callable[[dict[str, Any]], tuple[dict[str, Any], Callable[[Any], dict[str, Any]]]]] = {
    "the root": lambda part: (part, lambda value: value),
    "a property": lambda part: (with_one(part), lambda value: {"a": value}),
    "an item": lambda part: (with_one({"type": "array", "items": part}), lambda value: {"a": [value]}),
    "a branch": lambda part: (with_one({"oneOf": [part, {"type": "null"}]}), lambda value: {"a": value}),
    "a definition": lambda part: (
        with_one({"$ref": "#/$defs/P"}, **{"$defs": {"P": part}}),
        lambda value: {"a": value},
    ),
}


def _closed_kinds() -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    made: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
    for beside, applied in _BESIDE.items():
        for place, put in _PLACES.items():
            for closed in ("outside", "inside", "both"):
                outer, inner = (
                    {"additionalProperties": False} if closed in (side, "both") else {}
                    for side in ("outside", "inside")
                )
                y, z = ({**object_of({name: WHOLE}, name), **inner} for name in ("y", "z"))
                whole, filled = put({**_X, **outer, **applied(y, z)})
                whole = {**whole, "$defs": {"Y": y, "Z": z, **whole.get("$defs", {})}}
                made[f"{beside} in {place}, closed {closed}"] = whole, filled({"x": "a", "y": 1})
    return made


CLOSED = _closed_kinds()
"""Schemas with a closed object that has to fit another schema besides, each with a value that its author means."""
