"""Nulls that strict mode demands are gone before the tool's check, wherever the property is declared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.effort import share
from tests.formats.fitting import fitting
from tests.formats.random_schemas import strict_schema
from tests.formats.test_shown import misfits_of, shown, tool_of
from toolcrib.errors import FormatError, SchemaTooLarge
from toolcrib.formats import PROVIDERS, WireFormat, without_filler
from toolcrib.jsonschema import SchemaWalk
from toolcrib.jsonschema.checker import Misfit

SEEDS = range(1_000)
TEXT = {"type": "string"}
PART = {"type": "object", "properties": {"x": TEXT, "o": TEXT}, "required": ["x"]}
BESIDE = {"properties": {"y": TEXT, "p": TEXT}, "required": ["y"]}
SENT, MEANT = {"x": "1", "o": None, "y": "2", "p": None}, {"x": "1", "y": "2"}


def is_named(misfit: Misfit, made: Mapping[str, Any]) -> bool:
    """Return whether the words beside a reference, to a type that holds itself, have the property that does not fit."""
    walk = SchemaWalk(made)
    words = " ".join(walk.at(misfit.place[:end]).get("description", "") for end in range(len(misfit.place)))
    return f'"{misfit.place[-1]}"' in words


@pytest.mark.systems  # a long search
@pytest.mark.parametrize("provider", ["openai", "mistral", "anthropic"])
def test_no_null_of_strict_mode_is_left_that_the_tool_refuses(provider: WireFormat) -> None:
    tried, seeds = 0, share(SEEDS)
    for seed in seeds:
        tool = tool_of(strict_schema(seed))
        try:
            made = shown(tool, provider, strict=PROVIDERS[provider].strict)
        except (FormatError, SchemaTooLarge):
            continue
        for sent in fitting(made, 4):
            meant = without_filler(sent, tool.parameters)
            left = [one for one in misfits_of(tool, meant) if one.value is None and not is_named(one, made)]
            assert left == [], (seed, sent, meant)
            tried += 1
    assert tried > len(seeds)


@pytest.mark.parametrize(
    ("schema", "sent", "meant"),
    [
        ({"properties": {"a": {"$ref": "#/$defs/A", **BESIDE}}}, {"a": SENT}, {"a": MEANT}),
        ({"properties": {"a": {"allOf": [{"$ref": "#/$defs/A"}, BESIDE]}}}, {"a": SENT}, {"a": MEANT}),
        ({"$ref": "#/$defs/A", **BESIDE}, SENT, MEANT),
        ({"properties": {"x": TEXT, "o": TEXT, "n": {"$ref": "#"}}}, {"x": "1", "n": {"o": None}}, {"x": "1", "n": {}}),
        (
            {"properties": {"x": TEXT, "o": TEXT, "n": {"$ref": "#", **BESIDE}}},
            {"x": "1", "n": {**SENT, "n": None}},
            {"x": "1", "n": MEANT},
        ),
    ],
    ids=["beside a reference", "allOf", "beside a reference at the root", "the whole", "beside the whole"],
)
def test_nulls_behind_references_are_left_out(schema: dict[str, Any], sent: Any, meant: Any) -> None:
    tool = tool_of({"type": "object", **schema, "$defs": {"A": PART}})

    for parameters in (tool.parameters, {"type": "object", **schema, "$defs": {"A": PART}}):
        assert without_filler(sent, parameters) == meant
