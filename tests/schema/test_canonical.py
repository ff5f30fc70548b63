"""Canonical arguments: one JSON form that is shown, digested, recorded, and read back as it was."""

from __future__ import annotations

import enum
import json
import subprocess
import sys
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import (
    AliasPath,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    RootModel,
    Secret,
    SecretBytes,
    SecretStr,
    field_serializer,
)
from typing_extensions import TypedDict

from toolcrib.errors import InvalidArguments, SchemaError
from toolcrib.schema import CanonicalArguments, Redacted, ToolSpec


class Login(BaseModel):
    user: str
    password: SecretStr
    pin: Annotated[int, Redacted] = 0


class Env(TypedDict):
    values: dict[str, Annotated[str, Redacted]]


class Chain(BaseModel):
    login: Login | None = None
    next: Chain | None = None


class Tag(BaseModel):
    model_config = ConfigDict(frozen=True)

    name: str


class Line(BaseModel):
    sku: str
    quantity: int = 1
    price: float = 0


def spec_of(fn: Any) -> ToolSpec:
    return ToolSpec.from_function(fn, name="tool")


def spec_with(annotation: Any) -> ToolSpec:
    """Return the spec of a tool with one parameter `x` of this type."""

    def tool(x: Any) -> None: ...

    tool.__annotations__["x"] = annotation
    return spec_of(tool)


def canonical(spec: ToolSpec, raw: str) -> CanonicalArguments:
    """Return the canonical form of what JSON text says."""
    return spec.canonical(spec.arguments(spec.validate_json(raw)))


def connect(host: str, logins: list[Login], day: date = date(2025, 1, 31), env: Env | None = None) -> None: ...


CONNECT = spec_of(connect)
RAW = '{"host": "h", "logins": [{"user": "Ada", "password": "hunter2", "pin": 4711}], "env": {"values": {"A": "sk-1"}}}'


# --- secrets


def test_secrets_are_hidden_where_they_are_shown() -> None:
    assert canonical(CONNECT, RAW).shown == {
        "host": "h",
        "logins": [{"user": "Ada", "password": "**********", "pin": "[redacted]"}],
        "day": "2025-01-31",
        "env": {"values": {"A": "[redacted]"}},
    }


def test_secrets_are_real_for_safe_keeping_and_validate_again() -> None:
    model = CONNECT.validate_json(RAW)

    kept = CONNECT.canonical(CONNECT.arguments(model)).values

    assert kept["logins"] == [{"user": "Ada", "password": "hunter2", "pin": 4711}]
    assert CONNECT.validate_json(json.dumps(kept)) == model


def test_without_secrets_there_is_one_form() -> None:
    made = canonical(spec_with(Line), '{"x": {"sku": "a"}}')

    assert made.shown is made.values
    assert made.without_form == ()


def test_secrets_do_not_show_in_a_repr() -> None:
    assert "hunter2" not in repr(canonical(CONNECT, RAW))


def test_another_secret_has_another_digest() -> None:
    other = RAW.replace("hunter2", "hunter3")

    assert canonical(CONNECT, RAW).shown == canonical(CONNECT, other).shown
    assert canonical(CONNECT, RAW).digest("connect") != canonical(CONNECT, other).digest("connect")


@pytest.mark.parametrize(
    "given",
    [
        {"host": "h", "logins": "hunter2"},
        {"host": 3, "logins": [{"user": "Ada", "password": "hunter2"}], "passwort": "hunter2"},
        {"logins": [{"password": ["hunter2"]}]},
    ],
)
def test_arguments_that_do_not_fit_hide_what_may_be_secret(given: dict[str, Any]) -> None:
    shown = CONNECT.canonical(given).shown

    assert "hunter2" not in json.dumps(shown)
    assert shown["logins"] == "[redacted]"
    assert shown.get("host", "h") == given.get("host", "h")


def test_a_default_of_plain_text_is_a_secret_where_the_type_says_so() -> None:
    def tool(password: SecretStr = "hunter2") -> None: ...  # type: ignore  # pyright: ignore

    made = canonical(spec_of(tool), "{}")

    assert made.shown == {"password": "**********"}
    assert made.values == {"password": "hunter2"}


@pytest.mark.parametrize(
    ("annotation", "secret"),
    [
        (SecretStr, True),
        (SecretBytes, True),
        (Secret[date], True),
        (Annotated[int, Redacted], True),
        (dict[str, list[SecretStr]], True),
        (Login | None, True),
        (Env, True),
        (Chain, True),
        (str, False),
        (list[dict[str, Any]], False),
    ],
)
def test_secrets_are_found_at_any_depth(annotation: Any, secret: bool) -> None:
    assert spec_with(annotation).has_secrets is secret


