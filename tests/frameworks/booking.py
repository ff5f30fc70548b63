"""A tool of ours for the tests of each framework."""

from __future__ import annotations

from typing import Any

from toolcrib.tools import ez_tool


def booking(ran: list[str], **options: Any) -> Any:
    """Return a tool of ours that notes what it was called with."""

    @ez_tool(**options)
    async def book(city: str) -> str:
        """Book a room."""
        ran.append(city)
        return f"booked {city}"

    return book
