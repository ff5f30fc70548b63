"""Tests of the adapters of other frameworks, each where its framework is installed: `make test-frameworks`."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

_NEEDS = {
    "agent_framework": "agent_framework",
    "claude": "claude_agent_sdk",
    "google_adk": "google.adk",
    "langchain": "langchain",
    "openai_agents": "agents",
    "smolagents": "smolagents",
}
"""The module that each file of tests, and its page, needs; all frameworks for the others."""


def absent(name: str) -> bool:
    """Return whether the framework that a test module is about is not installed."""
    about = [module for word, module in _NEEDS.items() if word in name] or list(_NEEDS.values())
    return any(find_spec(part) is None for module in about for part in (module.partition(".")[0], module))


collect_ignore_glob = ["test_*.py"] if absent("") else []


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no framework report to its maker."""
    monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
