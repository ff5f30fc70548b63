"""One JSON is read in one way: by the types of a Python tool, and by the JSON schema that it is shown as."""

import json
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from itertools import product
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, BeforeValidator, Field

from tests.effort import examples
from toolcrib.errors import InvalidArguments
from toolcrib.schema import ToolSpec
from toolcrib.tools.from_schema import schema_tool


class Level(IntEnum):
    LOW = 0
    HIGH = 1


class Size(IntEnum):
    SMALL = 2
    LARGE = 3


class Share(float, Enum):
    NONE = 0.0
    HALF = 0.5
    ALL = 1.0


class Mark(Enum):
    ON = True
    OFF = False


class Line(BaseModel):
    amount: int
    paid: bool = False


@dataclass
class Box:
    width: float


TYPES: list[Any] = [
    int, float, bool, str, int | str, float | None, int | float, list[int], dict[str, float], tuple[int, bool],
    Literal[0, 1], Literal[1, "a"], Literal[True], Level, Share, Size, Mark, Line, Box, Line | int,
    Annotated[int, Field(ge=0)], dict[str, Line],
]  # fmt: skip
SCALARS = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.0, 1.0, 2.5, "", "1", "2.5", "true", "a"])
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["amount", "paid", "width"]), inner, max_size=2)
    ),
    max_leaves=4,
)


def spec_of(annotation: Any) -> ToolSpec:
    async def take(x: Any) -> None: ...

    take.__annotations__["x"] = annotation
    return ToolSpec.from_function(take, name="take")


def takes(spec: ToolSpec, text: str) -> bool:
    try:
        spec.read(text)
    except InvalidArguments:
        return False
    return True


@pytest.mark.parametrize("annotation", TYPES, ids=str)
@settings(max_examples=examples(60))
@given(value=VALUES)
def test_a_python_tool_takes_what_its_schema_takes(annotation: Any, value: Any) -> None:
    spec = spec_of(annotation)
    shown = schema_tool("take", spec.parameters).spec
    text = json.dumps({"x": value})

    assert takes(spec, text) == takes(shown, text)


@pytest.mark.parametrize(
    ("annotation", "sent", "problem"),
    [
        (int, "true", "x: must be an integer; got true"),
        (int, '"2"', 'x: must be an integer; got "2"'),
        (float, "false", "x: must be a number; got false"),
        (bool, "1", "x: must be true or false; got 1"),
        (Level, '"1"', 'x: must be an integer; got "1"'),
        (Share, '"1"', 'x: must be an integer; got "1"'),
        (Size, '"2"', 'x: must be an integer; got "2"'),
        (list[int], "[1, true]", "x[1]: must be an integer; got true"),
        (Line, '{"amount": "2"}', 'x.amount: must be an integer; got "2"'),
        (timedelta, "60", "x: must be an ISO 8601 duration like PT1H30M; got 60"),
        (datetime, "0", "x: must be a date and time like 2025-01-31T14:30:00; got 0"),
        (time, "0", "x: must be a time like 14:30:00; got 0"),
    ],
)
def test_a_value_of_another_kind_is_refused_in_words(annotation: Any, sent: str, problem: str) -> None:
    with pytest.raises(InvalidArguments) as refused:
        spec_of(annotation).read(f'{{"x": {sent}}}')

    assert str(refused.value).endswith(problem)


@pytest.mark.parametrize(
    ("annotation", "sent", "read"),
    [
        (int, "2.0", 2),
        (float, "2", 2.0),
        (Decimal, '"1.5"', Decimal("1.5")),
        (date, '"2025-01-31"', date(2025, 1, 31)),
        (Annotated[list[int], BeforeValidator(lambda sent: sent.split(","))], '"1,2"', [1, 2]),
        (Annotated[date, BeforeValidator(str.strip)], '" 2025-01-31"', date(2025, 1, 31)),
        (bytes | int, '"0"', b"0"),
        (dict[Level, int], '{"1": 5}', {Level.HIGH: 5}),
        (dict[Size, int], '{"3": 5}', {Size.LARGE: 5}),
    ],
)
def test_what_the_schema_says_is_read(annotation: Any, sent: str, read: Any) -> None:
    assert spec_of(annotation).read(f'{{"x": {sent}}}') == {"x": read}


@pytest.mark.parametrize(
    ("annotation", "sent", "read"),
    [
        (int, "2.0", 2),
        (int, f"{10**400}", 10**400),
        (float, "1e300", 1e300),
        (int | str, "2.0", 2),
        (int | float, "2.0", 2.0),
        (list[int], "[1, 2.0]", [1, 2]),
        (dict[str, int], '{"a": 2.0}', {"a": 2}),
        (tuple[int, float], "[2.0, 2.0]", (2, 2.0)),
    ],
)
def test_a_number_is_read_alike_by_types_and_by_their_schema(annotation: Any, sent: str, read: Any) -> None:
    spec = spec_of(annotation)

    for one in (spec, schema_tool("take", spec.parameters).spec):
        (found,) = one.read(f'{{"x": {sent}}}').values()
        assert repr(found) == repr(list(read) if isinstance(found, list) and isinstance(read, tuple) else read)


def test_an_integer_in_an_object_is_read_as_one_and_a_float_of_too_many_digits_is_refused() -> None:
    line = {"type": "object", "properties": {"amount": {"type": "integer"}}}
    tool = schema_tool(
        "take", {"properties": {"x": {"$ref": "#/$defs/L"}, "y": {"type": "integer"}}, "$defs": {"L": line}}
    )

    assert repr(tool.spec.read('{"x": {"amount": 2.0}, "y": 1e15}')) == "{'x': {'amount': 2}, 'y': 1000000000000000}"
    with pytest.raises(InvalidArguments, match=r"x.amount: must be an integer, with all of its digits; got 1e\+300"):
        tool.spec.read('{"x": {"amount": 1e300}}')


def test_a_mapping_of_a_model_is_read_like_its_text() -> None:
    with pytest.raises(InvalidArguments, match="must be an integer; got true"):
        spec_of(int).read({"x": True})


def test_a_host_may_convert_its_own_values() -> None:
    assert spec_of(int).validate_host({"x": "2"}) == {"x": 2}


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('{"x": 2, "x": 3}', "x"),
        ('{"x": 2, "\\u0078": 2}', "x"),
        ('{"x": {"amount": 1, "amount": 1}}', "amount"),
        ('{"x": [{"a": 1}, {"a": ":", "b": 1, "b": 2}]}', "b"),
    ],
)
@pytest.mark.parametrize("tool", [ToolSpec.from_function(lambda x: None, name="f"), schema_tool("s", {}).spec])
def test_a_key_twice_is_told_to_the_model(tool: ToolSpec, text: str, key: str) -> None:
    for raw, read in product((text, text.encode()), (tool.validate_json, tool.read)):
        with pytest.raises(InvalidArguments) as refused:
            read(raw)

        assert str(refused.value).endswith(f"{key}: sent more than once; send it once")


@given(value=VALUES)
def test_a_key_once_is_never_called_twice(value: Any) -> None:
    assert takes(ToolSpec.from_function(lambda x: None, name="f"), json.dumps({"x": [value, {"a": ": :"}]}))
