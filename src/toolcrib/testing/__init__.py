"""Public fakes, and every way of calling a tool as one parametrised test.

`Door` is a way of calling; `every_door` runs a test over all of them. The one package that imports pytest.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from toolcrib.testing._fakes import FakeSandbox, RecordingSink
from toolcrib.testing._replies import wire_reply
from toolcrib.testing._scripted import ScriptedModel, Step

if TYPE_CHECKING:
    from toolcrib.testing._doors import Ability, Caller, Door, DoorRequest
    from toolcrib.testing._every import DOORS, doors, every_door

__all__ = [
    "DOORS",
    "Ability",
    "Caller",
    "Door",
    "DoorRequest",
    "FakeSandbox",
    "RecordingSink",
    "ScriptedModel",
    "Step",
    "doors",
    "every_door",
    "wire_reply",
]

_LATER = {
    **dict.fromkeys(("Ability", "Caller", "Door", "DoorRequest"), "_doors"),
    **dict.fromkeys(("DOORS", "doors", "every_door"), "_every"),
}


def __getattr__(name: str) -> Any:
    """Import the doors when they are asked for: with every adapter behind them they take seconds, and a fake none."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    return value
