"""The functions that every contender makes its tool of.

Their annotations are types and not text (there is no `from __future__ import annotations` here): some peers resolve
text anew for each call, and that is not what is compared.
"""

from collections.abc import AsyncIterator
from typing import Any, Literal


async def get_weather(city: str, unit: Literal["c", "f"] = "c") -> dict[str, Any]:
    """Return the weather of a city.

    Args:
        city: The city's name.
        unit: Celsius or Fahrenheit.
    """
    return {"city": city, "temp": 21, "unit": unit}


async def get_forecast(city: str, unit: Literal["c", "f"] = "c", days: int = 3) -> dict[str, Any]:
    """Return the forecast of a city.

    Args:
        city: The city's name.
        unit: Celsius or Fahrenheit.
        days: How far ahead.
    """
    return {"city": city, "unit": unit, "days": days}


async def book_flight(
    origin: str,
    destination: str,
    day: str,
    seats: int = 1,
    cabin: Literal["economy", "business"] = "economy",
    notes: list[str] = [],  # noqa: B006 -- as many write it; nobody appends to it
) -> dict[str, Any]:
    """Book a flight.

    Args:
        origin: From which airport.
        destination: To which.
        day: When, as ISO text.
        seats: How many seats.
        cabin: In which cabin.
        notes: What else is wished for.
    """
    return {"booking": "X1Y2Z3", "price": 312.5, "seats": ["12A", "12B"][:seats]}


async def count_up(upto: int) -> AsyncIterator[int]:
    """Yield the numbers below a bound.

    Args:
        upto: The bound.
    """
    for number in range(upto):
        yield number


async def double(number: int) -> int:
    """Return twice the number.

    Args:
        number: Any number.
    """
    return number * 2


def add(a: int, b: int) -> int:
    """Return the sum of two numbers.

    Args:
        a: One.
        b: The other.
    """
    return a + b


async def add_soon(a: int, b: int) -> int:
    """Return the sum of two numbers.

    Args:
        a: One.
        b: The other.
    """
    return a + b
