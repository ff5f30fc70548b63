"""A choice at the root is shown as one object, in which nothing is refused that fits, nor lost that has to be said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.effort import share
from tests.formats.fitting import fitting
from tests.formats.random_schemas import root_choice
from tests.formats.test_shown import is_said, misfits_of, tool_of
from toolcrib.jsonschema import SchemaWalk, branches, shown_arguments
from toolcrib.jsonschema.checker import checker_of

SEEDS = range(1_000)


def is_of_one_choice(parameters: Mapping[str, Any], value: Mapping[str, Any]) -> bool:
    """Return whether a value fits a choice that has all the arguments of the value which any choice has."""
    options = branches(parameters, SchemaWalk(parameters))
    names = [{*option.get("properties", {}), *option.get("required", ())} for option in options]
    known = value.keys() & set[str]().union(*names)
    pairs = zip(options, names, strict=True)
    return any(known <= has and Draft202012Validator(option).is_valid(value) for option, has in pairs)


@pytest.mark.systems  # a long search
def test_what_a_choice_at_the_root_takes_can_be_said() -> None:
    for seed in share(SEEDS):
        tool = tool_of(root_choice(seed))
        made = shown_arguments("take", tool.parameters)
        checker = checker_of(made)
        assert checker is not None
        for value in fitting(tool.parameters, 8):
            if is_of_one_choice(tool.parameters, value):
                assert checker.misfits(value) == [], (seed, value, made)


@pytest.mark.systems  # a long search
def test_what_a_choice_at_the_root_refuses_is_said() -> None:
    for seed in share(SEEDS):
        tool = tool_of(root_choice(seed))
        made = shown_arguments("take", tool.parameters)
        for value in fitting(made, 8):
            for misfit in misfits_of(tool, value):
                assert is_said(misfit, made), (seed, misfit, value, made)
                words = made.get("description", "")
                assert "each of" not in misfit.text or "only one of these" in words or "oneOf" in words, (seed, made)


def described(*choices: dict[str, Any], keyword: str = "anyOf", **more: Any) -> str:
    tool = tool_of({"type": "object", keyword: [*choices], **more})
    return shown_arguments("take", tool.parameters).get("description", "")


TEXT, WHOLE = {"type": "string"}, {"type": "integer"}


def test_the_words_say_which_arguments_belong_together() -> None:
    a, b = {"properties": {"a": TEXT}, "required": ["a"]}, {"properties": {"b": WHOLE}, "required": ["b"]}
    closed = {"properties": {"c": TEXT}, "additionalProperties": False}

    assert described(a, b) == "give `a`, or `b`"
    assert described(a, b, keyword="oneOf") == "give `a`, or `b`: only one of these"
    assert described(a, closed) == "give `a`, or no `a`"
    assert described({**a, "additionalProperties": False}, {**b, "additionalProperties": False}, keyword="oneOf") == (
        "give `a` and no `b`, or `b` and no `a`"
    )
    assert described(a, {}) == ""


def test_values_of_several_types_are_of_their_types() -> None:
    one, other = (
        {"properties": {"a": {"type": kind, "const": value}}} for kind, value in (("integer", 1), ("string", "x"))
    )

    [part] = shown_arguments("take", {"type": "object", "anyOf": [one, other]})["properties"].values()

    assert part == {"type": ["integer", "string"], "enum": [1, "x"]}
