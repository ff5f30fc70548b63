"""A plugin of pytest: what is quick comes first, so that a mutant which any door can see does not wait for all of them.

The tests over the first door, which is the plainest, come first, then those over no door, and then door after door.
Tests of properties, and those that want a database server, come after all others.
"""

from __future__ import annotations

import pytest

__all__ = ["pytest_collection_modifyitems"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests of each door together, in the order that they have among themselves."""
    order = dict.fromkeys([*(_door(item) for item in items[:1]), "", *map(_door, items)])
    places = {door: place for place, door in enumerate(order)}
    items.sort(key=lambda item: (_is_slow(item), places[_door(item)]))


def _is_slow(item: pytest.Item) -> bool:
    if not isinstance(item, pytest.Function):
        return False
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    return hasattr(item.obj, "hypothesis") or "postgres" in (*item.fixturenames, *parameters.values())


def _door(item: pytest.Item) -> str:
    """Return the door that a test is over; nothing for one of no door."""
    call = getattr(item, "callspec", None)
    return repr(call.params["door"]) if call is not None and "door" in call.params else ""
