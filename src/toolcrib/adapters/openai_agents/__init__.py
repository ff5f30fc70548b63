"""OpenAI Agents SDK: our tools in its agents, its tools as members of a toolset, gates around the tools of an agent.

This package translates calls, outcomes and approvals between the two. It has no gates and no retries.
The extra `openai-agents`.
"""

from __future__ import annotations

from toolcrib._extras import Extra

with Extra("the OpenAI Agents SDK", "openai-agents", ("agents",)):
    from toolcrib.adapters.openai_agents._answers import answers, approval_requests
    from toolcrib.adapters.openai_agents._guard import GuardedAgent, UsageHooks, guard
    from toolcrib.adapters.openai_agents._members import from_tools, member_of
    from toolcrib.adapters.openai_agents._tools import as_tools

__all__ = ["GuardedAgent", "UsageHooks", "answers", "approval_requests", "as_tools", "from_tools", "guard", "member_of"]
