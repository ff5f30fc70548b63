"""The list of doors, and the marks that run a test over them."""

from __future__ import annotations

import pytest

from toolcrib.errors import MissingExtraError
from toolcrib.testing._code_doors import code_doors
from toolcrib.testing._doors import (
    Ability,
    AgentDoor,
    CommandLineDoor,
    Door,
    RunDoor,
    StepsDoor,
    StreamDoor,
    TurnDoor,
)
from toolcrib.testing._rounds import round_doors

try:
    from toolcrib.testing._pydantic_ai import pydantic_doors
except ModuleNotFoundError as error:  # without the extra `models` there are no such doors
    if (error.name or "").partition(".")[0] != "pydantic_ai":
        raise
    pydantic_doors: tuple[Door, ...] = ()

try:
    from toolcrib.testing._mcp import mcp_doors
except ImportError as error:  # without the extra `mcp` there are no such doors
    if not (isinstance(error, MissingExtraError) or (error.name or "").partition(".")[0] == "mcp"):
        raise
    mcp_doors: tuple[Door, ...] = ()

try:
    from toolcrib.testing._durable import durable_doors
except ImportError as error:  # without the extra `durable` there are no such doors
    if not isinstance(error, MissingExtraError):
        raise
    durable_doors: tuple[Door, ...] = ()

__all__ = ["DOORS", "doors", "every_door"]

DOORS: list[Door] = [
    RunDoor(),
    StepsDoor(),
    StreamDoor(),
    CommandLineDoor(),
    *code_doors,
    TurnDoor(),
    AgentDoor(1),
    AgentDoor(3),
    *round_doors,
    *pydantic_doors,
    *mcp_doors,
    *durable_doors,
]
"""Every way of calling a tool; put your own here to have it tested by the same tests."""


def doors(*abilities: Ability) -> pytest.MarkDecorator:
    """Run a test, which takes `door`, over every door that has these abilities."""
    able = [door for door in DOORS if door.abilities.issuperset(abilities)]
    return pytest.mark.parametrize("door", able, ids=repr)


every_door = doors()
"""Run a test, which takes `door`, over every door."""
