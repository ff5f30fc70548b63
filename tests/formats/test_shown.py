"""What a model is shown, what is checked and what providers take are one thing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.effort import examples
from tests.formats.fitting import fitting
from tests.formats.kinds import CLOSED, KINDS, TEXT, WHOLE
from tests.formats.refusals import refusals
from tests.formats.replies import NAMES, declarations, sdk_accepts_tools
from toolcrib import Tool
from toolcrib.errors import FormatError, InvalidArguments
from toolcrib.formats import PROVIDERS, WireFormat, definitions, own_arguments, without_filler
from toolcrib.jsonschema import SchemaWalk
from toolcrib.jsonschema._words import PROSE
from toolcrib.jsonschema.checker import Misfit, checker_of
from toolcrib.tools.from_schema import schema_tool

REAL: list[dict[str, Any]] = json.loads((Path(__file__).parent / "mcp_definitions.json").read_text())["schemas"]
WAYS = [(name, strict) for name in NAMES for strict in (False, True) if PROVIDERS[name].strict or not strict]


NARROWED = {  # to the type that its keywords are of; the library that finds values knows no such patterns
    "objects without a type", "arrays without a type", "bounds without a type",
    "letters of all languages", "a pattern that names a group", "draft 7 with a tuple",
    "characters by their numbers", "conditions with patterns that cannot be written",
    "dependencies of draft 7",
}  # fmt: skip
SOME = {name: schema for name, (schema, _) in CLOSED.items() if re.search("(root|item), closed both", name)}
CASES = [pytest.param(schema, id=name) for name, schema in (KINDS | SOME).items()]
CASES += [pytest.param(schema, id=f"real {number}", marks=pytest.mark.systems) for number, schema in enumerate(REAL)]
each_schema = pytest.mark.parametrize("schema", CASES)


def tool_of(schema: Mapping[str, Any]) -> Tool[..., Any]:
    return schema_tool("take", schema, description="Take it.")


def shown(tool: Tool[..., Any], provider: WireFormat, strict: bool) -> dict[str, Any]:
    """Return the schema of the arguments in a tool's definition; raises FormatError where strict mode cannot say it."""
    made = definitions([tool], provider, strict=strict, refused="raise")
    sdk_accepts_tools(provider, made)
    [declared] = declarations(provider, made)
    found = declared.get("parametersJsonSchema") or declared.get("parameters") or declared.get("input_schema")
    return found or {"type": "object", "properties": {}, "additionalProperties": False}


def shown_each_way(tool: Tool[..., Any]) -> Iterator[tuple[WireFormat, bool, dict[str, Any]]]:
    """Yield how each provider is shown a tool's arguments, strictly too where its strict mode can say them."""
    for provider, strict in WAYS:
        with suppress(FormatError) if strict else nullcontext():
            yield provider, strict, shown(tool, provider, strict)


@each_schema
def test_no_definition_has_what_its_provider_refuses(schema: dict[str, Any]) -> None:
    for provider, strict, made in shown_each_way(tool_of(schema)):
        assert refusals(made, provider, strict) == [], (provider, strict)


@each_schema
def test_what_fits_the_shown_schema_fits_or_is_said_in_words(schema: dict[str, Any]) -> None:
    tool = tool_of(schema)

    for provider, strict, made in shown_each_way(tool):
        if provider == "ollama":  # its server keeps few keywords, and a model reads the rest
            continue
        for sent in fitting(made, examples(6)):
            arguments = own_arguments(sent, PROVIDERS[provider].sent_names(tool.parameters))
            arguments = without_filler(arguments, tool.parameters) if strict else arguments
            for misfit in misfits_of(tool, arguments):
                assert is_said(misfit, made), (provider, strict, misfit, arguments, made)


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
    parts = [walk.at(place) for place in places]
    if misfit.keyword == "anyOf":  # what it does not fit is said in the branch that it would have been
        parts += [part for part in parts[-1].get("anyOf", ()) if re.search("|".join(WORDS.values()), str(part))]
        return any(part.get("description") for part in parts[len(places) :]) or _is_said_in(parts, misfit)
    return _is_said_in(parts, misfit)


