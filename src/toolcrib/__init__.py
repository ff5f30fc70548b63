"""Toolcrib: define a tool once; every way of calling it goes over the same counter.

Everything a user names is here. What belongs to one door (turns, code mode) is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from toolcrib.approvals import AgentContext, ApprovalStore, MemoryApprovalStore, allow, deny
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
    Outcome,
    Reject,
    Rejected,
    RunNormally,
    Suspended,
    ToolCall,
    Yielded,
)
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
from toolcrib.invoke import CallLimits, JsonLinesSink, ListSink, LogSink, Pipeline, RunScope
from toolcrib.registry import registry_scope
from toolcrib.schema import Injectable, Injected, Redacted, RunContext
from toolcrib.tools import BaseTool, Instruction, Tool, ToolRegistry, ToolType, ez_tool, tool, tool_input
from toolcrib.toolsets import Toolset

if TYPE_CHECKING:
    from toolcrib.code import ExecutionResult, Toolkit

__all__ = [
    "AgentContext",
    "AgentHook",
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
    "ContextPoolHook",
    "ContextQueueHook",
    "Denial",
    "ExecutionResult",
    "Failed",
    "GlobalHooks",
    "Grant",
    "Hook",
    "HookRegistry",
    "HookSet",
    "Injectable",
    "Injected",
    "Instruction",
    "InvalidArguments",
    "JsonLinesSink",
    "ListSink",
    "LogSink",
    "MemoryApprovalStore",
    "ModelRetry",
    "Outcome",
    "Pipeline",
    "Redacted",
    "Reject",
    "Rejected",
    "RunContext",
    "RunNormally",
    "RunScope",
    "Suspended",
    "Tool",
    "ToolCall",
    "ToolHook",
    "ToolRegistry",
    "ToolType",
    "ToolcribError",
    "Toolkit",
    "Toolset",
    "TurnHook",
    "Yielded",
    "allow",
    "deny",
    "ez_tool",
    "hook",
    "per_value",
    "registry_scope",
    "tool",
    "tool_input",
]

_LATER = {"ExecutionResult": "toolcrib.code", "Toolkit": "toolcrib.code"}


def __getattr__(name: str) -> Any:
    """Load what belongs to one door when it is first asked for."""
    module = _LATER.get(name)
    if module is None:
        raise AttributeError(f"module 'toolcrib' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(module), name)
    return value


def __dir__() -> list[str]:
    return __all__
