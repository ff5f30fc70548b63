"""Toolcrib: define a tool once; every way of calling it goes through one pipeline.

Everything a user names is here, and loaded when it is first used: importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str

    from toolcrib.approvals import (
        AgentContext,
        ApprovalStore,
        MemoryApprovalStore,
        SqliteApprovalStore,
        approve_all,
        deny_all,
    )
    from toolcrib.calls import (
        ApprovalRequest,
        Ask,
        CallEvent,
        CallMetadata,
        CallRecord,
        Complete,
        Completed,
        Denial,
        Failed,
        Grant,
        Media,
        Outcome,
        Reject,
        Rejected,
        RunNormally,
        Suspended,
        ToolCall,
        Yielded,
    )
    from toolcrib.code import ExecutionResult, Toolkit
    from toolcrib.errors import ApprovalRequired, InvalidArguments, ModelRetry, ToolcribError
    from toolcrib.hooks import (
        AgentHook,
        ContextPoolHook,
        ContextQueueHook,
        GlobalHooks,
        Hook,
        HookRegistry,
        HookSet,
        ToolHook,
        TurnHook,
        hook,
        per_value,
    )
    from toolcrib.pipeline import CallLimits, Pipeline, Run, must_call
    from toolcrib.record import JsonLinesSink, ListSink, LogSink, SqliteSink
    from toolcrib.registry import registry_scope
    from toolcrib.results import MemoryResultStore, SqliteResultStore
    from toolcrib.rounds import Session, decode
    from toolcrib.schema import IdempotencyKey, Injectable, Injected, Redacted, RunContext
    from toolcrib.tools import (
        BaseTool,
        Instruction,
        PromptText,
        Tool,
        ToolRegistry,
        ToolType,
        ez_tool,
        prompt,
        resource,
        resource_changed,
        tool,
        tool_input,
    )
    from toolcrib.tools.from_schema import schema_tool
    from toolcrib.toolsets import ToolAvailability, ToolRequirement, Toolset, nested, off, use
    from toolcrib.turns import Agent, AgentRegistry, ContextItem, ContextPool, ContextQueue, StopReason, Turn

__all__ = [
    "Agent",
    "AgentContext",
    "AgentHook",
    "AgentRegistry",
    "ApprovalRequest",
    "ApprovalRequired",
    "ApprovalStore",
    "Ask",
    "BaseTool",
    "CallEvent",
    "CallLimits",
    "CallMetadata",
    "CallRecord",
    "Complete",
    "Completed",
    "ContextItem",
    "ContextPool",
    "ContextPoolHook",
    "ContextQueue",
    "ContextQueueHook",
    "Denial",
    "ExecutionResult",
    "Failed",
    "GlobalHooks",
    "Grant",
    "Hook",
    "HookRegistry",
    "HookSet",
    "IdempotencyKey",
    "Injectable",
    "Injected",
    "Instruction",
    "InvalidArguments",
    "JsonLinesSink",
    "ListSink",
    "LogSink",
    "Media",
    "MemoryApprovalStore",
    "MemoryResultStore",
    "ModelRetry",
    "Outcome",
    "Pipeline",
    "PromptText",
    "Redacted",
    "Reject",
    "Rejected",
    "Run",
    "RunContext",
    "RunNormally",
    "Session",
    "SqliteApprovalStore",
    "SqliteResultStore",
    "SqliteSink",
    "StopReason",
    "Suspended",
    "Tool",
    "ToolAvailability",
    "ToolCall",
    "ToolHook",
    "ToolRegistry",
    "ToolRequirement",
    "ToolType",
    "ToolcribError",
    "Toolkit",
    "Toolset",
    "Turn",
    "TurnHook",
    "Yielded",
    "approve_all",
    "decode",
    "deny_all",
    "ez_tool",
    "hook",
    "must_call",
    "nested",
    "off",
    "per_value",
    "prompt",
    "registry_scope",
    "resource",
    "resource_changed",
    "schema_tool",
    "tool",
    "tool_input",
    "use",
]

_HOMES = {
    "toolcrib.approvals": (
        "AgentContext",
        "ApprovalStore",
        "MemoryApprovalStore",
        "SqliteApprovalStore",
        "approve_all",
        "deny_all",
    ),
    "toolcrib.calls": (
        "ApprovalRequest",
        "Ask",
        "CallEvent",
        "CallMetadata",
        "CallRecord",
        "Complete",
        "Completed",
        "Denial",
        "Failed",
        "Grant",
        "Media",
        "Outcome",
        "Reject",
        "Rejected",
        "RunNormally",
        "Suspended",
        "ToolCall",
        "Yielded",
    ),
    "toolcrib.code": ("ExecutionResult", "Toolkit"),
    "toolcrib.errors": ("ApprovalRequired", "InvalidArguments", "ModelRetry", "ToolcribError"),
    "toolcrib.hooks": (
        "AgentHook",
        "ContextPoolHook",
        "ContextQueueHook",
        "GlobalHooks",
        "Hook",
        "HookRegistry",
        "HookSet",
        "ToolHook",
        "TurnHook",
        "hook",
        "per_value",
    ),
    "toolcrib.pipeline": ("CallLimits", "Pipeline", "Run", "must_call"),
    "toolcrib.record": ("JsonLinesSink", "ListSink", "LogSink", "SqliteSink"),
    "toolcrib.registry": ("registry_scope",),
    "toolcrib.results": ("MemoryResultStore", "SqliteResultStore"),
    "toolcrib.rounds": ("Session", "decode"),
    "toolcrib.schema": ("IdempotencyKey", "Injectable", "Injected", "Redacted", "RunContext"),
    "toolcrib.tools": (
        "BaseTool",
        "Instruction",
        "PromptText",
        "Tool",
        "ToolRegistry",
        "ToolType",
        "ez_tool",
        "prompt",
        "resource",
        "resource_changed",
        "tool",
        "tool_input",
    ),
    "toolcrib.tools.from_schema": ("schema_tool",),
    "toolcrib.toolsets": ("ToolAvailability", "ToolRequirement", "Toolset", "nested", "off", "use"),
    "toolcrib.turns": ("Agent", "AgentRegistry", "ContextItem", "ContextPool", "ContextQueue", "StopReason", "Turn"),
}
_WHERE = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Load what is asked for."""
    if name == "__version__":
        return import_module("importlib.metadata").version("toolcrib")
    module = _WHERE.get(name)
    if module is None:
        raise AttributeError(f"module 'toolcrib' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(module), name)
    return value


def __dir__() -> list[str]:
    return __all__