def test_secrets_are_found_in_fields_of_any_name() -> None:
    class Odd(BaseModel):
        default: Annotated[str, Redacted]
        metadata: SecretStr
        type: Annotated[str, Redacted]

    def tool(config: Odd, serialization: set[str] = set()) -> None: ...  # noqa: B006

    odd = {"default": "s1", "metadata": "s2", "type": "s3"}

    shown = canonical(spec_of(tool), json.dumps({"config": odd, "serialization": ["b", "a"]})).shown

    assert shown["config"] == {"default": "[redacted]", "metadata": "**********", "type": "[redacted]"}
    assert shown["serialization"] == ["a", "b"]


def test_secrets_are_found_in_variadic_arguments() -> None:
    def tool(*codes: SecretStr, **keys: Annotated[str, Redacted]) -> None: ...

    made = canonical(spec_of(tool), '{"codes": ["c1"], "a": "k1"}')

    assert made.shown == {"codes": ["**********"], "a": "[redacted]"}
    assert made.values == {"codes": ["c1"], "a": "k1"}


def test_every_kind_of_secret_is_real_in_the_values() -> None:
    def tool(raw: SecretBytes, day: Secret[date], inside: dict[str, tuple[SecretStr, int]]) -> None: ...

    given = {"raw": "b", "day": "2025-01-31", "inside": {"x": ["s", 1]}}

    assert canonical(spec_of(tool), json.dumps(given)).values == given


def test_secrets_behind_aliases_and_in_sets_and_dataclasses_are_real_in_the_values() -> None:
    class Key(BaseModel):
        value: SecretStr = Field(alias="keyValue")

    @dataclass
    class Box:
        inside: SecretStr

    def tool(key: Key, boxes: list[Box], all: set[SecretStr], root: RootModel[list[SecretStr]]) -> None: ...

    given = {"key": {"keyValue": "s1"}, "boxes": [{"inside": "s2"}], "all": ["s3", "s4"], "root": ["s5"]}

    made = canonical(spec_of(tool), json.dumps(given))

    assert made.values == given
    assert not any(secret in json.dumps(made.shown) for secret in ("s1", "s2", "s3", "s4", "s5"))


@pytest.mark.parametrize("value", [SecretStr("hunter2"), [SecretStr("hunter2")], Login(user="a", password="hunter2")])  # type: ignore # pyright: ignore
def test_secrets_that_no_type_tells_of_are_hidden_too(value: Any) -> None:
    made = spec_with(Any).canonical({"x": value})

    assert "hunter2" in json.dumps(made.values)
    assert "hunter2" not in json.dumps(made.shown)


# --- reading back


class Colour(enum.Enum):
    RED = (255, 0, 0)
    BLUE = b"\x00\xff"


class Word(enum.Enum):
    YES = "yes"
    FIRST = 1


class Count(enum.IntEnum):
    ONE = 1


@dataclass
class Counted:
    start: int
    seen: int = field(default=0, init=False)


class Deep(BaseModel):
    depth: int = Field(validation_alias=AliasPath("at", "depth"))
    width: int = Field(1, serialization_alias="breadth")


@pytest.mark.parametrize(
    ("annotation", "value", "form"),
    [
        (float, 500, 500.0),
        (list[float], [1, 2], [1.0, 2.0]),
        (Line, {"sku": "a"}, {"sku": "a", "quantity": 1, "price": 0.0}),
        (bytes, b"\xff", "data:;base64,/w=="),
        (bytes, b"data:;base64,AA==", "data:;base64,ZGF0YTo7YmFzZTY0LEFBPT0="),
        (dict[date, int], {date(2025, 1, 31): 2}, {"2025-01-31": 2}),
        (dict[bytes, int], {b"a": 1}, {"a": 1}),
        (set[int], [3, 1, 2], [1, 2, 3]),
        (Colour, Colour.RED, [255, 0, 0]),
        (Colour, Colour.BLUE, "data:;base64,AP8="),
        (Literal[b"raw"], b"raw", "raw"),
        (Literal[Word.YES], Word.YES, "yes"),
        (list[Literal[Word.YES, "no", Count.ONE]], [Word.YES, "no", Count.ONE], ["yes", "no", 1]),
        (Literal[Word.FIRST, True], Word.FIRST, 1),
        (Literal[Word.FIRST, True], True, True),
        (Counted, Counted(1), {"start": 1}),
        (Deep, Deep.model_validate({"at": {"depth": 3}}), {"depth": 3, "width": 1}),
        (Sequence[int], (1, 2), [1, 2]),
    ],
)
def test_a_value_has_one_form_that_is_read_back(annotation: Any, value: Any, form: Any) -> None:
    spec = spec_with(annotation)
    arguments = spec.validate_host({"x": value})

    made = spec.canonical(arguments)
    again = spec.arguments(spec.validate_json(json.dumps(made.values)))

    assert json.dumps(made.values) == json.dumps({"x": form})
    assert again == arguments
    assert spec.canonical(again).digest("tool") == made.digest("tool")


