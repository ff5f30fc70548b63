"""What holds for every type: the JSON form of a value is read back as an equal one, with the same form and digest."""

from __future__ import annotations

import asyncio
import collections
import enum
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from ipaddress import IPv4Address
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NamedTuple, NotRequired, TypeVar
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import (
    AfterValidator,
    AliasChoices,
    AliasPath,
    AllowInfNan,
    AnyUrl,
    BaseModel,
    ByteSize,
    ConfigDict,
    Field,
    JsonValue,
    PlainSerializer,
    PrivateAttr,
    RootModel,
    Secret,
    SecretBytes,
    SecretStr,
    StringConstraints,
    computed_field,
    field_serializer,
    model_validator,
)
from typing_extensions import TypedDict

from tests.effort import examples
from toolcrib.calls import Completed, Outcome, ToolCall
from toolcrib.pipeline import Pipeline, is_call
from toolcrib.schema import Redacted, ToolSpec
from toolcrib.tools import Tool, ez_tool

T = TypeVar("T")


class Size(enum.StrEnum):
    SMALL = "s"
    LARGE = "l"


class Level(enum.IntEnum):
    ONE = 1
    TWO = 2


class Odd(enum.Enum):
    PAIR = (1, 2)
    BYTES = b"\xff"
    DAY = date(2020, 1, 1)


class Line(BaseModel):
    sku: str
    quantity: int = 1
    price: float = 0
    tags: set[str] = set()


class Named(BaseModel):
    name: str = Field(alias="theName")
    other: int = Field(2, validation_alias=AliasChoices("first", "second"))
    path: int = Field(3, validation_alias=AliasPath("at", "depth"))
    written: int = Field(4, serialization_alias="serial")
    left_out: int = Field(0, exclude=True)


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")

    x: int = 0


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)

    day: date
    raw: bytes
    words: tuple[str, ...]


class Base64(BaseModel):
    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64", ser_json_timedelta="float")

    raw: bytes
    span: timedelta


class Tree(BaseModel):
    value: Decimal
    children: list[Tree] = []


class Generics(BaseModel, Generic[T]):
    value: T
    more: list[T] = []


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)

    name: str


class Login(BaseModel):
    user: str
    password: SecretStr
    pin: Annotated[int, Redacted]


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    lives: int


class Checked(BaseModel):
    a: int
    _private: int = PrivateAttr(3)

    @computed_field
    @property
    def double(self) -> int:
        return 2 * self.a

    @model_validator(mode="after")
    def check(self) -> Checked:
        return self


class Card(BaseModel):
    number: str

    @field_serializer("number")
    def masked(self, number: str) -> str:
        return f"****{number[-2:]}"


class Lists(BaseModel):
    numbers: Sequence[float] = ()
    rates: Mapping[date, set[int]] = {}


