"""Pydantic AI: a toolset inside one of its agents, and its toolsets inside one of ours. The extra `models`.

This package translates calls, outcomes and approvals between the two. It has no gates and no retries.
"""

from __future__ import annotations

from toolcrib._extras import Extra

with Extra("Pydantic AI", "models", ("pydantic_ai",)):
    from toolcrib.adapters.pydantic_ai._chat_model import PydanticChatModel, chat_model
    from toolcrib.adapters.pydantic_ai._deferred_results import answers, approval_requests
    from toolcrib.adapters.pydantic_ai._guard import GuardedAgent, GuardedToolset, guard
    from toolcrib.adapters.pydantic_ai._history import MessageHistory, decode_response
    from toolcrib.adapters.pydantic_ai._messages import MESSAGES
    from toolcrib.adapters.pydantic_ai._outcomes import ToolYielded
    from toolcrib.adapters.pydantic_ai._source import PydanticToolset, from_tools, member_of
    from toolcrib.adapters.pydantic_ai._toolset import ToolcribToolset, as_tools, create_agent, stream_agent

__all__ = [
    "MESSAGES",
    "GuardedAgent",
    "GuardedToolset",
    "MessageHistory",
    "PydanticChatModel",
    "PydanticToolset",
    "ToolYielded",
    "ToolcribToolset",
    "answers",
    "approval_requests",
    "as_tools",
    "chat_model",
    "create_agent",
    "decode_response",
    "from_tools",
    "guard",
    "member_of",
    "stream_agent",
]
