"""ToolSpec.from_schema: a tool that brings its JSON schema along."""

from typing import Any

import pytest

from tests.jsonschema.bombs import bomb
from toolcrib.errors import InvalidArguments
from toolcrib.schema import REDACTED, STUB_IMPORTS, StubTypes, ToolSpec

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


def test_the_signature_says_what_the_stub_says_with_dict_for_an_object_of_known_keys() -> None:
    made = spec(returns={"type": "array", "items": {"$ref": "#/$defs/Row"}, "$defs": {"Row": RECORD}})

    assert made.signature == "forecast(city: str, days: int = 1, stop: dict = ...) -> list[dict]"


RECORD = {"type": "object", "properties": {"id": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ({"enum": ["a", 1, None]}, "Literal['a', 1, None]"),
        ({"const": "a"}, "Literal['a']"),
        ({"type": ["string", "null"]}, "str | None"),
        ({"anyOf": [{"type": "string"}, RECORD]}, "str | dict"),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, "list[Literal['a', 'b']]"),
        ({"type": "array"}, "list"),
        ({"type": "object"}, "dict"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "dict[str, int]"),
        ({"$ref": "#/$defs/Kind"}, "Literal['k']"),
        ({}, "Any"),
    ],
    ids=str,
)
def test_a_signature_shows_the_type_of_each_argument(part: dict[str, Any], text: str) -> None:
    schema = {"properties": {"x": part}, "required": ["x"], "$defs": {"Kind": {"enum": ["k"]}}}

    assert ToolSpec.from_schema(call, schema, name="f").signature == f"f(x: {text})"


def test_a_signature_of_a_schema_that_is_too_large_has_the_names_alone() -> None:
    assert ToolSpec.from_schema(call, bomb("anyOf"), name="evil").signature == "evil(x, y=...)"


NAMES = ("unit", "max-age", "from", "others", "city", "ﬁeld", "__debug__")


def test_arguments_without_a_python_name_are_shown_as_a_program_gives_them() -> None:
    properties = {name: {"type": "string"} for name in NAMES}
    schema = {"type": "object", "properties": properties, "required": ["city", "max-age"]}

    made = ToolSpec.from_schema(call, schema, name="forecast")

    assert made.by_position == (("city", "unit", "others"), None)
    assert made.signature == (
        "forecast(city: str, unit: str = ..., others: str = ..., "
        "**{'max-age': str, 'from'?: str, 'ﬁeld'?: str, '__debug__'?: str})"
    )


def test_a_stub_of_arguments_without_a_python_name_is_python() -> None:
    properties = {name: {"type": "string"} for name in NAMES}
    schema = {"type": "object", "properties": properties, "required": ["city", "max-age"]}
    types = StubTypes()

    stub = ToolSpec.from_schema(call, schema, name="forecast").stub(docs=False, types=types)

    assert stub == (
        "def forecast(city: str, unit: str = ..., others: str = ..., **others_: Unpack[ForecastOthers]) -> Any:\n"
        "    ..."
    )
    space: dict[str, Any] = {}
    exec("\n".join([STUB_IMPORTS, *types.render(), stub]), space)
    assert space["ForecastOthers"].__required_keys__ == {"max-age"}
    assert space["ForecastOthers"].__optional_keys__ == {"from", "ﬁeld", "__debug__"}


PASSWORD = {"type": "string", "format": "password"}
MARKED: dict[str, tuple[Any, Any, Any]] = {
    "password": (PASSWORD, "s3cret", REDACTED),
    "write only": ({"type": "string", "writeOnly": True}, "s3cret", REDACTED),
    "object": ({"type": "object", "writeOnly": True}, {"a": "s3cret"}, REDACTED),
    "property": (
        {"properties": {"user": {}, "pin": PASSWORD}},
        {"user": "ann", "pin": "s3cret"},
        {"user": "ann", "pin": REDACTED},
    ),
    "items": ({"type": "array", "items": PASSWORD}, ["s3cret", None], [REDACTED, None]),
    "first item": ({"prefixItems": [PASSWORD], "items": {}}, ["s3cret", "b"], [REDACTED, "b"]),
    "old first item": ({"items": [{}, PASSWORD], "additionalItems": {}}, ["a", "s3cret"], ["a", REDACTED]),
    "other properties": (
        {"properties": {"a": {}}, "additionalProperties": PASSWORD},
        {"a": 1, "b": "s3cret"},
        {"a": 1, "b": REDACTED},
    ),
    "pattern": ({"patternProperties": {"^p": PASSWORD}}, {"pin": "s3cret"}, {"pin": REDACTED}),
    "reference": ({"$ref": "#/$defs/Pin"}, "s3cret", REDACTED),
    "part": (
        {"allOf": [{"$ref": "#/$defs/Login"}]},
        {"pin": "s3cret", "next": {"pin": "s3cret"}},
        {"pin": REDACTED, "next": {"pin": REDACTED}},
    ),
    "choice": ({"anyOf": [{"type": "null"}, {"oneOf": [PASSWORD]}]}, "s3cret", REDACTED),
    "condition": ({"if": {}, "then": {"properties": {"pin": PASSWORD}}}, {"pin": "s3cret"}, {"pin": REDACTED}),
}


@pytest.mark.parametrize(("schema", "value", "shown"), MARKED.values(), ids=[*MARKED])
def test_what_a_schema_marks_is_secret(schema: Any, value: Any, shown: Any) -> None:
    login = {"type": "object", "properties": {"pin": PASSWORD, "next": {"$ref": "#/$defs/Login"}}}
    whole = {"properties": {"who": {}, "x": schema}, "$defs": {"Pin": PASSWORD, "Login": login}}

    made = ToolSpec.from_schema(call, whole, name="log_in")
    form = made.canonical(made.arguments(made.validate_python({"who": "ann", "x": value})))

    assert made.has_secrets
    assert form.shown == {"who": "ann", "x": shown}
    assert form.values == {"who": "ann", "x": value}
    assert "s3cret" in made.secrets_in(form)


def test_what_is_marked_beside_what_is_shown_is_secret() -> None:
    whole = {"properties": {"x": {"properties": {"pin": PASSWORD}}}}

    made = ToolSpec.from_schema(call, {"properties": {"x": {}}}, name="log_in", whole=lambda: whole)

    assert made.canonical({"x": {"pin": "s3cret"}}).shown == {"x": {"pin": REDACTED}}


def test_what_is_marked_in_no_place_costs_nothing() -> None:
    made = spec()
    form = made.canonical({"city": "Oslo"})

    assert not made.has_secrets
    assert form.shown is form.values
