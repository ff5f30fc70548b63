"""Names that a package does not have: the error says in which other package they are, or what is meant."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from toolcrib.errors._base import nearest

_ROOT: Final = __name__.partition(".")[0]
_ADAPTERS: Final = f"{_ROOT}.adapters."
_WORDS: Final = {
    "AgentExecutor": "from toolcrib.rounds import Session",
    "BaseModel": "from pydantic import BaseModel",
    "Budget": "from toolcrib.budgets import Budgets",
    "Client": "from toolcrib.adapters.mcp_client import connect, or from toolcrib.adapters.dbos import Client",
    "Depends": "from toolcrib import Injected",
    "FastMCP": "from toolcrib.adapters.mcp_server import serve",
    "Field": "from pydantic import Field",
    "FunctionTool": "from toolcrib.tools import Tool",
    "Guard": "from toolcrib.serving import GuardPolicy",
    "Guardrail": "from toolcrib import Gate",
    "InjectedToolArg": "from toolcrib import Injected",
    "MCPClient": "from toolcrib.adapters.mcp_client import connect",
    "MCPServerSse": "from toolcrib.adapters.mcp_client import connect",
    "MCPServerStdio": "from toolcrib.adapters.mcp_client import connect",
    "MCPServerStreamableHttp": "from toolcrib.adapters.mcp_client import connect",
    "Policy": "from toolcrib.serving import GuardPolicy, or from toolcrib.provenance import Provenance",
    "RateLimit": "from toolcrib.budgets import Budgets, Limit",
    "RunConfig": "from toolcrib import Run",
    "Runner": "from toolcrib.rounds import Session",
    "StateGraph": "from toolcrib.rounds import Session",
    "StructuredTool": "from toolcrib.tools import Tool",
    "ToolError": "from toolcrib import ModelRetry",
    "ToolException": "from toolcrib import ModelRetry",
    "ToolNode": "from toolcrib.rounds import decode",
    "create_agent": "from toolcrib.rounds import Session, or from toolcrib.adapters.pydantic_ai import create_agent",
    "create_react_agent": "from toolcrib.rounds import Session",
    "from_openapi": "from toolcrib.openapi import toolset",
    "function_tool": "from toolcrib import tool",
    "interrupt": "from toolcrib import ApprovalRequired",
    "load_openapi": "from toolcrib.openapi import toolset",
}
"""The imports here that stand for names of other frameworks."""


class MissingNameError(AttributeError):
    """A package has no such attribute; what is meant is looked up when the error is shown."""

    def __init__(self, package: str, missing: str) -> None:
        super().__init__(package, missing)
        self.package, self.missing = package, missing

    def __str__(self) -> str:
        return f"module {self.package!r} has no attribute {self.missing!r}{_hint(self.package, self.missing)}"


def missing_name(package: str, name: str, asking: Any) -> Exception:
    """Return the error for a name that a package does not have.

    Python has a text of its own for a `from package import name` that ends in an AttributeError, so that statement gets
    an ImportError. Whatever else asks, such as `hasattr`, gets an AttributeError.

    Args:
        package: The package.
        name: The name.
        asking: The frame of the code that asks.
    """
    if asking.f_code.co_code[asking.f_lasti] == import_module("dis").opmap["IMPORT_FROM"]:
        return ImportError(f"cannot import name {name!r} from {package!r}{_hint(package, name)}", name=package)
    return MissingNameError(package, name)


def _hint(package: str, name: str) -> str:
    """Return a sentence that says where a name is, or which name of the package is meant; empty for nothing near."""
    if name.startswith("_"):
        return ""
    homes = [module for module in _homes(name) if module != package]
    adapters = [module.removeprefix(_ADAPTERS) for module in homes if module.startswith(_ADAPTERS)]
    here = _WORDS.get(name) or (f"from {homes[0]} import {name}" if homes else None)
    if here is not None and len(homes) == len(adapters) > 1:
        here += f"; or, for another framework, from that one's module: {', '.join(adapters[1:])}"
    if here is not None:
        return f". Write: {here}"
    near = nearest(name, sys.modules[package].__all__)
    return f". Did you mean `{near[0]}`?" if near else ""


def _homes(name: str) -> Iterator[str]:
    """Yield the public modules that have a public name, the shortest path first."""
    root = Path(str(sys.modules[_ROOT].__file__)).parent
    paths = [path.relative_to(root.parent).with_suffix("") for path in root.rglob("*.py")]
    public = [path for path in paths if path.name == "__init__" or not path.name.startswith("_")]
    for path in sorted(public, key=lambda path: (len(path.parts), str(path))):
        if any(part.startswith("_") and part != "__init__" for part in path.parts):
            continue
        text = (root.parent / path).with_suffix(".py").read_text("utf-8")
        if f'"{name}"' in text.partition("__all__ = [")[2].partition("]")[0]:
            yield ".".join(part for part in path.parts if part != "__init__")
