"""The list of ways in, and the marks that run a test over them."""

from __future__ import annotations

import pytest

from toolcrib.testing._rounds import round_ways
from toolcrib.testing._ways import Ability, CodeWay, RunWay, StreamWay, TurnWay, Way

WAYS: list[Way] = [RunWay(), StreamWay(), TurnWay(), *round_ways, CodeWay()]
"""Ways of calling a tool, of each kind that needs no extra; put your own here to have it tested by the same tests."""


def ways(*abilities: Ability) -> pytest.MarkDecorator:
    """Run a test, which takes `way`, over every way in that has these abilities."""
    able = [way for way in WAYS if way.abilities.issuperset(abilities)]
    return pytest.mark.parametrize("way", able, ids=repr)


every_way = ways()
"""Run a test, which takes `way`, over every way in."""
