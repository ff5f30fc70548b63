"""Fakes for tests of tools, recorded runs, and one test over many ways of calling a tool.

`Recording` is a recorded run; `Way` is a way of calling a tool; `every_way` runs a test over one way of each kind.
No other package imports pytest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolcrib._lazy_names import lazy_names
from toolcrib.testing._client import ScriptedClient
from toolcrib.testing._clock import FakeClock
from toolcrib.testing._fakes import FakeSandbox, RecordingSink
from toolcrib.testing._replies import wire_reply
from toolcrib.testing._scripted import ScriptedModel, Step

if TYPE_CHECKING:
    from toolcrib.testing._every import WAYS, every_way, ways
    from toolcrib.testing._recording import RecordedError, Recording
    from toolcrib.testing._ways import Ability, Caller, Way, WayRequest

__all__ = [
    "WAYS",
    "Ability",
    "Caller",
    "FakeClock",
    "FakeSandbox",
    "RecordedError",
    "Recording",
    "RecordingSink",
    "ScriptedClient",
    "ScriptedModel",
    "Step",
    "Way",
    "WayRequest",
    "every_way",
    "ways",
    "wire_reply",
]

_load, __dir__ = lazy_names(
    __name__,
    {
        "._every": "WAYS every_way ways",
        "._recording": "RecordedError Recording",
        "._ways": "Ability Caller Way WayRequest",
    },
)


def __getattr__(name: str) -> Any:
    """Import what needs pytest, or many modules, when it is asked for."""
    try:
        return _load(name)
    except ModuleNotFoundError as error:
        if error.name != "pytest":
            raise
        raise ImportError(f"`{__name__}.{name}` needs pytest. Install it with: pip install pytest") from error
