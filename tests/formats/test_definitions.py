"""The SDKs accept the definitions of a few tools and of thousands, and what is said of results."""

from __future__ import annotations

import json
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, RootModel

from tests.formats.bfcl_functions import Function, load_functions
from tests.formats.replies import NAMES, declarations, sdk_accepts_choice, sdk_accepts_tools
from tests.formats.strictly import not_strict
from toolcrib.errors import FormatError
from toolcrib.formats import PROVIDERS, Choice, WireFormat, definition, definitions
from toolcrib.tools import as_tool, ez_tool, tool_input

each_provider = pytest.mark.parametrize("provider", NAMES)
STRICT: tuple[WireFormat, ...] = ("openai", "openai_responses", "anthropic", "mistral", "bedrock", "cohere")
REFUSED = {"bedrock": {"none"}, "ollama": {"none", "at_least_one", "specific"}, "cohere": {"specific"}}
CITY: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


@pytest.fixture(scope="module")
def functions() -> list[Function]:
    return load_functions()


def schema_in(made: dict[str, Any]) -> dict[str, Any]:
    if "toolSpec" in made:
        return made["toolSpec"]["inputSchema"]["json"]
    return made.get("function", made).get("parameters") or made["input_schema"]


@pytest.mark.systems
@each_provider
def test_every_function_of_bfcl_is_defined(provider: WireFormat, functions: list[Function]) -> None:
    made = definitions(functions, provider)

    assert [one["name"] for one in declarations(provider, made)] == [one.name for one in functions]
    assert len(functions) > 3400
    sdk_accepts_tools(provider, made)


@pytest.mark.systems
@pytest.mark.parametrize("provider", STRICT)
def test_functions_of_bfcl_are_strict_or_say_what_would_mend_them(
    provider: WireFormat, functions: list[Function]
) -> None:
    made: list[dict[str, Any]] = []
    refused: list[str] = []
    for one in functions:
        try:
            made.append(definition(one.name, one.description, one.parameters, provider, strict=True))
        except FormatError as error:
            refused.append(str(error))

    assert len(made) > 0.85 * len(functions)
    assert [problem for one in made for problem in not_strict(schema_in(one), provider)] == []
    assert all(
        any(mend in text for mend in ("give", "declare its names", "correct the values")) and "; " in text
        for text in refused
    )
    sdk_accepts_tools(provider, made)


@pytest.mark.systems
@each_provider
def test_results_of_bfcl_are_told(provider: WireFormat, functions: list[Function]) -> None:
    known = [one for one in functions if one.return_schema]

    made = definitions(known, provider, return_schemas=True)

    places = {"gemini": "responseJsonSchema", "openai_responses": "output_schema"}
    told = [one[places.get(provider, "description")] for one in declarations(provider, made)]
    assert len(told) > 100
    assert all("Returns JSON of this schema" in text or provider in places for text in told)
    sdk_accepts_tools(provider, made)


def test_a_result_is_told_in_its_place_or_in_the_description() -> None:
    @ez_tool
    def look(city: str) -> list[int]:
        """Look."""
        return [1]

    [chat] = definitions([look], "openai", return_schemas=True)
    [tool] = definitions([look], "gemini", return_schemas=True)

    schema = '{"items": {"type": "integer"}, "type": "array"}'
    assert chat["function"]["description"] == f"Look.\n\nReturns JSON of this schema: {schema}"
    declared = tool["functionDeclarations"][0]
    assert declared["responseJsonSchema"] == {"items": {"type": "integer"}, "type": "array"}
    assert declared["description"] == "Look."


@pytest.mark.parametrize(("provider", "key"), [("gemini", "responseJsonSchema"), ("openai_responses", "output_schema")])
def test_the_schema_of_a_result_has_patterns_that_providers_read(provider: WireFormat, key: str) -> None:
    returns = {"type": "array", "items": {"type": "string", "pattern": r"^\u00e9$"}}

    made = definitions([Function("look", "", CITY, returns)], provider, return_schemas=True)

    assert declarations(provider, made)[0][key]["items"] == {"type": "string", "pattern": "^é$"}


def test_a_tool_that_says_nothing_of_its_result_has_none_told() -> None:
    @ez_tool
    def look(city: str):
        """Look."""

    [made] = definitions([look], "openai", return_schemas=True)

    assert made["function"]["description"] == "Look."


@each_provider
@pytest.mark.parametrize(
    ("kind", "name"),
    [("optional", None), ("at_least_one", None), ("specific", "look"), ("validated", None), ("none", None)],
)
def test_the_sdk_accepts_a_choice(provider: WireFormat, kind: Choice, name: str | None) -> None:
    if kind in REFUSED.get(provider, ()):
        with pytest.raises(ValueError, match="has no choice of"):
            PROVIDERS[provider].tool_choice(kind, name)
        return

    made = PROVIDERS[provider].tool_choice(kind, name)

    sdk_accepts_choice(provider, made)
    assert ("look" in str(made)) == (kind == "specific")


