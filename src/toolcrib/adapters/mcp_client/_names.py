"""Names for what a server has: such as every provider takes, and made of it in one way only."""

from __future__ import annotations

import re

__all__ = ["resource_name", "tool_name"]

_NOT_A_TOOL = re.compile(r"[^A-Za-z0-9_-]")
_NOT_A_WORD = re.compile(r"[^A-Za-z0-9]+")


def tool_name(name: str) -> str:
    """Return the name of a tool with `_` for what no provider takes: dots, slashes, spaces."""
    return _NOT_A_TOOL.sub("_", name) or "_"


def resource_name(verb: str, name: str, uri: str) -> str:
    """Return a tool's name for a resource: `read_` or `query_` and its name, or what is left of its URI."""
    words = _NOT_A_WORD.sub("_", name).strip("_") or _NOT_A_WORD.sub("_", uri.partition("://")[2]).strip("_")
    return f"{verb}_{words.lower() or 'resource'}"
