"""Objects of other frameworks: which adapter makes tools of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

_ADAPTERS: Final = {
    "agent_framework": "agent_framework",
    "agents": "openai_agents",
    "claude_agent_sdk": "claude_agent_sdk",
    "fastmcp": "mcp_client",
    "google.adk": "google_adk",
    "langchain_core": "langchain",
    "langgraph": "langchain",
    "mcp": "mcp_client",
    "pydantic_ai": "pydantic_ai",
    "smolagents": "smolagents",
}
"""The adapter for objects whose class, or a base of it, is from this package."""


def adapter_of(value: object) -> str | None:
    """Return the adapter for an object of another framework, as `toolcrib.adapters` has it; None for any other."""
    modules = [f"{base.__module__}." for base in type(value).__mro__]
    found = (name for package, name in _ADAPTERS.items() if any(module.startswith(f"{package}.") for module in modules))
    return next(found, None)


def require_own_object(value: object) -> None:
    """Check that an object is not of another framework, of an MCP server, or a dict; raises TypeError."""
    adapter = adapter_of(value)
    name = str(getattr(value, "name", None) or type(value).__name__)
    if isinstance(value, Mapping):
        described = cast("Mapping[str, Any]", value)
        name = str(described.get("name") or cast("Any", described.get("function") or {}).get("name") or "a tool")
        raise TypeError(
            f"a dict is not a tool: it describes `{name:.60}` to a provider, and has nothing to execute. Give the "
            "function; what the provider executes itself are the provider_tools of a session"
        )
    if adapter == "mcp_client":
        call = "connect(server)" if type(value).__module__.startswith("mcp.") else "connect('python server.py')"
        raise TypeError(
            f"`{name:.60}` ({type(value).__name__}) belongs to an MCP server: {call} of toolcrib.adapters.mcp_client "
            "has its tools; a server in a process of its own is given by its command or its URL"
        )
    if adapter is not None:
        raise TypeError(
            f"`{name:.60}` ({type(value).__name__}) belongs to another framework: from_tools([...]) of "
            f"toolcrib.adapters.{adapter} makes tools of its tools, and member_of(...) of those of an agent. For what "
            "as_tools made give the toolset that it was made of"
        )
