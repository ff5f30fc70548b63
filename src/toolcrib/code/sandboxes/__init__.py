"""Sandboxes: where a program runs, away from everything of the host's.

One protocol, and an engine behind it for each way to isolate. Nothing here knows of tools: a `Host` answers the calls.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from toolcrib.code.sandboxes._default import default_sandbox
from toolcrib.code.sandboxes._protocol import (
    Described,
    Dialect,
    Emit,
    Host,
    KeepsSessions,
    Pending,
    Program,
    ProgramError,
    Raised,
    Reply,
    Resumable,
    Sandbox,
    SandboxLimits,
    SandboxResult,
    SandboxSession,
    Speaks,
    Value,
)
from toolcrib.code.sandboxes._types import ChecksTypes, TypeProblem, type_checker
from toolcrib.errors import MissingExtraError

if TYPE_CHECKING:
    from toolcrib.code.sandboxes._monty import MontySandbox

__all__ = [
    "ChecksTypes",
    "Described",
    "Dialect",
    "Emit",
    "Host",
    "KeepsSessions",
    "MontySandbox",
    "Pending",
    "Program",
    "ProgramError",
    "Raised",
    "Reply",
    "Resumable",
    "Sandbox",
    "SandboxLimits",
    "SandboxResult",
    "SandboxSession",
    "Speaks",
    "TypeProblem",
    "Value",
    "default_sandbox",
    "type_checker",
]


def __getattr__(name: str) -> Any:
    """Load an engine, and its optional dependency with it, when it is first named."""
    if name != "MontySandbox":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return importlib.import_module("toolcrib.code.sandboxes._monty").MontySandbox
    except ImportError as error:
        raise MissingExtraError("MontySandbox", "monty") from error
