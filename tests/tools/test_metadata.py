"""What a tool says of itself."""

import asyncio
from typing import Any

import pytest
from typing_extensions import TypedDict

from toolcrib.tools import Tool, ez_tool, tool


async def test_metadata_tells_what_it_is_and_when_it_ran() -> None:
    @tool()
    async def find(query: str) -> list[str]:
        """Find things."""
        return []

    before = find.metadata.dict()
    await find("x")
    start, end = find.metadata.start_time, find.metadata.end_time

    assert (before["name"], before["description"]) == ("find", "Find things.")
    assert (before["start_time"], before["end_time"]) == (None, None)
    assert before["input_schema"] == find.parameters
    assert before["output_schema"] == find.return_schema
    assert start is not None
    assert end is not None
    assert start <= end
    assert find.metadata.dict()["start_time"] == start.isoformat()


async def test_the_end_is_noted_when_it_fails_or_is_left() -> None:
    @tool()
    async def fail() -> None:
        raise OSError

    @tool()
    async def count() -> Any:
        yield 1
        yield 2

    with pytest.raises(OSError, match=r"^$"):
        await fail()
    numbers = count()
    await anext(numbers)
    running = count.metadata.end_time
    await numbers.aclose()

    assert fail.metadata.end_time is not None
    assert running is None
    assert count.metadata.end_time is not None


def test_a_tool_without_a_schema_can_still_be_told_about() -> None:
    class Odd: ...

    @tool()
    async def find(odd: Odd) -> None: ...

    assert find.metadata.dict()["input_schema"] is None


class Weather(TypedDict):
    city: str
    temp: int


def test_a_stub_has_the_keys_of_the_types_that_it_names() -> None:
    @ez_tool
    def get_weather(city: str) -> Weather:
        """Say what the weather is like."""
        return {"city": city, "temp": 3}

    assert get_weather.stub() == (
        "class Weather(TypedDict):\n    city: str\n    temp: int\n\n"
        'def get_weather(city: str) -> Weather:\n    """Say what the weather is like."""\n    ...'
    )


async def test_a_tool_shows_what_it_is_made_of() -> None:
    @tool(lock=True)
    async def find(query: str) -> str:
        """Find."""
        return query

    assert isinstance(find, Tool)
    assert isinstance(find.lock, asyncio.Lock)
    assert find.hooks == []
    assert find.signature == "find(query: str) -> str"
    assert find.stub().startswith("def find(query: str) -> str:")
    assert find.input_model.model_validate({"query": "x"}).model_dump() == {"query": "x"}
    assert "find" in repr(find)
