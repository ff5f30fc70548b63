"""Public fakes, and every way of calling a tool as one parametrised test.

`Door` is a way of calling; `every_door` runs a test over all of them. The one package that imports pytest.
"""

from toolcrib.testing._doors import Ability, Counter, Door, Visit
from toolcrib.testing._every import DOORS, doors, every_door
from toolcrib.testing._fakes import FakeSandbox, RecordingSink
from toolcrib.testing._replies import wire_reply
from toolcrib.testing._scripted import ScriptedModel, Step

__all__ = [
    "DOORS",
    "Ability",
    "Counter",
    "Door",
    "FakeSandbox",
    "RecordingSink",
    "ScriptedModel",
    "Step",
    "Visit",
    "doors",
    "every_door",
    "wire_reply",
]
