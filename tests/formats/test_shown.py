"""What a model is shown, what is checked and what providers take are one thing."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis_jsonschema import from_schema

from tests.effort import examples
from tests.formats.kinds import KINDS
from tests.formats.refusals import refusals
from tests.formats.replies import NAMES, declarations, sdk_accepts_tools
from toolcrib import Tool
from toolcrib.errors import FormatError, InvalidArguments
from toolcrib.formats import PROVIDERS, WireFormat, definitions, own_arguments, without_filler
from toolcrib.schema import SchemaWalk
from toolcrib.schema._json_schema import part_at
from toolcrib.schema._prose import PROSE
from toolcrib.schema.checker import Misfit, checker_of
from toolcrib.tools.from_schema import schema_tool

REAL: list[dict[str, Any]] = json.loads((Path(__file__).parent / "mcp_definitions.json").read_text())["schemas"]
WAYS = [(name, strict) for name in NAMES for strict in (False, True) if PROVIDERS[name].strict or not strict]
IN_WORDS = [way for way in WAYS if way[0] != "ollama"]  # its server keeps few keywords, and a model reads the rest


CORPUS = [*KINDS.values(), *REAL]
IDS = [*KINDS, *(f"real {number}" for number in range(len(REAL)))]
each_way = pytest.mark.parametrize(("provider", "strict"), WAYS, ids=[f"{n}{'-strict' * s}" for n, s in WAYS])


def tool_of(schema: Mapping[str, Any]) -> Tool[..., Any]:
    return schema_tool("take", schema, description="Take it.")


def shown(tool: Tool[..., Any], provider: WireFormat, strict: bool) -> dict[str, Any]:
    """Return the schema of the arguments in a tool's definition; raises FormatError where strict mode cannot say it."""
    made = definitions([tool], provider, strict=strict, refused="raise")
    sdk_accepts_tools(provider, made)
    [declared] = declarations(provider, made)
    found = declared.get("parametersJsonSchema") or declared.get("parameters") or declared.get("input_schema")
    return found or {"type": "object", "properties": {}}


@each_way
@pytest.mark.parametrize("schema", CORPUS, ids=IDS)
def test_no_definition_has_what_its_provider_refuses(
    schema: dict[str, Any], provider: WireFormat, strict: bool
) -> None:
    try:
        made = shown(tool_of(schema), provider, strict)
    except FormatError:
        if not strict:
            raise
        return

    assert refusals(made, provider, strict) == []


@settings(max_examples=examples(8), suppress_health_check=list(HealthCheck), deadline=None)
@given(data=st.data())
@pytest.mark.parametrize(("provider", "strict"), IN_WORDS, ids=[f"{n}{'-strict' * s}" for n, s in IN_WORDS])
@pytest.mark.parametrize("schema", CORPUS, ids=IDS)
def test_what_fits_the_shown_schema_fits_or_is_said_in_words(
    schema: dict[str, Any], provider: WireFormat, strict: bool, data: st.DataObject
) -> None:
    tool = tool_of(schema)
    try:
        made = shown(tool, provider, strict)
    except FormatError:
        return
    sent = data.draw(from_schema(made))

    arguments = own_arguments(sent, PROVIDERS[provider].sent_names(tool.parameters))
    arguments = without_filler(arguments, tool.parameters) if strict else arguments

    for misfit in misfits_of(tool, arguments):
        assert is_said(misfit, made), (misfit, arguments, made)


def misfits_of(tool: Tool[..., Any], arguments: dict[str, Any]) -> list[Misfit]:
    try:
        tool.spec.read(json.dumps(arguments))
    except InvalidArguments:
        checker = checker_of(tool.parameters)
        assert checker is not None
        found = checker.misfits(arguments)
        assert found, "what refused it is not its schema"
        return found
    return []


def is_said(misfit: Misfit, made: Mapping[str, Any]) -> bool:
    """Return whether a description on the way to a value says what it does not fit."""
    walk = SchemaWalk(made)
    places = [misfit.place[:length] for length in range(len(misfit.place) + 1)]
    text = " ".join(str(part_at(walk, place).get("description", "")) for place in places)
    words = "|".join((WORDS.get(misfit.keyword, re.escape(misfit.keyword)), "give `", "in this order"))
    return re.search(words, text) is not None


WORDS = {key: re.escape(words).replace(r"\{\}", ".+") for key, words in PROSE.items()}
WORDS |= {"enum": "one of: |enum", "const": "one of: |const"}


@settings(max_examples=examples(8), suppress_health_check=list(HealthCheck), deadline=None)
@given(data=st.data())
@pytest.mark.parametrize("schema", CORPUS, ids=IDS)
def test_what_is_checked_can_be_said(schema: dict[str, Any], data: st.DataObject) -> None:
    tool = tool_of(schema)
    value = data.draw(from_schema(tool.parameters))

    for provider in ("openai", "anthropic"):
        checker = checker_of(shown(tool, provider, strict=False))
        assert checker is not None
        assert checker.misfits(value) == []
