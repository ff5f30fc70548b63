from __future__ import annotations

import dataclasses
import enum
import json
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, NotRequired, TypeVar
from uuid import UUID

import pytest
from pydantic import BaseModel, Field, JsonValue, SecretStr
from typing_extensions import ReadOnly, TypeAliasType, TypedDict, Unpack

from toolcrib.errors import SchemaError
from toolcrib.schema import Redacted, ToolSpec

T = TypeVar("T")


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Place(BaseModel):
    title: str
    lat: float = 0.0


class Node(BaseModel):
    value: int
    children: list[Node] = []


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


class Page(BaseModel, Generic[T]):
    items: list[T]


class Row(TypedDict):
    id: int
    tag: NotRequired[str]
    frozen: ReadOnly[float]


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Pair(NamedTuple):
    left: int
    right: str


class Filters(TypedDict, total=False):
    limit: int
    city: str


UserId = NewType("UserId", int)
Numbers = TypeAliasType("Numbers", list[int])
Tree = TypeAliasType("Tree", "dict[str, Tree] | int")


def schema_of(annotation: Any, default: Any = ...) -> dict[str, Any]:
    """Return the schema of the only parameter `x`, its reference resolved."""

    def tool(x: Any) -> None: ...

    tool.__annotations__["x"] = annotation
    if default is not ...:
        tool.__defaults__ = (default,)
    schema = ToolSpec.from_function(tool, name="tool").parameters
    json.dumps(schema, allow_nan=False)
    part = schema["properties"]["x"]
    name = part.get("$ref", "").removeprefix("#/$defs/")
    return {**schema["$defs"][name], **{k: v for k, v in part.items() if k != "$ref"}} if name else part


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (dict, {"type": "object", "additionalProperties": True}),
        (Any, {}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal["a"], {"type": "string", "const": "a"}),
        (Color, {"type": "string", "enum": ["red", "blue"]}),
        (Annotated[int, Field(ge=1, description="n")], {"type": "integer", "minimum": 1, "description": "n"}),
        (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (set[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
        (date, {"type": "string", "format": "date"}),
        (datetime, {"type": "string", "format": "date-time"}),
        (UUID, {"type": "string", "format": "uuid"}),
        (Path, {"type": "string", "format": "path"}),
        (bytes, {"type": "string", "format": "binary"}),
        (UserId, {"type": "integer"}),
        (Numbers, {"type": "array", "items": {"type": "integer"}}),
        (Page[int], {"type": "object", "properties": {"items": schema_of(list[int])}, "required": ["items"]}),
        (JsonValue, {}),
        (SecretStr, {"type": "string", "format": "password", "writeOnly": True}),
        (Annotated[str, Redacted], {"type": "string"}),
    ],
    ids=str,
)
def test_a_type_has_its_schema(annotation: Any, expected: dict[str, Any]) -> None:
    assert schema_of(annotation) == expected


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (int | None, {"type": ["integer", "null"]}),
        (Annotated[int, Field(ge=1)] | None, {"type": ["integer", "null"], "minimum": 1}),
        (list[int] | None, {"type": ["array", "null"], "items": {"type": "integer"}}),
        (Literal["a", "b"] | None, {"type": ["string", "null"], "enum": ["a", "b", None]}),
        (Literal["a"] | None, {"type": ["string", "null"], "enum": ["a", None]}),
        (Literal["a", None], {"enum": ["a", None]}),
        (int | str | None, {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]}),
        (Place | None, {"anyOf": [{"$ref": "#/$defs/Place"}, {"type": "null"}]}),
        (None, {"type": "null"}),
    ],
    ids=str,
)
def test_null_is_accepted_where_a_type_says_so(annotation: Any, expected: dict[str, Any]) -> None:
    assert schema_of(annotation) == expected


def test_a_default_of_none_means_that_none_will_do() -> None:
    assert schema_of(int, None) == {"type": ["integer", "null"], "default": None}
    assert schema_of(Literal["a", None], None) == {"enum": ["a", None], "default": None}


def test_records_of_every_kind_have_their_keys() -> None:
    for record in (Row, Point, Place):
        assert schema_of(record)["type"] == "object"

    assert schema_of(Row)["required"] == ["id", "frozen"]
    assert schema_of(Point)["properties"]["y"] == {"type": "integer", "default": 0}
    assert [part["type"] for part in schema_of(Pair)["prefixItems"]] == ["integer", "string"]


