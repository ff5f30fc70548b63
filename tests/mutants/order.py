"""A plugin of pytest: what is quick comes first, so that a mutant which any way in can see does not wait for all.

The tests over the first way in, which is the plainest, come first, then those over none, then one way in after another.
Tests of properties, and those that want a database server, come after all others.
"""

from __future__ import annotations

import pytest

__all__ = ["pytest_collection_modifyitems"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests of each way in together, in the order that they have among themselves."""
    order = dict.fromkeys([*(_way(item) for item in items[:1]), "", *map(_way, items)])
    places = {way: place for place, way in enumerate(order)}
    items.sort(key=lambda item: (_is_slow(item), places[_way(item)]))


def _is_slow(item: pytest.Item) -> bool:
    if not isinstance(item, pytest.Function):
        return False
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    names = (*item.fixturenames, *(value for value in parameters.values() if isinstance(value, str)))
    return hasattr(item.obj, "hypothesis") or "postgres" in names


def _way(item: pytest.Item) -> str:
    """Return the way in that a test is over; nothing for a test of none."""
    call = getattr(item, "callspec", None)
    return repr(call.params["way"]) if call is not None and "way" in call.params else ""
