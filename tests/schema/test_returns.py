from __future__ import annotations

import dataclasses
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from pydantic import BaseModel, computed_field
from typing_extensions import TypedDict

from toolcrib.errors import SchemaError
from toolcrib.schema import ToolSpec


class Weather(TypedDict):
    location: str
    temp: int


class Station(BaseModel):
    name: str = "x"

    @computed_field
    @property
    def size(self) -> int:
        return len(self.name)


@dataclasses.dataclass
class Wind:
    speed: float


class Unknown:
    pass


WEATHER = {
    "type": "object",
    "properties": {"location": {"type": "string"}, "temp": {"type": "integer"}},
    "required": ["location", "temp"],
}


def spec_of(annotation: Any, **options: Any) -> ToolSpec:
    def tool() -> Any: ...

    tool.__annotations__["return"] = annotation
    return ToolSpec.from_function(tool, name="tool", **options)


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (Weather, WEATHER),
        (Wind, {"type": "object", "properties": {"speed": {"type": "number"}}, "required": ["speed"]}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (dict[str, float], {"type": "object", "additionalProperties": {"type": "number"}}),
        (dict, {"type": "object", "additionalProperties": True}),
        (str, {"type": "string"}),
        (int | None, {"type": ["integer", "null"]}),
        (None, None),
        (Any, None),
        (Unknown, None),
        (Callable[[], int], None),
        ("Nowhere", None),
    ],
    ids=str,
)
def test_a_return_type_has_the_schema_of_what_it_serialises_to(annotation: Any, expected: Any) -> None:
    assert spec_of(annotation).return_schema == expected


def test_records_in_a_list_are_referred_to() -> None:
    schema = spec_of(list[Weather]).return_schema

    assert schema == {"type": "array", "items": {"$ref": "#/$defs/Weather"}, "$defs": {"Weather": WEATHER}}


def test_what_is_computed_or_defaulted_is_always_there() -> None:
    schema = spec_of(Station).return_schema

    assert schema is not None
    assert schema["required"] == ["name", "size"]


def test_no_annotation_is_no_schema() -> None:
    def tool(): ...  # type: ignore  # pyright: ignore

    spec = ToolSpec.from_function(tool, name="tool")

    assert spec.return_schema is None
    assert spec.return_type is None
    assert spec.signature == "tool()"


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (AsyncIterator[Weather], WEATHER),
        (AsyncGenerator[Weather, None], WEATHER),
        (Iterator[Weather], WEATHER),
        (AsyncIterator, None),
        (Any, None),
    ],
    ids=str,
)
def test_a_generator_has_the_schema_of_one_value(annotation: Any, expected: Any) -> None:
    async def stream() -> Any:
        yield 1

    def lines() -> Any:
        yield 1

    for fn in (stream, lines):
        fn.__annotations__["return"] = annotation
        assert ToolSpec.from_function(fn, name="tool").return_schema == expected


def test_a_given_schema_or_type_stands_above_the_annotation() -> None:
    given = {"title": "Kept", "type": "object"}

    assert spec_of(dict, return_schema=given).return_schema == given
    assert spec_of(dict, return_schema=Weather).return_schema == WEATHER
    assert spec_of(dict, return_schema=Weather).signature == "tool() -> Weather"
    assert spec_of(dict, return_schema=given).signature == "tool() -> dict"


def test_a_given_type_without_a_schema_is_an_error() -> None:
    with pytest.raises(SchemaError, match="parameter `return`"):
        _ = spec_of(dict, return_schema=Unknown).return_schema