@dataclass
class Box:
    size: int
    span: timedelta = timedelta(days=1)
    parts: list[bytes] = field(default_factory=list[bytes])
    seen: int = field(default=0, init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    number: int
    day: date


class Pair(NamedTuple):
    left: int
    right: str = "x"


class Row(TypedDict):
    id: int
    at: NotRequired[datetime]


TEXT = st.text(st.characters(codec="utf-8"), max_size=5)
WHOLE = st.integers(-(2**70), 2**70)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
DECIMALS = st.decimals(allow_nan=False, allow_infinity=False)
BYTES = st.binary(max_size=5)
SPANS = st.timedeltas(timedelta(-(10**6)), timedelta(10**6))
ZONES = st.none() | st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
TIMES = st.datetimes(timezones=ZONES)
LINES = st.builds(Line, sku=TEXT, price=FLOATS, tags=st.sets(TEXT, max_size=3)) | st.just({"sku": "a", "price": 5})
JSON = st.recursive(
    st.none() | st.booleans() | WHOLE | FLOATS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


def some(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    """Return a strategy of short lists."""
    return st.lists(values, max_size=3)


def by(keys: st.SearchStrategy[Any], values: st.SearchStrategy[Any] = WHOLE) -> st.SearchStrategy[dict[Any, Any]]:
    """Return a strategy of small dicts."""
    return st.dictionaries(keys, values, max_size=3)


POOL: dict[Any, st.SearchStrategy[Any]] = {
    int: WHOLE | WHOLE.map(str),
    float: FLOATS | st.integers(-100, 100),
    bool: st.booleans() | st.sampled_from([0, 1, "yes"]),
    str: TEXT,
    bytes: BYTES | TEXT,
    complex: st.complex_numbers(allow_nan=False, allow_infinity=False),
    type(None): st.none(),
    Decimal: DECIMALS | st.integers() | FLOATS.map(str),
    Fraction: st.fractions(),
    date: st.dates(),
    datetime: TIMES | TIMES.map(datetime.isoformat) | st.just("2026-12-24T10:00:00Z"),
    time: st.times(),
    timedelta: SPANS | st.integers(-(10**6), 10**6) | st.just("PT1H"),
    UUID: st.uuids() | st.uuids().map(lambda value: str(value).upper()),
    Path: st.just(Path("a/b")),
    IPv4Address: st.ip_addresses(v=4),
    AnyUrl: st.just("https://example.org/a"),
    ByteSize: st.integers(0, 10**6),
    Size: st.sampled_from([*Size, "s"]),
    Level: st.sampled_from([*Level, 1]),
    Odd: st.sampled_from(Odd),
    Literal["a", 1, True]: st.sampled_from(["a", 1, True]),
    Literal[Size.SMALL, b"\xff"]: st.sampled_from([Size.SMALL, b"\xff"]),
    list[float]: some(st.integers(-9, 9) | FLOATS),
    tuple[int, str, date]: st.tuples(WHOLE, TEXT, st.dates()),
    tuple[float, ...]: some(FLOATS).map(tuple),
    set[int]: st.sets(WHOLE, max_size=4) | some(WHOLE),
    frozenset[bytes]: st.frozensets(BYTES, max_size=4),
    set[Frozen]: st.sets(st.builds(Frozen, name=TEXT), max_size=3),
    frozenset[frozenset[int]]: st.frozensets(st.frozensets(WHOLE, max_size=2), max_size=2),
    collections.deque[int]: some(WHOLE).map(collections.deque),
    collections.OrderedDict[str, int]: by(TEXT),
    dict[int, date]: by(WHOLE, st.dates()),
    dict[date, int]: by(st.dates()),
    dict[float, int]: by(FLOATS),
    dict[Level, int]: by(st.sampled_from(Level)),
    dict[Size, list[set[int]]]: by(st.sampled_from(Size), some(st.sets(WHOLE, max_size=3))),
    Iterable[int]: some(WHOLE) | some(WHOLE).map(tuple) | st.sets(WHOLE, max_size=3),
    Sequence[Line]: some(LINES) | some(LINES).map(tuple),
    Mapping[str, set[str]]: by(TEXT, st.sets(TEXT, max_size=3)),
    Any: JSON,
    JsonValue: JSON,
    list: some(JSON),
    dict: by(TEXT, JSON),
    int | str: WHOLE | TEXT,
    float | int: FLOATS | WHOLE,
    str | None: st.none() | TEXT,
    float | Decimal: FLOATS | DECIMALS,
    bytes | int: BYTES | WHOLE,
    Line | None: st.none() | LINES,
    Cat | Dog: st.builds(Cat, lives=WHOLE) | st.builds(Dog, lives=WHOLE),
    Annotated[Cat | Dog, Field(discriminator="kind")]: st.builds(Cat, lives=WHOLE) | st.builds(Dog, lives=WHOLE),
    list[Line | Login]: some(LINES | st.builds(Login, user=TEXT, password=TEXT, pin=WHOLE)),
    Annotated[int, Field(ge=0)]: st.integers(0),
    Annotated[str, StringConstraints(to_lower=True)]: TEXT,
    Annotated[str, AfterValidator(str.strip)]: TEXT,
    Annotated[bytes, Field(max_length=3)]: st.binary(max_size=3),
    Annotated[float, AllowInfNan(True)]: st.floats(allow_nan=False),
    Annotated[int, PlainSerializer(str)]: WHOLE,
    SecretStr: TEXT,
    Secret[date]: st.dates(),
    Annotated[set[int], Redacted]: st.sets(WHOLE, max_size=3),
    Annotated[float, AllowInfNan(True), Redacted]: st.floats(allow_nan=False),
    Annotated[Any, Redacted]: JSON,
    Annotated[list[Box], Redacted]: some(st.builds(Box, WHOLE)),
    Line: LINES,
    Named: st.builds(lambda name, at: Named.model_validate({"theName": name, "at": {"depth": at}}), TEXT, WHOLE),
    Open: JSON.map(lambda more: Open.model_validate({"more": more})),
    Base64: st.builds(Base64, raw=BYTES, span=SPANS),
    Tree: st.builds(Tree, value=DECIMALS, children=some(st.builds(Tree, value=DECIMALS))),
    Generics[date]: st.builds(Generics[date], value=st.dates(), more=some(st.dates())),
    list[Generics[SecretStr]]: some(st.builds(Generics[SecretStr], value=TEXT)),
    Login: st.builds(Login, user=TEXT, password=TEXT, pin=WHOLE),
    Checked: st.builds(Checked, a=WHOLE),
    Card: st.builds(Card, number=TEXT),
    RootModel[list[int]]: some(WHOLE).map(RootModel[list[int]]),
    Pair: st.builds(Pair, WHOLE, TEXT),
    Row: st.just({"id": 1}) | TIMES.map(lambda at: {"id": 1, "at": at}),
}
SOME_VALUES: dict[Any, st.SearchStrategy[Any]] = {
    dict[bytes, int]: by(BYTES),
    dict[tuple[int, str], int]: by(st.tuples(WHOLE, TEXT)),
    dict[frozenset[int], int]: by(st.frozensets(WHOLE, max_size=2)),
    dict[Key, int]: by(st.builds(Key, number=WHOLE, day=st.dates())),
    SecretBytes: BYTES,
    Strict: st.builds(Strict, day=st.dates(), raw=BYTES, words=some(TEXT).map(tuple)),
    Lists: st.builds(Lists, numbers=some(FLOATS).map(tuple), rates=by(st.dates(), st.sets(WHOLE, max_size=3))),
    Box: st.builds(Box, WHOLE, SPANS, some(BYTES)) | st.just({"size": 1}),
    Any: st.dates() | BYTES | st.sets(WHOLE, max_size=3) | st.tuples(WHOLE, TEXT) | JSON,
}
"""Types some of whose values pydantic does not read from what it writes: these count in their own process only."""

SPECS: dict[Any, ToolSpec] = {}


def spec_with(annotation: Any) -> ToolSpec:
    """Return the spec of a tool with one parameter `x` of this type, made once."""

    def tool(x: Any) -> None: ...

    if annotation not in SPECS:
        tool.__annotations__["x"] = annotation
        SPECS[annotation] = ToolSpec.from_function(tool, name="tool")
    return SPECS[annotation]


@pytest.mark.parametrize("annotation", POOL, ids=str)
@settings(max_examples=examples(20))
@given(data=st.data())
def test_the_form_of_a_value_is_read_back_as_an_equal_one(annotation: Any, data: st.DataObject) -> None:
    spec = spec_with(annotation)
    arguments = spec.validate_host({"x": data.draw(POOL[annotation])})

    made = spec.canonical(arguments)
    text = json.dumps(made.values, allow_nan=False)
    again = spec.arguments(spec.validate_json(text))

    assert again == arguments
    assert json.dumps(spec.canonical(again).values) == text
    assert spec.canonical(again).digest("tool") == made.digest("tool")
    assert made.without_form == ()
    assert spec.validate_host(arguments) == arguments


@pytest.mark.parametrize("annotation", SOME_VALUES, ids=str)
@settings(max_examples=examples(20))
@given(data=st.data())
def test_a_call_comes_back_with_equal_values_or_names_the_argument_that_does_not(
    annotation: Any, data: st.DataObject
) -> None:
    called: list[Any] = []
    pipeline = Pipeline([noting(annotation, called)])
    value = data.draw(SOME_VALUES[annotation])

    outcome = asyncio.run(called_from_json(pipeline, ToolCall("note", {"x": value}, "c", origin="host")))

    if isinstance(outcome, Completed):
        assert called == [spec_with(annotation).validate_host({"x": value})["x"]]
    else:
        assert "`note` cannot take these arguments: x: its value is another one" in outcome.text()
        assert called == []


def noting(annotation: Any, called: list[Any]) -> Tool[..., Any]:
    """Return a tool with one parameter `x` of this type, which keeps what it is called with."""

    async def note(x: Any) -> None:
        called.append(x)

    note.__annotations__["x"] = annotation
    return ez_tool(note)


async def called_from_json(pipeline: Pipeline, call: ToolCall) -> Outcome:
    """Return the outcome of a call that goes on from its JSON form."""
    admitted = await pipeline.admit(call)
    assert is_call(admitted), admitted
    return await pipeline.run(json.loads(json.dumps(admitted.to_dict())))