@pytest.mark.parametrize("sent", ['"YES"', '"no"', "true", "1"])
def test_a_literal_of_a_member_takes_its_value_alone(sent: str) -> None:
    with pytest.raises(InvalidArguments):
        spec_with(Literal[Word.YES]).validate_json(f'{{"x": {sent}}}')


def test_defaults_are_of_the_parameter_s_type() -> None:
    def tool(price: Decimal = 0, where: Path = ".", tags: set[str] = ["b", "a"]) -> None: ...  # type: ignore  # pyright: ignore # noqa: B006

    spec = spec_of(tool)

    arguments = spec.arguments(spec.validate_json("{}"))

    assert arguments == {"price": Decimal(0), "where": Path("."), "tags": {"a", "b"}}
    assert spec.canonical(arguments).values == {"price": "0", "where": ".", "tags": ["a", "b"]}


def test_a_default_that_stands_for_no_value_is_left_out_and_filled_in_again() -> None:
    missing: Any = object()

    def tool(city: str, unit: str = missing) -> None: ...

    spec = spec_of(tool)
    arguments = spec.arguments(spec.validate_json('{"city": "Oslo"}'))

    made = spec.canonical(arguments)

    assert (made.values, made.without_form) == ({"city": "Oslo"}, ())
    assert spec.arguments(spec.validate_json(json.dumps(made.values))) == arguments


def test_a_member_of_a_union_stays_what_it_is() -> None:
    class Base(BaseModel):
        steps: int

    class Other(Base): ...

    spec = spec_with(Base | Other)

    assert type(spec.validate_host({"x": Other(steps=1)})["x"]) is Other
    assert type(spec.validate_host({"x": Base(steps=1)})["x"]) is Base


def test_what_a_subclass_has_besides_does_not_run_unseen() -> None:
    class Gift(Line):
        message: str = ""

    spec = spec_with(Line)
    arguments = spec.validate_host({"x": Gift(sku="a", message="psst")})

    form = spec.canonical(arguments)

    assert form.values == {"x": {"sku": "a", "quantity": 1, "price": 0.0, "message": "psst"}}
    assert not spec.reads_back(form, arguments)


# --- what the authors of types have written in their own way


class Card(BaseModel):
    number: str
    note: str = Field("", exclude=True)

    @field_serializer("number")
    def masked(self, number: str) -> str:
        return f"****{number[-2:]}"


def test_a_form_of_the_author_s_that_is_not_read_back_is_for_showing_only() -> None:
    spec = spec_with(Card)

    made = canonical(spec, '{"x": {"number": "123456", "note": "mine"}}')

    assert made.shown == {"x": {"number": "****56"}}
    assert made.values == {"x": {"number": "123456", "note": "mine"}}


def test_a_form_of_the_author_s_that_is_read_back_is_the_one_form() -> None:
    made = canonical(spec_with(Annotated[Decimal, PlainSerializer(lambda value: f"{value:.2f}")]), '{"x": "5"}')

    assert made.values == made.shown == {"x": "5.00"}


# --- values that can be read only once


@pytest.mark.parametrize("kind", [Iterable[int], Iterator[int], Collection[int], Generator[int, None, None]])
def test_iterables_are_lists_once_they_are_validated(kind: Any) -> None:
    spec = spec_with(kind)

    arguments = spec.validate_host({"x": iter([1, "2"])})

    assert arguments == {"x": [1, 2]}
    assert spec.canonical(arguments).values == {"x": [1, 2]}
    assert spec.parameters["properties"]["x"] == {"type": "array", "items": {"type": "integer"}}


def test_an_iterable_inside_a_model_is_an_error_of_the_tool() -> None:
    class Order(BaseModel):
        lines: Iterable[Line]

    with pytest.raises(
        SchemaError, match=r"`tool` has no schema: parameter `x` has an Iterable in it.*declare it as a list"
    ):
        _ = spec_with(Order).input_model


def test_an_iterator_without_a_type_is_not_used_up() -> None:
    numbers = iter([1, 2])
    spec = spec_with(Any)

    made = spec.canonical(spec.validate_host({"x": numbers}))

    assert made.values == {"x": "<builtins.list_iterator>"}
    assert list(numbers) == [1, 2]


# --- values without a JSON form


def test_what_has_no_json_form_is_shown_by_its_type() -> None:
    def tool(thing: Any, blob: bytes = b"") -> None: ...

    made = spec_of(tool).canonical({"thing": object()})

    assert made.values == made.shown == {"thing": "<builtins.object>"}
    assert len(made.without_form) == 1


