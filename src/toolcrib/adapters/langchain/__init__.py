"""LangChain and LangGraph: our tools in their agents and graphs, their tools as members, gates around an agent's tools.

This package translates calls, outcomes and approvals between the two. It has no gates and no retries.
The extra `langchain`.
"""

from __future__ import annotations

from toolcrib._extras import Extra

with Extra("LangChain", "langchain", ("langchain", "langchain_core", "langgraph")):
    from toolcrib.adapters.langchain._guard import GuardMiddleware, UsageMiddleware, guard
    from toolcrib.adapters.langchain._members import from_tools, member_of
    from toolcrib.adapters.langchain._tools import answers, approval_requests, as_tools

__all__ = [
    "GuardMiddleware",
    "UsageMiddleware",
    "answers",
    "approval_requests",
    "as_tools",
    "from_tools",
    "guard",
    "member_of",
]
