"""Google ADK: our tools in its agents, its tools as members of a toolset, gates around the tools of an agent.

This package translates calls, outcomes and approvals between the two. It has no gates and no retries.
The extra `google-adk`.
"""

from __future__ import annotations

from toolcrib._extras import Extra

with Extra("Google ADK", "google-adk", ("google.adk", "google.genai")):
    from toolcrib.adapters.google_adk._answers import answers, approval_requests
    from toolcrib.adapters.google_adk._guard import GuardPlugin, UsagePlugin, guard
    from toolcrib.adapters.google_adk._members import from_tools, member_of
    from toolcrib.adapters.google_adk._tools import as_tools

__all__ = ["GuardPlugin", "UsagePlugin", "answers", "approval_requests", "as_tools", "from_tools", "guard", "member_of"]
