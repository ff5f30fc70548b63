from __future__ import annotations

import enum
import json
import pickle
from datetime import date
from typing import Annotated, Any, Literal, NotRequired

import pytest
from pydantic import BaseModel, Field, SecretStr, field_validator
from typing_extensions import TypedDict

from toolcrib.errors import InvalidArguments
from toolcrib.schema import Redacted, RunContext, ToolSpec


class Stop(BaseModel):
    city: str
    nights: int = Field(default=1, ge=1, description="How long.")


class Train(BaseModel):
    kind: Literal["train"]
    number: int


class Plane(BaseModel):
    kind: Literal["plane"]
    seat: str


class Bag(TypedDict):
    weight: float
    label: NotRequired[str]


class Class(enum.Enum):
    FIRST = "first"
    SECOND = "second"


def book(
    name: str,
    stops: list[Stop],
    ride: Annotated[Train | Plane, Field(discriminator="kind")] | None = None,
    travel_class: Class = Class.SECOND,
    unit: Literal["km", "mi"] = "km",
    day: date | None = None,
    either: int | Stop | None = None,
    bags: dict[str, int | Bag] = {},  # noqa: B006
    pair: tuple[int, str] = (1, "a"),
    strict: bool = False,
) -> None:
    """Book a journey.

    Args:
        name: Who travels.
        stops: Where to.
    """


BOOK = ToolSpec.from_function(book, name="book")
NAMES = "name, stops, ride, travel_class, unit, day, either, bags, pair, strict"
GOOD: dict[str, Any] = {"name": "Ada", "stops": [{"city": "Oslo"}]}


def problems(spec: ToolSpec, given: str | bytes | dict[str, Any]) -> dict[str, str]:
    with pytest.raises(InvalidArguments) as caught:
        spec.validate_python(given) if isinstance(given, dict) else spec.validate_json(given)
    return {problem.field: problem.problem for problem in caught.value.problems}


@pytest.mark.parametrize(
    ("given", "field", "problem"),
    [
        ({"name": 5}, "name", "must be a string; got 5"),
        ({"name": None}, "name", "must be a string; got null"),
        ({"name": ["Ada"]}, "name", "must be a string; got an array"),
        ({"name": {"first": "Ada"}}, "name", "must be a string; got an object"),
        ({"stops": "Oslo"}, "stops", 'must be an array; got "Oslo"'),
        ({"stops": [{"city": 1}]}, "stops[0].city", "must be a string; got 1"),
        ({"stops": [{"city": "x"}, {}]}, "stops[1].city", "missing, it is required: string"),
        ({"stops": ["Oslo"]}, "stops[0]", 'must be an object; got "Oslo"'),
        (
            {"stops": [{"city": "x", "nights": 0}]},
            "stops[0].nights",
            "must be greater than or equal to 1; got 0",
        ),
        ({"ride": {"kind": "boat"}}, "ride", "the key 'kind' must be one of 'train', 'plane'; got \"boat\""),
        ({"ride": {"seat": "1A"}}, "ride", "must have the key 'kind', which tells the kinds of object apart"),
        ({"ride": {"kind": "train"}}, "ride.number", "missing, it is required: integer"),
        ({"travel_class": "third"}, "travel_class", "must be 'first' or 'second'; got \"third\""),
        ({"unit": "m"}, "unit", "must be 'km' or 'mi'; got \"m\""),
        ({"unit": None}, "unit", "must be 'km' or 'mi'; got null, leave it out to have the default"),
        ({"day": "tomorrow"}, "day", 'must be a date like 2025-01-31; got "tomorrow"'),
        ({"either": "x"}, "either", 'must be an integer or an object; got "x"'),
        ({"either": {"nights": 2}}, "either.city", "missing, it is required: string"),
        ({"bags": {"red": "x"}}, "bags.red", 'must be an integer or an object; got "x"'),
        ({"bags": {"red": {"weight": "x"}}}, "bags.red.weight", 'must be a number; got "x"'),
        ({"bags": {"red": {"weight": 1, "x": 1}}}, "bags.red.x", "unknown key; the keys are weight, label"),
        ({"pair": [1]}, "pair[1]", "missing, it is required: string"),
        ({"strict": "maybe"}, "strict", 'must be true or false; got "maybe"'),
        ({"nam": "Ada"}, "nam", f"unknown argument; did you mean name? The arguments are {NAMES}"),
        ({"name": "x" * 3, "zzz": 1}, "zzz", f"unknown argument; the arguments are {NAMES}"),
    ],
)
def test_a_misfit_names_the_field_and_what_would_be_right(given: dict[str, Any], field: str, problem: str) -> None:
    arguments = {**GOOD, **given}

    assert problems(BOOK, arguments) == {field: problem}
    assert problems(BOOK, json.dumps(arguments)) == {field: problem}


