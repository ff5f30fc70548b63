"""Define two tools, call one as a model does, let a person approve the other, and run a program with both."""

import asyncio
from datetime import date
from typing import Literal, TypedDict

from toolcrib import Pipeline, Suspended, ToolCall, Toolkit, Toolset, tool


class Weather(TypedDict):
    city: str
    temp: float
    sky: str


@tool
async def get_weather(city: str, unit: Literal["c", "f"] = "c") -> Weather:
    """Get the weather of today.

    Args:
        city: The name of the city.
        unit: Celsius or Fahrenheit.
    """
    return Weather(city=city, temp=4.0 if unit == "c" else 39.2, sky="snow")


@tool(requires_approval=True)
async def book_flight(origin: str, destination: str, day: date) -> str:
    """Book a seat."""
    return f"{origin} to {destination} on {day:%d %B}: seat 14A"


tools = Toolset([get_weather, book_flight])


async def main() -> None:
    pipeline = Pipeline(tools)

    print("--- a call, and one that does not fit")
    for arguments in ('{"city": "Oslo"}', '{"town": "Oslo", "unit": "k"}'):
        outcome = await pipeline.run(ToolCall("get_weather", arguments))
        print(outcome.text())

    print("--- a call that waits for a person")
    booking = ToolCall("book_flight", {"origin": "Oslo", "destination": "Rome", "day": "2026-05-01"})
    outcome = await pipeline.run(booking)
    if isinstance(outcome, Suspended):
        print(outcome.request.text())
        outcome = await pipeline.run(outcome, grant=outcome.request.grant(by="you"))
    print(outcome.text())

    print("--- a program, as a model writes it")
    result = await Toolkit(tools).execute_async(
        "for city in ['Oslo', 'Rome']:\n    print(city, get_weather(city)['temp'])"
    )
    print(result.output, end="")


if __name__ == "__main__":
    asyncio.run(main())
