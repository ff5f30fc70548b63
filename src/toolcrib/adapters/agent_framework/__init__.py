"""Microsoft Agent Framework: our tools in its agents, its tools as members, gates around the tools of an agent.

This package translates calls, outcomes and approvals between the two. It has no gates and no retries.
The extra `agent-framework`.
"""

from __future__ import annotations

from toolcrib._extras import Extra

with Extra("Microsoft Agent Framework", "agent-framework", ("agent_framework",)):
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