def test_what_has_no_json_form_counts_as_the_object_that_it_is() -> None:
    one, other = object(), object()
    spec = spec_with(Any)

    assert spec.canonical({"x": one}).digest("tool") == spec.canonical({"x": one}).digest("tool")
    assert spec.canonical({"x": one}).digest("tool") != spec.canonical({"x": other}).digest("tool")


def test_keys_that_are_one_in_json_have_no_json_form() -> None:
    assert spec_with(Any).canonical({"x": {1: "a", "1": "b"}}).without_form


def test_values_that_are_not_valid_are_shown_as_they_are() -> None:
    def tool(count: int, when: date | None = None) -> None: ...

    spec = spec_of(tool)

    assert spec.canonical({"count": "many", "other": [1]}).shown == {"count": "many", "other": [1]}
    assert spec.canonical({"when": date(2025, 1, 31)}).shown == {"when": "2025-01-31"}


def test_making_it_does_not_run_the_model_s_own_code() -> None:
    class Loud(BaseModel):
        x: int

        def model_post_init(self, context: Any) -> None:
            raise RuntimeError("made")

    assert ToolSpec.from_model(Loud, name="loud").canonical({"x": 1}).shown == {"x": 1}


def test_arguments_of_a_host_that_are_not_the_caller_s_are_kept_as_they_are() -> None:
    def tool(city: str, key: str, unit: str = "c") -> None: ...

    spec = ToolSpec.from_function(tool, name="tool", fixed=frozenset({"key"}))

    assert spec.validate_host({"city": "Oslo", "key": 5}) == {"city": "Oslo", "key": 5, "unit": "c"}
    assert spec.validate_host({"city": "Oslo"}) == {"city": "Oslo", "unit": "c"}
    with pytest.raises(InvalidArguments, match="city: must be a string"):
        spec.validate_host({"city": 5})


# --- one order, one digest


def test_sets_are_in_one_order_in_every_process() -> None:
    def tool(words: set[str], tags: frozenset[Tag], deep: dict[str, list[set[int]]], any: Any) -> None: ...

    values = {"words": {"b", "a", "c"}, "tags": {Tag(name="y"), Tag(name="x")}, "deep": {"k": [{8, 0, -1}]}}

    assert spec_of(tool).canonical({**values, "any": {3, 1, "a"}}).values == {
        "words": ["a", "b", "c"],
        "tags": [{"name": "x"}, {"name": "y"}],
        "deep": {"k": [[-1, 0, 8]]},
        "any": [1, 3, "a"],
    }


def test_defaults_that_are_sets_are_shown_in_one_order() -> None:
    def tool(words: frozenset[str] = frozenset({"b", "a"}), more: set[str] = set()) -> None: ...  # noqa: B006

    spec = spec_of(tool)

    assert spec.parameters["properties"]["words"]["default"] == ["a", "b"]
    assert "words: frozenset[str] = frozenset({'a', 'b'}), more: set[str] = set()" in spec.signature


def test_the_order_of_arguments_does_not_count_and_the_tool_does() -> None:
    spec = spec_of(connect)

    one, other = spec.canonical({"host": "h", "logins": []}), spec.canonical({"logins": [], "host": "h"})

    assert one.digest("connect") == other.digest("connect")
    assert one.digest("connect") != one.digest("tool")


@pytest.mark.processes
def test_another_process_comes_to_the_same_digest() -> None:
    program = """
from toolcrib.schema import ToolSpec
def tag(words: set[str], weight: float) -> None: ...
print(ToolSpec.from_function(tag, name="tag").canonical({"words": {"c", "a", "b"}, "weight": 1.5}).digest("tag"))
"""

    def tag(words: set[str], weight: float) -> None: ...

    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert said.strip() == canonical(spec_of(tag), '{"words": ["b", "a", "c"], "weight": 1.5}').digest("tag")


def test_arguments_of_a_tool_without_a_schema_count_as_what_they_are() -> None:
    class Connection: ...

    def tool(connection: Connection, password: Any) -> None: ...

    spec = spec_of(tool)
    with pytest.raises(SchemaError):
        spec.validate_host({"connection": Connection(), "password": ""})

    made = spec.canonical({"connection": Connection(), "password": SecretStr("hunter2")})

    assert made.shown["password"] == "**********"
    assert made.values["password"] == "hunter2"
    assert made.without_form


@pytest.mark.parametrize("keys", [int | str, Any, float | str | None], ids=str)
def test_keys_that_are_one_in_json_are_not_lost(keys: Any) -> None:
    spec = spec_with(dict[keys, str])

    assert spec.canonical({"x": {1: "a", "1": "b"}}).without_form
    assert spec.canonical({"x": {1: "a", "2": "b"}}).values == {"x": {"1": "a", "2": "b"}}
    assert spec.canonical({"x": {1: "a", "2": "b"}}).without_form == ()
