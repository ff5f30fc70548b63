"""Says on what the figures were taken."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version

PACKAGES = (
    "toolcrib",
    "pydantic",
    "pydantic-core",
    "pydantic-monty",
    "pydantic-ai-slim",
    "openai-agents",
    "langchain-core",
    "pygents",
    "ez-ptc",
    "smolagents",
)


def machine() -> dict[str, str]:
    """Return the interpreter, the machine and the versions of all that is compared."""
    found = {
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
    }
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found
