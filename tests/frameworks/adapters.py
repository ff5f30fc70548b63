"""Names of the adapters of agents' frameworks; a file that imports none of them."""

from __future__ import annotations

ADAPTERS = (
    "agent_framework",
    "claude_agent_sdk",
    "google_adk",
    "langchain",
    "openai_agents",
    "pydantic_ai",
    "smolagents",
)
