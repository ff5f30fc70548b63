"""The list of ways in, and the marks that run a test over them."""

from __future__ import annotations

import pytest

from toolcrib.errors import MissingExtraError
from toolcrib.testing._code_ways import code_ways
from toolcrib.testing._rounds import round_ways
from toolcrib.testing._ways import (
    Ability,
    AgentWay,
    CommandLineWay,
    RunWay,
    StepsWay,
    StreamWay,
    TurnWay,
    Way,
)

try:
    from toolcrib.testing._pydantic_ai import pydantic_ways
except ModuleNotFoundError as error:  # without the extra `models` there are no such ways in
    if (error.name or "").partition(".")[0] != "pydantic_ai":
        raise
    pydantic_ways: tuple[Way, ...] = ()

try:
    from toolcrib.testing._mcp import mcp_ways
except ImportError as error:  # without the extra `mcp` there are no such ways in
    if not (isinstance(error, MissingExtraError) or (error.name or "").partition(".")[0] in ("mcp", "anyio", "httpx2")):
        raise
    mcp_ways: tuple[Way, ...] = ()

try:
    from toolcrib.testing._openai_agents import openai_agents_ways
except ImportError as error:  # without the extra `openai-agents` there is no such way in
    if (error.name or "").partition(".")[0] != "agents":
        raise
    openai_agents_ways: tuple[Way, ...] = ()

try:
    from toolcrib.testing._langchain import langchain_ways
except ImportError as error:  # without the extra `langchain` there is no such way in
    if (error.name or "").partition(".")[0] not in ("langchain", "langchain_core", "langgraph"):
        raise
    langchain_ways: tuple[Way, ...] = ()

try:
    from toolcrib.testing._google_adk import google_adk_ways
except ImportError as error:  # without the extra `google-adk` there is no such way in
    if (error.name or "") not in ("google", "google.adk"):
        raise
    google_adk_ways: tuple[Way, ...] = ()

try:
    from toolcrib.testing._agent_framework import agent_framework_ways
except ImportError as error:  # without the extra `agent-framework` there is no such way in
    if (error.name or "").partition(".")[0] != "agent_framework":
        raise
    agent_framework_ways: tuple[Way, ...] = ()

try:
    from toolcrib.testing._claude_agent_sdk import claude_agent_sdk_ways
except ImportError as error:  # without the extra `claude-agent-sdk` there is no such way in
    if (error.name or "").partition(".")[0] != "claude_agent_sdk":
        raise
    claude_agent_sdk_ways: tuple[Way, ...] = ()

try:
    from toolcrib.testing._smolagents import smolagents_ways
except ImportError as error:  # without the extra `smolagents` there are no such ways in
    if (error.name or "").partition(".")[0] != "smolagents":
        raise
    smolagents_ways: tuple[Way, ...] = ()

try:
    from toolcrib.testing._durable import durable_ways
except ImportError as error:  # without the extra `durable` there are no such ways in
    if not isinstance(error, MissingExtraError):
        raise
    durable_ways: tuple[Way, ...] = ()

__all__ = ["WAYS", "every_way", "ways"]

WAYS: list[Way] = [
    RunWay(),
    StepsWay(),
    StreamWay(),
    CommandLineWay(),
    *code_ways,
    TurnWay(),
    AgentWay(1),
    AgentWay(3),
    *round_ways,
    *pydantic_ways,
    *mcp_ways,
    *openai_agents_ways,
    *langchain_ways,
    *google_adk_ways,
    *agent_framework_ways,
    *claude_agent_sdk_ways,
    *smolagents_ways,
    *durable_ways,
]
"""Every way of calling a tool; put your own here to have it tested by the same tests."""


def ways(*abilities: Ability) -> pytest.MarkDecorator:
    """Run a test, which takes `way`, over every way in that has these abilities."""
    able = [way for way in WAYS if way.abilities.issuperset(abilities)]
    return pytest.mark.parametrize("way", able, ids=repr)


every_way = ways()
"""Run a test, which takes `way`, over every way in."""
