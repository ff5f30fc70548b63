"""Toolcrib: define a tool once; every way of calling it goes through one pipeline.

The names that most programs use are here. Each is loaded when it is first used, so importing the package is fast.
The others are in the submodules: `toolcrib.hooks`, `toolcrib.turns`, `toolcrib.approvals` and others.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from toolcrib._lazy_names import lazy_names

if TYPE_CHECKING:
    __version__: str

    from toolcrib.approvals import SqliteApprovalStore
    from toolcrib.calls import (
        ApprovalRequest,
        Ask,
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
    )
    from toolcrib.code import Toolkit
    from toolcrib.errors import ApprovalRequired, InvalidArguments, ModelRetry, ToolcribError
    from toolcrib.hooks import Delivery, Gate, HookSet, ToolHook, hook
    from toolcrib.pipeline import Call, CallLimits, Channel, Durability, Pipeline, Run
    from toolcrib.record import ListSink, SqliteSink
    from toolcrib.rounds import Session, decode
    from toolcrib.schema import Injected, Redacted, RunContext
    from toolcrib.tools import BaseTool, Tool, ez_tool, tool, tool_input
    from toolcrib.toolsets import Toolset
    from toolcrib.turns import Agent, Turn

__all__ = [
    "Agent",
    "ApprovalRequest",
    "ApprovalRequired",
    "Ask",
    "BaseTool",
    "Call",
    "CallLimits",
    "CallRecord",
    "Channel",
    "Complete",
    "Completed",
    "Delivery",
    "Denial",
    "Durability",
    "Failed",
    "Gate",
    "Grant",
    "HookSet",
    "Injected",
    "InvalidArguments",
    "ListSink",
    "Media",
    "ModelRetry",
    "Outcome",
    "Pipeline",
    "Redacted",
    "Reject",
    "Rejected",
    "Run",
    "RunContext",
    "RunNormally",
    "Session",
    "SqliteApprovalStore",
    "SqliteSink",
    "Suspended",
    "Tool",
    "ToolCall",
    "ToolHook",
    "ToolcribError",
    "Toolkit",
    "Toolset",
    "Turn",
    "decode",
    "ez_tool",
    "hook",
    "tool",
    "tool_input",
]

_load, __dir__ = lazy_names(
    __name__,
    {
        "toolcrib.approvals": "SqliteApprovalStore",
        "toolcrib.calls": (
            "ApprovalRequest Ask CallRecord Complete Completed Denial Failed Grant Media Outcome Reject "
            "Rejected RunNormally Suspended ToolCall"
        ),
        "toolcrib.code": "Toolkit",
        "toolcrib.errors": "ApprovalRequired InvalidArguments ModelRetry ToolcribError",
        "toolcrib.hooks": "Delivery Gate HookSet ToolHook hook",
        "toolcrib.pipeline": "Call CallLimits Channel Durability Pipeline Run",
        "toolcrib.record": "ListSink SqliteSink",
        "toolcrib.rounds": "Session decode",
        "toolcrib.schema": "Injected Redacted RunContext",
        "toolcrib.tools": "BaseTool Tool ez_tool tool tool_input",
        "toolcrib.toolsets": "Toolset",
        "toolcrib.turns": "Agent Turn",
    },
)


def __getattr__(name: str) -> Any:
    """Load what is asked for."""
    return import_module("importlib.metadata").version("toolcrib") if name == "__version__" else _load(name)