def test_a_response_is_told_when_it_is_not_strict() -> None:
    made = definition("look", "", CITY, "openai_responses")

    assert made == {"type": "function", "name": "look", "parameters": CITY, "strict": False}


@each_provider
def test_arguments_that_are_no_object_are_refused(provider: WireFormat) -> None:
    with pytest.raises(FormatError, match="put them into one named parameter"):
        definition("look", "", {"type": "string"}, provider)


class Move(BaseModel):
    kind: Literal["move"]
    x: int


class Say(BaseModel):
    kind: Literal["say"] = "say"
    text: str = ""


class Color(Enum):
    RED = "red"
    BLUE = "blue"


@pytest.mark.parametrize(
    ("provider", "strict"), [*((name, False) for name in NAMES), *((name, True) for name in STRICT)]
)
@pytest.mark.parametrize(
    "kind", [Move | Say, Annotated[Move | Say, Field(discriminator="kind")], Color, Literal["a", "b"], list[Move]]
)
def test_a_declared_input_that_is_no_object_is_put_into_one(provider: WireFormat, strict: bool, kind: Any) -> None:
    class Act(RootModel[kind]): ...

    tool_input("act")(Act)

    [made] = definitions([as_tool(Act)], provider, strict=strict)

    [declared] = declarations(provider, [made])
    schema = declared.get("parametersJsonSchema") or schema_in(declared)
    assert (schema["type"], list(schema["properties"]), schema["required"]) == ("object", ["root"], ["root"])
    assert not {"anyOf", "oneOf", "allOf", "enum"} & schema.keys()
    assert not strict or list(not_strict(schema, provider)) == []
    sdk_accepts_tools(provider, [made])


@pytest.mark.parametrize(
    ("count", "parameters", "said"),
    [
        (21, CITY, "takes 20 strict tools in strict mode, and with this tool there are 21"),
        (5, {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(5)}}, "24 optional"),
        (9, {**CITY, "properties": {"city": {"type": ["string", "null"]}, "b": {"type": ["string", "null"]}}}, "16"),
    ],
)
def test_a_request_to_anthropic_takes_so_much_of_strict_mode(count: int, parameters: Any, said: str) -> None:
    tools = [Function(f"look_{n}", "", parameters, None) for n in range(count)]

    with pytest.raises(FormatError, match=f"`look_{count - 1}` cannot .* {said}"):
        definitions(tools, "anthropic", strict=True, refused="raise")


@each_provider
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("part", [{"anyOf": None}, {"const": 1, "enum": "x"}, {"properties": None}, {"type": [None]}])
def test_what_is_not_a_schema_is_never_a_bare_error(provider: WireFormat, strict: bool, part: Any) -> None:
    parameters = {"type": "object", "properties": {"a": part}}
    tools = [Function("odd", "", parameters, None), Function("look", "", CITY, None)]

    made = definitions(tools, provider, strict=strict and PROVIDERS[provider].strict)

    assert "look" in [one["name"] for one in declarations(provider, made)]


@each_provider
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_tool_that_is_too_much_for_a_request_is_left_out_alone(
    provider: WireFormat, place: int, caplog: pytest.LogCaptureFixture
) -> None:
    tools = [Function(f"look_{n}", "", CITY, None) for n in range(2)]
    many = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(25)}}
    tools.insert(place, Function("odd", "", many, None))
    strict = PROVIDERS[provider].strict

    made = definitions(tools, provider, strict=strict)

    left = ["odd"] if provider == "anthropic" else []
    assert [tool.name for tool in tools if f'"{tool.name}"' not in json.dumps(made)] == left
    assert [record.getMessage().split()[0] for record in caplog.records] == [f"`{name}`" for name in left]


@each_provider
def test_texts_become_items(provider: WireFormat) -> None:
    made = PROVIDERS[provider]

    items = [*made.system("Be kind."), *made.user("Hi."), *made.assistant("Hello.")]

    assert len(items) == (2 if provider in ("anthropic", "gemini", "bedrock", "gemini_interactions") else 3)
    assert made.check(items) == []


@pytest.mark.parametrize(("provider", "most"), [("openai", 25), ("anthropic", 20)])
def test_what_cannot_be_strict_is_offered_without_strict_mode(provider: Any, most: int) -> None:
    @ez_tool
    def free(fields: dict[str, int]) -> None: ...

    def plain(count: int) -> None: ...

    tools = [free, *(ez_tool(plain, name=f"plain_{number}") for number in range(25))]

    made = definitions(tools, provider, strict=True, refused="not_strict")

    said = [(one.get("function") or one) for one in made]
    assert [one["name"] for one in said] == [one.name for one in tools]
    assert not said[0].get("strict")
    assert [bool(one.get("strict")) for one in said[1:]] == [number < most for number in range(25)]
