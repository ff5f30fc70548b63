"""Values as JSON shapes, strictly for a model and leniently for a record."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from itertools import count
from typing import Annotated, Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, SecretStr

from toolcrib.calls import Completed, cut, equal_json, json_text, jsonable, lenient
from toolcrib.errors import ResultNotSerializable
from toolcrib.schema import Redacted


class Speechless:
    def __repr__(self) -> str:
        raise RuntimeError("no words")


class Stubborn(BaseModel):
    def __str__(self) -> str:
        raise RuntimeError("no words")

    model_config = {"arbitrary_types_allowed": True}
    inside: Any = None


def circle() -> list[Any]:
    ring: list[Any] = []
    ring.append(ring)
    return ring


ODD: list[Any] = [
    object(),
    b"\xff\xfe",
    circle(),
    Speechless(),
    [Speechless()],
    {Speechless(): 1},
    Stubborn(inside=Speechless()),
    lambda: None,
    ValueError("x"),
    {(1, 2): 3},
]


@dataclass
class Point:
    x: int
    on: date


@dataclass(frozen=True, slots=True)
class Tags:
    of: Any


class Note(BaseModel):
    model_config = {"extra": "allow", "frozen": True}
    of: Any = None
    secret: Annotated[str, Redacted] = "x"


class Login(BaseModel):
    password: SecretStr
    pin: Annotated[str, Redacted]


def test_a_models_value_becomes_json_shapes() -> None:
    shown = jsonable({"at": Point(1, date(2026, 1, 2)), "tags": {"a"}, "half": Fraction(1, 2)})

    assert shown == {"at": {"x": 1, "on": "2026-01-02"}, "tags": ["a"], "half": "1/2"}


@pytest.mark.parametrize("wrap", [Tags, lambda inner: Note(of=inner), lambda inner: [Tags(Note(more=(inner,)))]])
@pytest.mark.parametrize("write", [jsonable, lenient, lambda value: json.loads(json_text(value))])
def test_half_a_surrogate_pair_in_a_key_inside_a_model_is_repaired(
    wrap: Callable[[Any], Any], write: Callable[[Any], Any]
) -> None:
    value = wrap({"half \ud83d": 1})

    shown = write(value)

    assert shown == write(wrap({"half \ufffd": 1}))
    assert value == wrap({"half \ud83d": 1})  # the tool's value stays what it was


def test_what_has_no_json_form_is_an_error_with_the_tools_name() -> None:
    with pytest.raises(ResultNotSerializable, match=r"`find`.*object"):
        jsonable({"x": object()}, "find")


@pytest.mark.parametrize("value", ODD, ids=[type(value).__name__ + str(n) for n, value in enumerate(ODD)])
def test_any_value_can_be_recorded(value: Any) -> None:
    shown = lenient(value)

    assert json.dumps(shown)


@pytest.mark.parametrize("make", [lambda: iter([1, 2]), lambda: (n for n in (1, 2)), lambda: map(int, "12")])
def test_recording_an_iterator_does_not_use_it_up(make: Any) -> None:
    values: Iterator[int] = make()

    assert isinstance(lenient(values), str)
    assert list(values) == [1, 2]


def test_an_endless_iterator_is_refused_and_not_read() -> None:
    with pytest.raises(ResultNotSerializable, match="iterator"):
        jsonable(count(), "count")


def test_secrets_in_a_result_are_not_shown() -> None:
    login = Login(password=SecretStr("hunter2"), pin="pin-4711")

    shown = json.dumps([jsonable(login), lenient(login)])

    assert "hunter2" not in shown
    assert "pin-4711" not in shown


def test_numbers_that_json_lacks_are_text() -> None:
    shown = jsonable({"a": [float("nan"), float("inf")], "b": -float("inf"), "c": 1.5})

    assert shown == {"a": ["NaN", "Infinity"], "b": "-Infinity", "c": 1.5}
    assert lenient(float("nan")) == jsonable(float("nan")) == "NaN"


@given(st.text(), st.integers(min_value=1, max_value=50))
def test_a_cut_keeps_head_and_tail_and_says_so(text: str, limit: int) -> None:
    kept = cut(text, limit)

    if len(text) <= limit:
        assert kept == text
    else:
        assert kept.startswith(text[: limit - limit // 3])
        assert kept.endswith(text[len(text) - limit // 3 :])
        assert f"{len(text) - limit} of {len(text)} characters cut" in kept


SHAPES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda parts: st.lists(parts) | st.dictionaries(st.text() | st.integers(), parts) | st.tuples(parts, parts),
    max_leaves=12,
)


@given(value=SHAPES)
def test_text_for_a_model_is_the_shapes_as_json(value: object) -> None:
    shapes = jsonable(value)

    assert Completed("look", "call_1", value).text() == (
        shapes if isinstance(shapes, str) else json.dumps(shapes, ensure_ascii=False)
    )


def test_text_for_a_model_of_what_json_alone_cannot_write() -> None:
    circle: list[object] = []
    circle.append(circle)

    assert (
        Completed("look", "call_1", {"day": date(2026, 1, 2), "of": {3}}).text() == '{"day": "2026-01-02", "of": [3]}'
    )
    assert "no JSON form" in Completed("look", "call_1", circle).text()


def test_a_date_that_is_missing_is_null() -> None:
    rows = pd.DataFrame({"n": [1, 2], "at": [pd.Timestamp("2026-01-02"), None]}).to_dict("records")

    assert jsonable({"rows": rows, "more": (pd.NaT,)}) == {
        "rows": [{"n": 1, "at": "2026-01-02T00:00:00"}, {"n": 2, "at": None}],
        "more": [None],
    }
    assert json_text([pd.NaT]) == "[null]"


@pytest.mark.parametrize(
    ("one", "other", "is_equal"),
    [
        ({"a": 1, "b": [None]}, {"b": [None], "a": 1}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1}, {"a": 1.0}, False),
        ({"a": 1}, {"a": 1, "b": None}, False),
        ([1, 2], [1], False),
        ([float("nan")], [float("nan")], True),
        (0.0, -0.0, False),
        ("1", 1, False),
    ],
)
def test_equal_json_is_what_is_written_alike(one: Any, other: Any, is_equal: bool) -> None:
    assert equal_json(one, other) is is_equal
    assert (json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)) is is_equal


class Held(BaseModel):
    """A model with a dict of anything."""

    values: dict[Any, Any]


@pytest.mark.parametrize(
    "make", [dict, lambda values: [values], lambda values: {"a": (values,)}, lambda values: Held(values=values)]
)
@pytest.mark.parametrize(
    ("values", "names"),
    [
        ({1: "a", "1": "b"}, ["1 (int)", "1"]),
        ({"1": "a", 1: "b", "1 (int)": "c"}, ["1", "1 (int) (int)", "1 (int)"]),
        ({True: "a", "true": "b", None: "c", "None": "d"}, ["true (bool)", "true", "None (NoneType)", "None"]),
        ({1.5: "a", date(2026, 1, 2): "b", "2026-01-02": "c"}, ["1.5", "2026-01-02 (date)", "2026-01-02"]),
    ],
)
def test_keys_that_are_one_key_of_json_are_kept_apart_in_every_form(make: Any, values: Any, names: list[str]) -> None:
    value = make(values)

    forms = [
        jsonable(value),
        lenient(value),
        Completed("t", "c", value).to_dict()["value"],
        json.loads(json_text(value)),
    ]
    expected = make(dict(zip(names, values.values(), strict=True)))

    assert forms == [jsonable(expected)] * 4
    assert json_text(value) == json_text(expected)


@given(
    st.dictionaries(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(), st.integers())
)
def test_no_entry_of_a_dict_is_lost_in_its_json(value: dict[Any, int]) -> None:
    assert [*jsonable(value).values()] == [*json.loads(json_text(value)).values()] == [*value.values()]
