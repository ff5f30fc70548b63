"""Sandboxes: where a program runs, away from everything of the host's.

One protocol, and an engine behind it for each way to isolate. Nothing here knows of tools: a `Host` answers the calls.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from toolcrib.errors import MissingExtraError
from toolcrib.sandbox._default import SandboxName, default_sandbox, sandbox_named
from toolcrib.sandbox._protocol import (
    Described,
    Dialect,
    Emit,
    Host,
    KeepsSessions,
    Pending,
    Program,
    ProgramError,
    Raised,
    Remember,
    Reply,
    Resumable,
    Sandbox,
    SandboxLimits,
    SandboxResult,
    SandboxSession,
    Speaks,
    Value,
)
from toolcrib.sandbox._type_checker import ChecksTypes, TypeProblem, type_checker

if TYPE_CHECKING:
    from toolcrib.sandbox._inline import UnsafeInlineSandbox
    from toolcrib.sandbox._monty import MontySandbox
    from toolcrib.sandbox._process import ProcessSandbox, SubprocessSandbox

__all__ = [
    "ChecksTypes",
    "Described",
    "Dialect",
    "Emit",
    "Host",
    "KeepsSessions",
    "MontySandbox",
    "Pending",
    "ProcessSandbox",
    "Program",
    "ProgramError",
    "Raised",
    "Remember",
    "Reply",
    "Resumable",
    "Sandbox",
    "SandboxLimits",
    "SandboxName",
    "SandboxResult",
    "SandboxSession",
    "Speaks",
    "SubprocessSandbox",
    "TypeProblem",
    "UnsafeInlineSandbox",
    "Value",
    "default_sandbox",
    "sandbox_named",
    "type_checker",
]


_ENGINES = {
    "MontySandbox": "_monty",
    "ProcessSandbox": "_process",
    "SubprocessSandbox": "_process",
    "UnsafeInlineSandbox": "_inline",
}


def __getattr__(name: str) -> Any:
    """Load an engine, and its optional dependency with it, when it is first named."""
    if name not in _ENGINES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(f"{__name__}.{_ENGINES[name]}"), name)
    except ImportError as error:
        raise MissingExtraError(name, "monty") from error
