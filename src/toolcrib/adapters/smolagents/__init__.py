"""smolagents: our tools in its agents, its tools as members of a toolset, gates around an agent's tools, our sandbox.

This package translates calls, outcomes and approvals between the two. It has no gates and no retries.
The extra `smolagents`.
"""

from __future__ import annotations

from toolcrib._extras import Extra

with Extra("smolagents", "smolagents", ("smolagents",)):
    from toolcrib.adapters.smolagents._answers import answers, approval_requests, run_agent
    from toolcrib.adapters.smolagents._executor import SandboxExecutor
    from toolcrib.adapters.smolagents._guard import guard
    from toolcrib.adapters.smolagents._members import from_tools, member_of
    from toolcrib.adapters.smolagents._tools import as_tools

__all__ = [
    "SandboxExecutor",
    "answers",
    "approval_requests",
    "as_tools",
    "from_tools",
    "guard",
    "member_of",
    "run_agent",
]