def test_unions_with_a_discriminator_name_it() -> None:
    schema = schema_of(Annotated[Cat | Dog, Field(discriminator="kind")])

    assert schema["discriminator"]["propertyName"] == "kind"
    assert len(schema["oneOf"]) == 2


def test_recursive_types_refer_to_themselves() -> None:
    assert schema_of(Node)["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}
    assert schema_of(Tree)["anyOf"][0]["additionalProperties"] == {"$ref": "#/$defs/Tree"}


def test_titles_go_and_a_property_named_title_stays() -> None:
    def tool(title: str, place: Annotated[Place, Field(title="Where")]) -> None: ...

    schema = ToolSpec.from_function(tool, name="tool").parameters

    assert list(schema["properties"]) == ["title", "place"]
    assert list(schema["$defs"]["Place"]["properties"]) == ["title", "lat"]
    assert '"Where"' not in json.dumps(schema)
    assert "title" not in schema["$defs"]["Place"]["properties"]["lat"]


@pytest.mark.parametrize("default", [object(), len, float("nan"), float("inf"), {1, object()}])
def test_a_default_that_json_cannot_say_is_left_out(default: Any) -> None:
    assert "default" not in schema_of(Any, default)


def test_a_default_is_shown_as_json() -> None:
    assert schema_of(Color, Color.RED)["default"] == "red"
    assert schema_of(date, date(2025, 1, 31))["default"] == "2025-01-31"
    assert schema_of(Point, Point(1))["default"] == {"x": 1, "y": 0}
    assert schema_of(Decimal, Decimal("1.5"))["default"] == "1.5"


def test_a_secret_default_is_not_shown() -> None:
    class Account(BaseModel):
        key: Annotated[str, Redacted] = "sk-live-1"
        deep: list[Annotated[str, Redacted]] = ["sk-live-2"]

    def tool(
        account: Account = Account(key="sk-live-3"),  # noqa: B008
        token: Annotated[str, Redacted] = "sk-live-4",
        password: SecretStr = SecretStr("sk-live-5"),  # noqa: B008
    ) -> None: ...

    spec = ToolSpec.from_function(tool, name="tool")

    assert "sk-live" not in json.dumps(spec.parameters)
    assert "sk-live" not in spec.signature
    assert "sk-live" not in spec.stub()


def test_variadic_parameters_are_an_array_and_typed_extra_values() -> None:
    def tool(first: int, /, *rest: str, **others: float) -> None: ...

    schema = ToolSpec.from_function(tool, name="tool").parameters

    assert schema["properties"]["rest"] == {"type": "array", "items": {"type": "string"}, "default": []}
    assert schema["additionalProperties"] == {"type": "number"}
    assert schema["required"] == ["first"]


def test_unpacked_keywords_are_arguments_of_their_own() -> None:
    def tool(query: str, **filters: Unpack[Filters]) -> None: ...

    spec = ToolSpec.from_function(tool, name="tool")

    assert list(spec.parameters["properties"]) == ["query", "limit", "city"]
    assert spec.parameters["additionalProperties"] is False
    assert spec.arguments(spec.validate_json('{"query": "x", "limit": 1}')) == {"query": "x", "limit": 1}


def test_no_parameters_are_an_empty_object() -> None:
    def now() -> None: ...

    assert ToolSpec.from_function(now, name="now").parameters == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }


class Unknown:
    pass


@pytest.mark.parametrize("annotation", [Unknown, Callable[[int], int], list[Unknown], 3, "not a type"], ids=str)
def test_a_type_without_a_schema_is_an_error_that_names_tool_and_parameter(annotation: Any) -> None:
    def tool(fine: int, x: Any) -> int:
        return fine

    tool.__annotations__["x"] = annotation
    spec = ToolSpec.from_function(tool, name="tool")

    with pytest.raises(SchemaError, match="`tool` has no schema: parameter `x`"):
        _ = spec.parameters

    assert spec.bind_host((1, 2), {}) == ({"fine": 1, "x": 2}, ())
    assert spec.signature.startswith("tool(fine: int, x: ")


def test_a_schema_is_built_once() -> None:
    def tool(x: int) -> None: ...

    spec = ToolSpec.from_function(tool, name="tool")

    assert spec.parameters is spec.parameters
    assert spec.input_model is spec.input_model
