"""The booking in a guarded agent of the OpenAI Agents SDK."""

from __future__ import annotations

from tests.frameworks.killed import openai_agents


class Agent(openai_agents.Agent):
    """The agent, whose tool is the SDK's own."""

    is_guarded = True
