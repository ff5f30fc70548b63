"""Results that do not fit the return annotation: said once for each tool, in the log."""

import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Annotated, Any, Literal, Protocol, TypedDict, TypeVar

import pytest
from pydantic import BaseModel

from toolcrib.calls import ToolCall
from toolcrib.pipeline import Pipeline
from toolcrib.tools import ez_tool
from toolcrib.tools._results import may_be

T = TypeVar("T")


class Row(TypedDict):
    n: int


class Page(BaseModel):
    n: int


class Reader(Protocol):
    def read(self) -> str: ...


@ez_tool
async def stock(item: str) -> int:
    return "twelve"  # type: ignore[return-value]


@ez_tool
async def prices() -> AsyncIterator[float]:
    yield 1
    yield "two"  # type: ignore[misc]
    yield "three"  # type: ignore[misc]


async def test_a_result_of_another_type_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    pipeline = Pipeline([stock])

    for _ in range(3):
        await pipeline.run(ToolCall("stock", {"item": "lamp"}))

    (line,) = caplog.records
    assert (line.name, line.levelno) == ("toolcrib.tools", logging.WARNING)
    assert (
        line.getMessage()
        == "stock: a result has the type str, and the tool is annotated to give int; this is logged once"
    )


async def test_a_value_of_a_stream_is_a_result_too(caplog: pytest.LogCaptureFixture) -> None:
    await Pipeline([prices]).run(ToolCall("prices"))

    assert [line.getMessage()[:40] for line in caplog.records] == ["prices: a result has the type str, and t"]


@pytest.mark.parametrize(
    ("value", "annotation", "fits"),
    [
        (1, int, True),
        (True, int, True),
        ("1", int, False),
        (1, float, True),
        (1.5, int, False),
        (None, int | None, True),
        (None, int, False),
        (1, None.__class__, False),
        ([1], list[int], True),
        ((1,), list[int], False),
        ([1], Iterable[int], True),
        ({}, Mapping[str, int], True),
        ({"n": 1}, Row, True),
        ([], Row, False),
        (Page(n=1), Page, True),
        ({"n": 1}, Page, False),
        ("a", Literal["a", "b"], True),
        (1, Literal["a", "b"], False),
        ("a", Annotated[str, "note"], True),
        (1, Annotated[str | None, "note"], False),
        (1, Any, True),
        (1, T, True),
        (1, object, True),
        (1, Reader, True),
    ],
)
def test_what_a_value_may_be(value: Any, annotation: Any, fits: bool) -> None:
    assert may_be(value, annotation) is fits
