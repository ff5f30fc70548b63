from __future__ import annotations

import enum
from collections.abc import Callable
from datetime import date, datetime
from typing import Annotated, Any, Literal, NewType, NotRequired, Optional, TypeVar, Union

import pytest
from pydantic import BaseModel, Field, SecretStr
from typing_extensions import TypeAliasType, TypedDict, Unpack

from toolcrib.schema import Redacted, ToolSpec

T = TypeVar("T")
KEY = SecretStr("abc")
UserId = NewType("UserId", int)
Numbers = TypeAliasType("Numbers", list[int])


class Unit(enum.Enum):
    C = "c"


class Place(BaseModel):
    city: str


Headers = TypedDict("Headers", {"x-key": str, "agent": NotRequired[str]})


class Login(BaseModel):
    user: str = "ann"
    pin: Annotated[str, Redacted] = "4711"


class Loud:
    def __repr__(self) -> str:
        raise RuntimeError("no text")


def get_weather(location: str, unit: str = "celsius") -> dict:  # type: ignore
    return {}


def test_a_signature_reads_as_its_author_wrote_it() -> None:
    spec = ToolSpec.from_function(get_weather, name="get_weather")

    assert spec.signature == "get_weather(location: str, unit: str = 'celsius') -> dict"


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (Optional[int], "int | None"),  # noqa: UP045
        (Union[int, str], "int | str"),  # noqa: UP007
        (Annotated[int, Field(ge=1)], "int"),
        (list[Annotated[int, Field(ge=1)]], "list[int]"),
        (Literal["c", 1, Unit.C], "Literal['c', 1, Unit.C]"),
        (date, "date"),
        (Place, "Place"),
        (UserId, "UserId"),
        (Numbers, "Numbers"),
        (T, "T"),
        (tuple[int, ...], "tuple[int, ...]"),
        (dict[str, list[int]], "dict[str, list[int]]"),
        (Callable[[int], str], "Callable[[int], str]"),
        (Any, "Any"),
        (None, "None"),
    ],
    ids=str,
)
def test_types_are_named_without_modules_and_metadata(annotation: Any, text: str) -> None:
    def tool(x: Any) -> None: ...

    tool.__annotations__["x"] = annotation

    assert ToolSpec.from_function(tool, name="tool").signature == f"tool(x: {text}) -> None"


@pytest.mark.parametrize(
    ("default", "text"),
    [
        (Unit.C, "Unit.C"),
        (None, "None"),
        (datetime(2025, 1, 31), "datetime.datetime(2025, 1, 31, 0, 0)"),
        (object(), "..."),
        (Loud(), "..."),
        ("x" * 100, "..."),
    ],
)
def test_defaults_are_short_and_stable(default: Any, text: str) -> None:
    def tool(x: Any) -> None: ...

    tool.__defaults__ = (default,)

    assert ToolSpec.from_function(tool, name="tool").signature == f"tool(x: Any = {text}) -> None"


def test_a_secret_default_is_not_shown() -> None:
    def pay(
        amount: int = 1,
        pin: Annotated[str, Redacted] = "4711",
        key: SecretStr = KEY,
        note: Annotated[str | None, Field(max_length=9)] = "x",
    ) -> None: ...

    spec, of_model = ToolSpec.from_function(pay, name="pay"), ToolSpec.from_model(Login, name="log_in")

    assert (
        spec.signature == "pay(amount: int = 1, pin: str = ..., key: SecretStr = ..., note: str | None = 'x') -> None"
    )
    assert of_model.signature == "log_in(user: str = 'ann', pin: str = ...)"


def test_parameters_without_annotations_stay_bare() -> None:
    def tool(a, b=1, *c, d, **e): ...  # type: ignore  # pyright: ignore

    assert ToolSpec.from_function(tool, name="tool").signature == "tool(a, b=1, *c, d, **e)"


def test_keyword_only_parameters_keep_their_star() -> None:
    def tool(a: int, /, b: int, *, c: int) -> None: ...

    spec = ToolSpec.from_function(tool, name="tool")

    assert spec.signature == "tool(a: int, b: int, *, c: int) -> None"


def test_keys_of_a_typed_dict_that_are_no_python_names_are_shown_as_a_program_gives_them() -> None:
    def get(url: str, **headers: Unpack[Headers]) -> None: ...

    assert (
        ToolSpec.from_function(get, name="get").signature
        == "get(url: str, *, agent: str = ..., **{'x-key': str}) -> None"
    )
