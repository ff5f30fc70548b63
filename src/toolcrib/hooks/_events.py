"""Events that observers are called for, one enum for each kind of object, and the parameters of each."""

from __future__ import annotations

from enum import StrEnum
from typing import Self, TypeAlias


class HookEvent(StrEnum):
    """An event: its name, and then the parameters of its observers, as in a function's signature."""

    _value_: str
    parameters: tuple[str, ...]

    def __new__(cls, value: str, *parameters: str) -> Self:
        event = str.__new__(cls, value)
        event._value_, event.parameters = value, parameters
        return event


class ToolHook(HookEvent):
    """Events of a tool's execution; of a streaming tool `AFTER_INVOKE` gets the list of values."""

    BEFORE_INVOKE = "tool.before_invoke", "**arguments"
    ON_YIELD = "tool.on_yield", "value"
    AFTER_INVOKE = "tool.after_invoke", "result"
    ON_ERROR = "tool.on_error", "*", "exc"


class TurnHook(HookEvent):
    """Events of a turn, which is the first parameter."""

    BEFORE_RUN = "turn.before_run", "turn"
    AFTER_RUN = "turn.after_run", "turn"
    ON_TIMEOUT = "turn.on_timeout", "turn"
    ON_ERROR = "turn.on_error", "turn", "exc"
    ON_COMPLETE = "turn.on_complete", "turn", "stop_reason"


class AgentHook(HookEvent):
    """Events of an agent, which is the first parameter."""

    BEFORE_TURN = "agent.before_turn", "agent", "turn"
    AFTER_TURN = "agent.after_turn", "agent", "turn"
    ON_TURN_VALUE = "agent.on_turn_value", "agent", "turn", "value"
    BEFORE_PUT = "agent.before_put", "agent", "turn"
    AFTER_PUT = "agent.after_put", "agent", "turn"
    ON_PAUSE = "agent.on_pause", "agent"
    ON_RESUME = "agent.on_resume", "agent"


class ContextQueueHook(HookEvent):
    """Events of a context queue, which is the first parameter."""

    BEFORE_APPEND = "context_queue.before_append", "queue", "items"
    AFTER_APPEND = "context_queue.after_append", "queue", "items"
    BEFORE_CLEAR = "context_queue.before_clear", "queue", "items"
    AFTER_CLEAR = "context_queue.after_clear", "queue"
    ON_EVICT = "context_queue.on_evict", "queue", "item"


class ContextPoolHook(HookEvent):
    """Events of a context pool, which is the first parameter."""

    BEFORE_ADD = "context_pool.before_add", "pool", "item"
    AFTER_ADD = "context_pool.after_add", "pool", "item"
    BEFORE_REMOVE = "context_pool.before_remove", "pool", "item"
    AFTER_REMOVE = "context_pool.after_remove", "pool", "item"
    BEFORE_CLEAR = "context_pool.before_clear", "pool", "items"
    AFTER_CLEAR = "context_pool.after_clear", "pool"
    ON_EVICT = "context_pool.on_evict", "pool", "item"


HookType: TypeAlias = ToolHook | TurnHook | AgentHook | ContextQueueHook | ContextPoolHook
"""An event that `hook` takes."""