def test_a_missing_argument_says_what_it_is_for() -> None:
    assert problems(BOOK, "{}") == {
        "name": "missing, it is required: string, Who travels.",
        "stops": "missing, it is required: array, Where to.",
    }


def test_problems_come_in_the_order_of_the_arguments() -> None:
    wrong = {"name": 1, "either": "x", "strict": 7, "stops": 2}

    assert list(problems(BOOK, wrong)) == ["name", "stops", "either", "strict"]


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (
            '{"name": "Ada"',
            'not valid JSON: it is cut in the middle of an object, after 14 characters: `{"name": "Ada"`. Send all',
        ),
        ("{'name': 1}", "not valid JSON: it has ' as Python does at line 1 column 2. JSON has double quotes, null"),
        ('{"name": "Ada", "day": None}', "not valid JSON: it has None as Python does at line 1 column 2"),
        ('{"name": "Å",\n "strict": True}', "not valid JSON: it has True as Python does at line 2 column"),
        (
            '```json\n{"name": "Ada"}\n```',
            "not valid JSON: it is in a Markdown fence. Send the JSON object alone, from { to }",
        ),
        (
            "book(name='Ada')",
            "not valid JSON: it is a call in Python. Send its arguments alone, by name, as one JSON object",
        ),
        (
            '{"name": "Ada",}',
            "not valid JSON: trailing comma at line 1 column 16. Send the arguments as one JSON object",
        ),
        (b'{"name": "\xff"}', "not valid JSON: invalid unicode code point at line 1 column"),
        ('{"name": "\ud83d"}', "has half a character in it. Write that text again"),
        ("\ud83d", "has half a character in it. Write that text again"),
        ("[1, 2]", "must be a JSON object with the arguments by name; got an array"),
        ('"{}"', "must be a JSON object with the arguments by name; got a text that holds one. Send the object itself"),
        ('"x"', 'must be a JSON object with the arguments by name; got "x"'),
        ("7", "must be a JSON object with the arguments by name; got 7"),
    ],
)
def test_text_that_is_no_object_says_so(raw: str | bytes, problem: str) -> None:
    found = problems(BOOK, raw)

    assert list(found) == [""]
    assert found[""].startswith(problem)


def test_a_cut_text_with_a_secret_is_not_quoted() -> None:
    def pay(card: SecretStr) -> None: ...

    found = problems(ToolSpec.from_function(pay, name="pay"), '{"card": "4111 1111')

    assert found[""].endswith("after 19 characters. Send all of it again, as one JSON object")


@pytest.mark.parametrize(
    ("given", "field", "problem"),
    [
        (
            {"stops": '[{"city": "Oslo"}]'},
            "stops",
            "must be an array; got a text that holds one. Send the array itself",
        ),
        (
            {"stops": [' {"city": "x"}']},
            "stops[0]",
            "must be an object; got a text that holds one. Send the object itself",
        ),
        (
            {"stops": [{"citi": "Oslo"}]},
            "stops[0].city",
            "missing, it is required: string; it has the unknown key citi",
        ),
    ],
)
def test_a_text_in_the_place_of_a_value_and_an_unknown_key_are_named(given: Any, field: str, problem: str) -> None:
    assert problems(BOOK, {**GOOD, **given})[field].startswith(problem)


@pytest.mark.parametrize("raw", ["", " ", "null", b"", b"null", "{}"])
def test_no_arguments_are_no_arguments(raw: str | bytes) -> None:
    def now() -> str:
        return "noon"

    spec = ToolSpec.from_function(now, name="now")

    assert spec.arguments(spec.validate_json(raw)) == {}


@pytest.mark.parametrize("raw", ["", " ", "null", b"", b"null"])
def test_nothing_is_not_taken_for_the_defaults(raw: str | bytes) -> None:
    def now(zone: str = "UTC") -> str:
        return zone

    spec = ToolSpec.from_function(now, name="now")

    assert problems(spec, raw)[""].startswith("no arguments came")
    assert spec.arguments(spec.validate_json("{}")) == {"zone": "UTC"}


def test_what_the_host_sets_is_refused_from_a_caller() -> None:
    def fetch(url: str, api_key: str, ctx: RunContext) -> None: ...

    spec = ToolSpec.from_function(fetch, name="fetch", fixed=frozenset({"api_key"}))
    message = "set by the host and not by the caller; leave it out"

    assert problems(spec, '{"url": "x", "api_key": "k", "ctx": {}}') == {"api_key": message, "ctx": message}


def test_what_the_host_sets_is_refused_though_anything_else_is_taken() -> None:
    def fetch(url: str, ctx: RunContext, api_key: str, **headers: str) -> None: ...

    spec = ToolSpec.from_function(fetch, name="fetch", fixed=frozenset({"api_key"}))
    message = "set by the host and not by the caller; leave it out"

    assert problems(spec, {"url": "x", "accept": "y", "api_key": "k"}) == {"api_key": message}
    assert spec.arguments(spec.validate_json('{"url": "x", "accept": "y"}')) == {"url": "x", "accept": "y"}


