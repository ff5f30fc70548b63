"""What a schema says of names and items that nothing else evaluates is checked, as `jsonschema` does by itself."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.effort import examples
from tests.jsonschema.bombs import bomb
from toolcrib.jsonschema.checker import Checker, misfits

PARTS: list[Any] = [
    True, {}, {"properties": {"a": {"type": "integer"}}}, {"properties": {"b": {}}, "required": ["b"]},
    {"patternProperties": {"^c": {"type": "integer"}}}, {"additionalProperties": {"type": "integer"}},
    {"properties": {"a": {}}, "unevaluatedProperties": {"type": "integer"}}, {"required": ["a"]}, {"$ref": "#/$defs/A"},
]  # fmt: skip
LISTS: list[Any] = [
    True, {}, {"prefixItems": [{"type": "integer"}]}, {"prefixItems": [True, True], "minItems": 2},
    {"contains": {"type": "string"}}, {"items": {"type": "integer"}}, {"unevaluatedItems": {"type": "integer"}},
    {"maxItems": 1}, {"$ref": "#/$defs/A"},
]  # fmt: skip
OBJECTS = [dict(zip("abcd", values, strict=True)) for values in product((1, "x", None), repeat=4)]
OBJECTS = [{name: part for name, part in made.items() if part is not None} for made in OBJECTS]
ARRAYS: list[list[Any]] = [list(items) for number in range(4) for items in product((1, "x"), repeat=number)]


def applying(random: Random, parts: list[Any], keyword: str) -> dict[str, Any]:
    """Return a schema at random that applies others to the same value, and refuses what they do not evaluate."""

    def part(deep: int = 0) -> Any:
        made = random.choice(parts)
        if deep > 2 or random.random() < 0.5 or not isinstance(made, dict):
            return made
        match random.choice(["allOf", "anyOf", "oneOf", "if", "dependentSchemas"]):
            case "if":
                added: dict[str, Any] = {"if": part(deep + 1), "then": part(deep + 1), "else": part(deep + 1)}
            case "dependentSchemas":
                added = {"dependentSchemas": {"a": part(deep + 1)}}
            case choice:
                added = {choice: [part(deep + 1), part(deep + 1)]}
        return {**made, **added}

    whole, definition = part(), part(3)
    if definition == {"$ref": "#/$defs/A"}:
        definition = {}
    return {**(whole if isinstance(whole, dict) else {}), keyword: random.choice([False, {"type": "integer"}]),
            "$defs": {"A": definition}}  # fmt: skip


@pytest.mark.parametrize(
    ("keyword", "parts", "values"),
    [("unevaluatedProperties", PARTS, OBJECTS), ("unevaluatedItems", LISTS, ARRAYS)],
    ids=["names", "items"],
)
def test_what_nothing_evaluates_is_checked(keyword: str, parts: list[Any], values: list[Any]) -> None:
    for seed in range(examples(1_000)):
        schema = applying(Random(seed), parts, keyword)
        checker, other = Checker(schema), Draft202012Validator(schema)
        for value in values:
            assert (checker.misfits(value) == []) is other.is_valid(value), (seed, schema, value)


def test_a_name_that_nothing_evaluates_is_named() -> None:
    schema: dict[str, Any] = {
        "allOf": [{"properties": {"a": {}}}],
        "properties": {"b": {}},
        "unevaluatedProperties": False,
    }

    assert [str(one) for one in misfits(schema, {"a": 1, "c": 2})] == ["c: unknown key; the keys are b, a"]


def test_an_item_that_nothing_evaluates_has_its_place() -> None:
    schema: dict[str, Any] = {"properties": {"a": {"prefixItems": [True], "unevaluatedItems": False}}}

    assert [one.place for one in misfits(schema, {"a": [1, 2, 3]})] == [("a", 1), ("a", 2)]


@pytest.mark.parametrize("part", [{"$dynamicRef": "#a"}, {"$ref": "#/$defs/Gone"}, {"$ref": "other.json"}])
def test_what_cannot_be_looked_up_may_evaluate_anything(part: dict[str, Any]) -> None:
    schema: dict[str, Any] = {"anyOf": [True, part], "unevaluatedProperties": False, "unevaluatedItems": False}

    assert Checker(schema).misfits({"c": 2}) == Checker(schema).misfits([1]) == []


def test_references_that_double_with_each_step_keep_no_check_busy() -> None:
    parts: dict[str, Any] = bomb("allOf")
    schema: dict[str, Any] = {**parts["properties"]["x"], "unevaluatedProperties": False, "$defs": parts["$defs"]}

    assert misfits(schema, {"c": 2}) == []
