"""The moments an observer can be told of, one enum for each kind of object."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

__all__ = ["AgentHook", "ContextPoolHook", "ContextQueueHook", "HookType", "ToolHook", "TurnHook"]


class ToolHook(StrEnum):
    """Moments of a tool's execution.

    `BEFORE_INVOKE` gets the arguments by name, `ON_YIELD` and `AFTER_INVOKE` the value (the list of values for a
    streaming tool), `ON_ERROR` the exception as `exc`.
    """

    BEFORE_INVOKE = "tool.before_invoke"
    ON_YIELD = "tool.on_yield"
    AFTER_INVOKE = "tool.after_invoke"
    ON_ERROR = "tool.on_error"


class TurnHook(StrEnum):
    """Moments of a turn; the turn comes first, `ON_ERROR` adds the exception."""

    BEFORE_RUN = "turn.before_run"
    AFTER_RUN = "turn.after_run"
    ON_TIMEOUT = "turn.on_timeout"
    ON_ERROR = "turn.on_error"
    ON_COMPLETE = "turn.on_complete"


class AgentHook(StrEnum):
    """Moments of an agent; the agent comes first, then the turn, then the value where there is one."""

    BEFORE_TURN = "agent.before_turn"
    AFTER_TURN = "agent.after_turn"
    ON_TURN_VALUE = "agent.on_turn_value"
    BEFORE_PUT = "agent.before_put"
    AFTER_PUT = "agent.after_put"
    ON_PAUSE = "agent.on_pause"
    ON_RESUME = "agent.on_resume"


class ContextQueueHook(StrEnum):
    """Moments of a context queue; the queue comes first, then the items it is about."""

    BEFORE_APPEND = "context_queue.before_append"
    AFTER_APPEND = "context_queue.after_append"
    BEFORE_CLEAR = "context_queue.before_clear"
    AFTER_CLEAR = "context_queue.after_clear"
    ON_EVICT = "context_queue.on_evict"


class ContextPoolHook(StrEnum):
    """Moments of a context pool; the pool comes first, then the item it is about."""

    BEFORE_ADD = "context_pool.before_add"
    AFTER_ADD = "context_pool.after_add"
    BEFORE_REMOVE = "context_pool.before_remove"
    AFTER_REMOVE = "context_pool.after_remove"
    BEFORE_CLEAR = "context_pool.before_clear"
    AFTER_CLEAR = "context_pool.after_clear"
    ON_EVICT = "context_pool.on_evict"


HookType: TypeAlias = ToolHook | TurnHook | AgentHook | ContextQueueHook | ContextPoolHook
