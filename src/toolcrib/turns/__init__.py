"""Turns and agents: a tool with its arguments as a unit of work, and a queue of such units.

An agent runs its turns; each turn makes its call through `pipeline.Pipeline`.
`AgentRun`, `TurnBinding` and `TurnQueue` are for adapters that run an agent's turns in its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib._lazy_names import lazy_names

if TYPE_CHECKING:
    from toolcrib.turns._agent import Agent, AgentRegistry, require_agent
    from toolcrib.turns._agent_run import AgentRun
    from toolcrib.turns._binding import TurnBinding
    from toolcrib.turns._context import ContextItem, ContextPool, ContextQueue
    from toolcrib.turns._queue import TurnQueue
    from toolcrib.turns._stop_reason import StopReason
    from toolcrib.turns._turn import Turn
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "._agent": "Agent AgentRegistry require_agent",
            "._agent_run": "AgentRun",
            "._binding": "TurnBinding",
            "._context": "ContextItem ContextPool ContextQueue",
            "._queue": "TurnQueue",
            "._stop_reason": "StopReason",
            "._turn": "Turn",
        },
    )

__all__ = [
    "Agent",
    "AgentRegistry",
    "AgentRun",
    "ContextItem",
    "ContextPool",
    "ContextQueue",
    "StopReason",
    "Turn",
    "TurnBinding",
    "TurnQueue",
    "require_agent",
]
