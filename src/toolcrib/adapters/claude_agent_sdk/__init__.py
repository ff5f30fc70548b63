"""Claude Agent SDK: our tools in its agents, its tools as members, gates around the tools that Claude Code runs.

This package translates calls, outcomes and approvals between the two. It has no gates and no retries.
The extra `claude-agent-sdk`.
"""

from __future__ import annotations

from toolcrib._extras import Extra

with Extra("the Claude Agent SDK", "claude-agent-sdk", ("claude_agent_sdk",)):
    from toolcrib.adapters.claude_agent_sdk._guard import guard
    from toolcrib.adapters.claude_agent_sdk._members import from_tools, member_of, servers_of
    from toolcrib.adapters.claude_agent_sdk._options import GatedOptions, answers, approval_requests, record_usage
    from toolcrib.adapters.claude_agent_sdk._tools import as_tools

__all__ = [
    "GatedOptions",
    "answers",
    "approval_requests",
    "as_tools",
    "from_tools",
    "guard",
    "member_of",
    "record_usage",
    "servers_of",
]