def _is_said_in(parts: Sequence[Mapping[str, Any]], misfit: Misfit) -> bool:
    text = " ".join(str(part.get("description", "")) for part in parts)
    words = "|".join(
        (
            WORDS.get(misfit.keyword, re.escape(misfit.keyword)),
            f'"{misfit.keyword}"',
            r"give (no |\()?`",
            "oneOf: ",
            "in this order",
        )
    )
    return re.search(words, text) is not None


WORDS = {key: re.escape(words).replace(r"\{\}", ".+") for key, words in PROSE.items()}
WORDS |= {"enum": "one of: |enum", "const": "one of: |const", "unevaluatedItems": "items"}


@each_schema
def test_what_is_checked_can_be_said(schema: dict[str, Any], request: pytest.FixtureRequest) -> None:
    if request.node.callspec.id in NARROWED:
        return
    tool = tool_of(schema)
    shown_as = [shown(tool, provider, strict=False) for provider in ("openai", "anthropic")]

    for value in fitting(tool.parameters, examples(6)):
        for made in shown_as:
            checker = checker_of(made)
            assert checker is not None
            assert checker.misfits(value) == []


@pytest.mark.parametrize("schema", KINDS.values(), ids=KINDS)
def test_a_call_can_be_made_of_each_kind(schema: dict[str, Any]) -> None:
    tool = tool_of(schema)

    assert any(not misfits_of(tool, value) for value in fitting(shown(tool, "openai", strict=False), 40))


@pytest.mark.parametrize(("schema", "value"), CLOSED.values(), ids=CLOSED)
def test_a_closed_object_takes_what_it_has_to_fit_besides(schema: dict[str, Any], value: dict[str, Any]) -> None:
    tool = tool_of(schema)

    shown_as = [checker_of(shown(tool, provider, strict=False)) for provider in ("openai", "anthropic")]
    assert [checker.misfits(value) for checker in shown_as if checker] == [[], []]
    assert misfits_of(tool, value) == []


@pytest.mark.parametrize("schema", [*KINDS.values(), *SOME.values()], ids=[*KINDS, *SOME])
def test_a_repair_refuses_nothing_that_fitted(schema: dict[str, Any], request: pytest.FixtureRequest) -> None:
    if request.node.callspec.id in NARROWED:
        return
    tool = tool_of(schema)

    for value in fitting(schema, examples(20)):
        assert misfits_of(tool, value) == []


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
@pytest.mark.parametrize("bound", [{"const": "x"}, {"enum": ["x", "y"]}, {"maxLength": 1}], ids=str)
@pytest.mark.parametrize(
    ("table", "other"),
    [
        ({"a": TEXT}, {}),
        ({"a": TEXT}, {"properties": {"n": WHOLE}}),
        ({"a": TEXT}, {"additionalProperties": {"type": ["string", "integer"]}}),
        ({}, {"properties": {"a": True}}),
        ({}, {"required": ["a", "n"]}),
    ],
    ids=str,
)
def test_a_bound_of_one_choice_at_the_root_bounds_no_other(
    table: dict[str, Any], other: dict[str, Any], bound: dict[str, Any], keyword: str
) -> None:
    choices = [{"properties": {"a": bound}, "required": ["a"]}, {"required": ["n"], **other}]
    tool = tool_of({"type": "object", "properties": table, keyword: choices})

    shown_as = [shown(tool, provider, strict=False) for provider in ("openai", "anthropic")]
    assert [checker.misfits({"a": "other", "n": 1}) for made in shown_as if (checker := checker_of(made))] == [[], []]
    assert re.search(
        r'"x"|\(at most 1 characters\)|"maxLength": 1', f"{json.dumps(shown_as)} {shown_as[0]['description']}"
    )
    assert misfits_of(tool, {"a": "other", "n": 1}) == []


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_closed_choices_that_exclude_each_other_still_do(keyword: str) -> None:
    table = {"a": {"type": "string"}, "b": {"type": "string"}}
    choices = [{"properties": {name: table[name]}, "required": [name], "additionalProperties": False} for name in table]
    tool = tool_of({"properties": {"c": {"type": "object", "properties": table, keyword: choices}}})

    assert [len(misfits_of(tool, {"c": value})) for value in ({"a": "x"}, {"b": "x"}, {"a": "x", "b": "x"})] == [
        0,
        0,
        1,
    ]
