"""Turns and agents: a tool with its arguments as a unit of work, and a queue of such units.

A turn hands its call to `invoke.Pipeline`, an agent runs turns; what is decided about a call is decided over there.
"""

from toolcrib.turns._agent import Agent, AgentRegistry
from toolcrib.turns._context import ContextItem, ContextPool, ContextQueue
from toolcrib.turns._stop_reason import StopReason
from toolcrib.turns._turn import Turn

__all__ = ["Agent", "AgentRegistry", "ContextItem", "ContextPool", "ContextQueue", "StopReason", "Turn"]
