"""Microsoft Agent Framework: our tools in its agents, its tools as members, gates around what an agent has.

What is here translates: their calls to ours, our outcomes to theirs, approval both ways. It has no gate and no retry.
The extra `agent-framework`.
"""

from __future__ import annotations

from toolcrib.errors import MissingExtraError

try:
    import agent_framework as _agent_framework
except ModuleNotFoundError as error:
    if error.name != "agent_framework":
        raise
    raise MissingExtraError("Microsoft Agent Framework", "agent-framework") from error

from toolcrib.adapters.agent_framework._answers import approval_requests
from toolcrib.adapters.agent_framework._guard import GuardProvider, guard, member_of
from toolcrib.adapters.agent_framework._members import from_tools
from toolcrib.adapters.agent_framework._tools import ToolProvider, answers, as_tools

__all__ = [
    "GuardProvider",
    "ToolProvider",
    "answers",
    "approval_requests",
    "as_tools",
    "from_tools",
    "guard",
    "member_of",
]

del _agent_framework