def test_a_tool_without_arguments_says_that_it_has_none() -> None:
    def now() -> None: ...

    assert problems(ToolSpec.from_function(now, name="now"), '{"zone": "UTC"}') == {
        "zone": "unknown argument; no arguments are allowed"
    }


def test_a_validator_speaks_for_itself() -> None:
    class Even(BaseModel):
        number: int

        @field_validator("number")
        @classmethod
        def check(cls, value: int) -> int:
            if value % 2:
                raise ValueError("must be even")
            return value

    def halve(x: Even) -> None: ...

    spec = ToolSpec.from_function(halve, name="halve")

    assert problems(spec, '{"x": {"number": 3}}') == {"x.number": "must be even; got 3"}


def test_long_values_are_cut() -> None:
    problem = problems(BOOK, {**GOOD, "strict": "y" * 500})["strict"]

    assert len(problem) < 120
    assert problem.endswith("(502 characters)")


def test_a_python_object_is_named_by_its_type() -> None:
    assert problems(BOOK, {**GOOD, "name": object()}) == {"name": "must be a string; got a Python object"}


class Login(BaseModel):
    user: str
    password: SecretStr = Field(min_length=8)
    pin: Annotated[str, Redacted]

    @field_validator("pin")
    @classmethod
    def check(cls, value: str) -> str:
        raise ValueError(f"{value} is not a pin")


def login(account: Login, token: Annotated[str, Redacted, Field(pattern="^sk-")], retries: int = 1) -> None: ...


def test_a_secret_is_never_quoted() -> None:
    spec = ToolSpec.from_function(login, name="login")
    given = {"account": {"user": "Ada", "password": "hunter2", "pin": "pin-4711"}, "token": "tk-99", "retries": "x"}

    with pytest.raises(InvalidArguments) as caught:
        spec.validate_json(json.dumps(given))

    said = str(caught.value)
    assert not any(secret in said for secret in ("hunter2", "pin-4711", "tk-99"))
    assert 'retries: must be an integer; got "x"' in said
    assert "account.pin: not accepted" in said
    assert caught.value.__context__ is None


def test_wrong_types_around_a_secret_are_not_quoted_either() -> None:
    spec = ToolSpec.from_function(login, name="login")

    found = problems(spec, {"account": "hunter2", "token": ["tk-99"]})

    assert found == {"account": "must be an object", "token": "must be a string"}


def test_the_error_pickles_and_is_a_type_and_a_value_error() -> None:
    with pytest.raises(InvalidArguments) as caught:
        BOOK.validate_json("{}")

    again = pickle.loads(pickle.dumps(caught.value))

    assert str(again) == str(caught.value)
    assert again.problems == caught.value.problems
    assert isinstance(again, TypeError)
    assert isinstance(again, ValueError)


def test_keys_of_a_dict_and_items_of_a_set_are_named() -> None:
    def tool(counts: dict[int, int], days: set[int]) -> None: ...

    spec = ToolSpec.from_function(tool, name="tool")

    assert problems(spec, '{"counts": {"x": 1}, "days": ["a"]}') == {
        "counts.x": 'must be an integer; got "x"',
        "days[0]": 'must be an integer; got "a"',
    }


def test_unions_inside_unions_are_one_problem() -> None:
    def tool(x: list[int | str] | dict[str, int | bool]) -> None: ...

    spec = ToolSpec.from_function(tool, name="tool")

    assert problems(spec, '{"x": 1.5}') == {"x": "must be an array or an object; got 1.5"}
    assert problems(spec, '{"x": [null]}') == {"x[0]": "must be an integer or a string; got null"}


def numbers(numbers: list[int], **more: int) -> None: ...


@pytest.mark.parametrize(
    ("given", "count", "last"),
    [
        ({"numbers": ["x"] * 31}, 31, "and 1 more"),
        ({"numbers": ["x"] * 9_000}, 31, "and 8970 more"),
        ({"numbers": ["x"] * 20_000}, 1, "20000 values in them do not fit; send fewer at a time to see which"),
        ({"numbers": [], **{f"k{n}": "x" for n in range(500)}}, 31, "and 470 more"),
    ],
)
def test_of_very_many_problems_the_first_are_told(given: dict[str, Any], count: int, last: str) -> None:
    with pytest.raises(InvalidArguments) as caught:
        ToolSpec.from_function(numbers, name="numbers").validate_python(given)

    assert len(caught.value.problems) == count
    assert caught.value.problems[-1].problem == last


def test_a_key_without_end_is_cut_in_what_is_said_of_it() -> None:
    with pytest.raises(InvalidArguments) as caught:
        BOOK.validate_python({"x" * 100_000: 1})

    assert len(str(caught.value)) < 2_000
    assert "x... (100000 characters): unknown argument" in str(caught.value)
