"""ToolSpec.from_schema: a tool that brings its JSON schema along."""

from typing import Any

import pytest

from toolcrib.errors import InvalidArguments
from toolcrib.schema import ToolSpec

SCHEMA = {
    "type": "object",
    "title": "arguments",
    "properties": {
        "city": {"type": "string", "title": "City", "description": "Where."},
        "days": {"type": "integer", "default": 1},
        "stop": {"$ref": "#/$defs/Stop"},
    },
    "required": ["city"],
    "additionalProperties": False,
    "$defs": {"Stop": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Stop"}}}},
}


async def call(**arguments: Any) -> Any:
    return arguments


def spec(**options: Any) -> ToolSpec:
    return ToolSpec.from_schema(call, SCHEMA, name="forecast", description="Tell the weather.", **options)


def test_the_schema_is_shown_as_it_is_without_titles() -> None:
    made = spec()

    assert made.parameters["properties"] == {
        "city": {"type": "string", "description": "Where."},
        "days": {"type": "integer", "default": 1},
        "stop": {"$ref": "#/$defs/Stop"},
    }
    assert made.parameters["$defs"] == SCHEMA["$defs"]


def test_arguments_are_those_that_were_given() -> None:
    made = spec()

    assert made.arguments(made.validate_json('{"city": "Oslo"}')) == {"city": "Oslo"}
    assert made.canonical({"city": "Oslo", "days": 2}).values == {"city": "Oslo", "days": 2}


@pytest.mark.parametrize(("raw", "field"), [("{}", "city"), ('{"city": "Oslo", "town": "x"}', "town")])
def test_missing_and_unknown_arguments_are_named(raw: str, field: str) -> None:
    with pytest.raises(InvalidArguments) as caught:
        spec().validate_json(raw)

    assert [problem.field for problem in caught.value.problems] == [field]


def test_a_check_of_its_own_says_what_fits() -> None:
    def positive(arguments: dict[str, Any]) -> None:
        if arguments.get("days", 1) < 1:
            raise ValueError("days must be positive")

    made = spec(check=positive)

    made.validate_json('{"city": "Oslo"}')
    with pytest.raises(InvalidArguments, match="days must be positive"):
        made.validate_python({"city": "Oslo", "days": 0})


def test_the_signature_names_the_properties() -> None:
    assert spec(returns={"type": "string"}).signature == "forecast(city: str, days: int = ..., stop: Any = ...)"


def test_positions_are_those_of_the_stub_required_ones_first() -> None:
    properties = {name: {"type": "string"} for name in ("unit", "max-age", "city")}
    schema = {"type": "object", "properties": properties, "required": ["city", "max-age"]}

    made = ToolSpec.from_schema(call, schema, name="forecast")

    assert made.by_position == (("city", "unit"), None)
    assert made.stub(docs=False) == "def forecast(city: str, unit: str = ..., *, max-age: str) -> Any:\n    ..."
