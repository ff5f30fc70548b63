"""Strict mode: what a schema becomes, what goes into words, and what is refused with the mend."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from tests.effort import examples
from tests.formats.replies import declarations
from tests.formats.strictly import not_strict
from tests.jsonschema.bombs import KINDS, bomb
from toolcrib.errors import FormatError, SchemaTooLarge
from toolcrib.formats import WireFormat, definition, without_filler
from toolcrib.jsonschema.checker import misfits
from toolcrib.tools import ez_tool
from toolcrib.tools.from_schema import schema_tool

STRICT: tuple[WireFormat, ...] = ("openai", "openai_responses", "anthropic", "mistral", "bedrock", "cohere")


class Place(BaseModel):
    city: str
    street: str | None = None


class Folder(BaseModel):
    name: str
    inside: list[Folder] = []


class Metre(BaseModel):
    kind: Literal["metre"]


class Foot(BaseModel):
    kind: Literal["foot"]


def parameters_of(annotation: Any, default: Any = ...) -> dict[str, Any]:
    def take(value: Any) -> None:
        """Take."""

    take.__annotations__["value"] = annotation
    take.__defaults__ = None if default is ... else (default,)
    return ez_tool(take).parameters


def strictly(parameters: dict[str, Any], provider: WireFormat = "openai_responses") -> dict[str, Any]:
    made = definition("take", "", parameters, provider, strict=True)
    [declared] = declarations(provider, [made])
    return declared.get("parameters") or declared["input_schema"]


def value_of(annotation: Any, default: Any = ..., provider: WireFormat = "openai_responses") -> Any:
    return strictly(parameters_of(annotation, default), provider)["properties"]["value"]


@pytest.mark.parametrize("provider", STRICT)
@pytest.mark.parametrize(
    "annotation",
    [
        int, list[str], str | None, Place, list[Place | None], Metre | Foot, tuple[int, str], Literal["a", None],
        Annotated[Metre | Foot, Field(discriminator="kind")], Annotated[list[int], Field(min_length=2, max_length=3)],
        Annotated[float, Field(gt=0, multiple_of=0.5)], Annotated[Place, Field(description="where to")],
        Annotated[str, Field(pattern=r"^\bx", min_length=1)], set[int], int | str | None, Literal["one"],
    ],
)  # fmt: skip
@pytest.mark.parametrize("default", [..., None])
def test_what_a_tool_takes_is_strict(annotation: Any, default: Any, provider: WireFormat) -> None:
    made = strictly(parameters_of(annotation, default), provider)

    assert list(not_strict(made, provider)) == []


@pytest.mark.parametrize(
    ("annotation", "default", "expected"),
    [
        (int, 3, {"type": ["integer", "null"], "description": "default: 3"}),
        (Literal["c", "f"], "c", {"type": ["string", "null"], "enum": ["c", "f", None], "description": 'default: "c"'}),
        (Annotated[str, Field(min_length=2)], ..., {"type": "string", "description": "at least 2 characters"}),
        (tuple[int, int], ..., {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}),
        (Place | None, None, {"anyOf": [{"$ref": "#/$defs/Place"}, {"type": "null"}], "description": None}),
    ],
)
def test_openai_gets_optional_values_as_null_and_other_rules_in_words(
    annotation: Any, default: Any, expected: dict[str, Any]
) -> None:
    made = value_of(annotation, default)

    assert made == {key: value for key, value in expected.items() if value is not None}


def test_a_recursive_type_is_kept_where_it_may_be() -> None:
    made = strictly(parameters_of(Folder))

    assert made["$defs"]["Folder"]["properties"]["inside"]["items"] == {"$ref": "#/$defs/Folder"}


def test_anthropic_keeps_optional_parameters_and_says_lengths() -> None:
    made = strictly(parameters_of(Annotated[list[int], Field(min_length=2, max_length=3)], [1, 2]), "anthropic")

    assert made["required"] == []
    said = "at least 2 items (at most 3 items)"
    assert made["properties"]["value"] == {
        "type": "array", "items": {"type": "integer"}, "default": [1, 2], "description": said
    }  # fmt: skip


@pytest.mark.parametrize(
    ("annotation", "provider", "said"),
    [
        (dict[str, int], "openai", "`value` may hold any names; declare its names, make it a list of pairs"),
        (list[dict[str, int]], "mistral", r"`value\[\]` may hold any names; declare its names"),
        (Any, "openai", "`value` may hold anything; give it a type"),
        (list, "anthropic", r"`value\[\]` may hold anything; give it a type"),
        (Folder, "anthropic", "`Folder` holds itself; end it at a fixed depth"),
    ],
)
def test_what_cannot_be_said_names_the_field_and_the_mend(annotation: Any, provider: WireFormat, said: str) -> None:
    with pytest.raises(FormatError, match=f"`take` cannot be offered to {provider}: in strict mode {said}"):
        strictly(parameters_of(annotation), provider)


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"allOf": [{"pattern": "a"}, {"pattern": "b"}]}, "has to fit several schemas at once"),
        ({"$ref": "#/$defs/Gone"}, "refers to `#/\\$defs/Gone`, which is not there"),
        ({"type": "array"}, r"`value\[\]` may hold anything; give it a type"),
    ],
)
def test_a_schema_by_hand_is_refused_where_it_has_to_be(part: dict[str, Any], said: str) -> None:
    with pytest.raises(FormatError, match=said):
        strictly({"type": "object", "properties": {"value": part}, "required": ["value"]})


def nested(depth: int) -> dict[str, Any]:
    inner: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        inner = {"type": "object", "properties": {"value": inner}, "required": ["value"]}
    return inner


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        (nested(11), "at most 10 levels"),
        ({"type": "object", "properties": {f"p{n}": {"type": "null"} for n in range(5001)}}, "at most 5000 properties"),
        ({"type": "object", "properties": {"p" * 120_001: {"type": "null"}}}, "at most 120000 characters of names"),
        ({"type": "object", "properties": {"p": {"enum": list(range(1001))}}}, "at most 1000 values"),
        (
            {"type": "object", "properties": {"p": {"enum": ["v" * 60 + str(n) for n in range(251)]}}},
            "at most 15000 characters in an enum of more than 250 values",
        ),
    ],
)
def test_openais_limits_are_known(parameters: dict[str, Any], said: str) -> None:
    with pytest.raises(FormatError, match=said):
        strictly(parameters)


def test_ten_levels_are_within_the_limits() -> None:
    assert strictly(nested(10))


# --- and back


@pytest.mark.parametrize(
    ("annotation", "default", "value", "expected"),
    [
        (int, 3, None, {}),
        (int | None, 3, None, {"value": None}),
        (Literal["c"], "c", None, {}),
        (Literal["c", None], "c", None, {"value": None}),
        (list[Place], ..., [{"city": "Oslo", "street": None}], {"value": [{"city": "Oslo", "street": None}]}),
        (Folder, ..., {"name": "a", "inside": None}, {"value": {"name": "a"}}),
        (list[Folder] | None, None, [{"name": "a", "inside": None}], {"value": [{"name": "a"}]}),
        (Any, 1, None, {"value": None}),
    ],
)
def test_nulls_that_stand_for_nothing_are_taken_out(annotation: Any, default: Any, value: Any, expected: Any) -> None:
    made = without_filler({"value": value}, parameters_of(annotation, default))

    assert made == expected


def test_what_is_unknown_stays() -> None:
    parameters = parameters_of(int, 3)

    assert without_filler({"value": 1, "other": None}, parameters) == {"value": 1, "other": None}


def test_nulls_in_items_that_have_a_place_of_their_own_are_left_out() -> None:
    part = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["a"]}
    schema = {"type": "object", "properties": {"pair": {"type": "array", "prefixItems": [{"type": "null"}, part]}}}

    assert without_filler({"pair": [None, {"a": "x", "b": None}]}, schema) == {"pair": [None, {"a": "x"}]}


_simple = st.sampled_from(
    [{"type": "string"}, {"type": ["integer", "null"]}, {"enum": ["a", 1]}, {"type": "number", "minimum": 1}, {}]
)
_schemas = st.recursive(
    _simple,
    lambda inner: st.one_of(
        st.builds(lambda part: {"type": "array", "items": part, "uniqueItems": True}, inner),
        st.builds(lambda a, b: {"oneOf": [a, b]}, inner, inner),
        st.builds(
            lambda a, b, extra: {"type": "object", "properties": {"a": a, "b": b}, "required": ["a"], **extra},
            inner,
            inner,
            st.sampled_from([{}, {"additionalProperties": False}, {"additionalProperties": True}]),
        ),
    ),
    max_leaves=5,
)


@settings(max_examples=examples(80), deadline=None)
@given(schema=_schemas, provider=st.sampled_from(STRICT))
def test_any_schema_becomes_strict_or_is_refused(schema: dict[str, Any], provider: WireFormat) -> None:
    parameters = {"type": "object", "properties": {"value": schema}}

    try:
        made = strictly(parameters, provider)
    except FormatError as error:
        assert "value" in error.problem  # noqa: PT017 -- it may be raised or not
    else:
        assert list(not_strict(made, provider)) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("provider", STRICT)
def test_references_that_double_are_kept_or_refused(kind: str, provider: WireFormat) -> None:
    kept = kind in ("prefixItems", "allOf") or (
        kind == "properties" and not provider.startswith("openai")
    )  # ten levels of objects

    with nullcontext() if kept else pytest.raises(FormatError, match="`evil`"):
        assert len(json.dumps(definition("evil", "", bomb(kind), provider, strict=True))) < 7000


@pytest.mark.parametrize("provider", STRICT)
def test_references_that_double_and_have_to_be_written_out_are_refused(provider: WireFormat) -> None:
    schema = bomb("properties")
    for part in schema["$defs"].values():
        for inner in part["properties"].values():
            inner["description"] = "Nothing may stand beside a reference."

    with pytest.raises(SchemaTooLarge, match="`evil`"):
        definition("evil", "", schema, provider, strict=True)


def test_an_object_without_names_is_left_as_it_came() -> None:
    schema = {"type": "object", "properties": {"any": {"type": "object"}}}

    assert without_filler({"any": {}}, schema) == {"any": {}}


def test_nulls_are_found_in_a_schema_that_would_be_too_large() -> None:
    schema = bomb("allOf")

    assert without_filler({"x": {"z": None}}, schema) == {"x": {}}


@pytest.mark.parametrize("provider", STRICT)
def test_values_of_an_enum_are_of_its_type(provider: WireFormat) -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "unit": {"type": "string", "enum": ["c", 1, None]},
            "size": {"type": "integer", "enum": [1, 2.0]},
        },
        "required": ["unit", "size"],
    }

    made = strictly(schema, provider)["properties"]

    assert (made["unit"]["enum"], made["size"]["enum"]) == (["c"], [1, 2.0])


def test_an_enum_of_another_type_is_refused() -> None:
    schema = {"type": "object", "properties": {"unit": {"type": "integer", "enum": ["c", "f"]}}, "required": ["unit"]}

    with pytest.raises(FormatError, match=r"`unit` has none but the values \["):
        strictly(schema)


UNION: dict[str, Any] = {
    "type": "object",
    "properties": {"z": {"type": "string"}},
    "anyOf": [
        {"properties": {"a": {"type": "string"}}, "required": ["a"]},
        {"properties": {"b": {"type": "integer"}, "c": {"type": ["string", "null"]}}, "required": ["b"]},
    ],
}


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        ({"z": None, "a": "x", "b": None, "c": None}, {"a": "x"}),
        ({"z": None, "a": None, "b": 1, "c": None}, {"b": 1, "c": None}),
        ({"z": "y", "a": "x", "b": None, "c": None}, {"z": "y", "a": "x"}),
        ({"q": None, "a": "x"}, {"q": None, "a": "x"}),
    ],
)
def test_nulls_of_the_other_choices_at_the_root_are_left_out(sent: dict[str, Any], meant: dict[str, Any]) -> None:
    assert without_filler(sent, UNION) == meant


def choosing(keyword: str) -> dict[str, Any]:
    text, whole = {"type": "string"}, {"type": "integer"}
    choices: list[Any] = [
        {"properties": {"a": text}, "required": ["a"]},
        {"properties": {"b": whole}, "required": ["b"], "additionalProperties": False},
    ]
    part = {"type": "object", "properties": {"x": text}, "required": ["x"], keyword: choices}
    return {"type": "object", "properties": {"value": part}, "required": ["value"]}


@pytest.mark.parametrize("provider", STRICT)
@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_each_choice_of_an_object_has_what_is_said_beside_it(keyword: str, provider: WireFormat) -> None:
    made = strictly(schema_tool("take", choosing(keyword)).parameters, provider)

    assert list(not_strict(made, provider)) == []
    choices = made["properties"]["value"]["anyOf"]
    assert [sorted(choice["properties"]) for choice in choices] == [["a", "x"], ["b", "x"]]
    fits = [not misfits(made, {"value": value}) for value in ({"x": "1", "a": "2"}, {"x": "1", "b": 2}, {"x": "1"})]
    assert fits == [True, True, False]


def test_a_schema_with_two_choices_fits_one_of_each() -> None:
    kinds = [{"type": "string"}, {"type": "integer"}, {"type": "boolean"}]
    part = {"anyOf": kinds[:2], "oneOf": kinds[1:], "description": "how many"}

    made = strictly({"type": "object", "properties": {"value": part}, "required": ["value"]})

    assert made["properties"]["value"] == {"type": "integer", "description": "how many"}


def test_choices_that_nothing_fits_are_refused() -> None:
    part = {"type": "integer", "anyOf": [{"type": "string"}, False]}

    with pytest.raises(FormatError, match="`value` has no choice that a value can fit"):
        strictly({"type": "object", "properties": {"value": part}, "required": ["value"]})
