"""A plugin of pytest: what is quick comes first, so that a mutant which any door can see does not wait for all of them.

The tests over the first door, which is the plainest, come first, then those over no door, and then door after door.
"""

from __future__ import annotations

import pytest

__all__ = ["pytest_collection_modifyitems"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests of each door together, in the order that they have among themselves."""
    order = dict.fromkeys([*(_door(item) for item in items[:1]), "", *map(_door, items)])
    places = {door: place for place, door in enumerate(order)}
    items.sort(key=lambda item: places[_door(item)])


def _door(item: pytest.Item) -> str:
    """Return the door that a test is over; nothing for one of no door."""
    call = getattr(item, "callspec", None)
    return repr(call.params["door"]) if call is not None and "door" in call.params else ""
