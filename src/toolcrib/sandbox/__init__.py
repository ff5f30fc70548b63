"""Sandboxes: engines that run programs of models, isolated from the host.

There is one protocol, with an engine for each way to isolate a program. A `Host` answers the calls that a program
makes, so nothing here imports tools or the pipeline.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolcrib._lazy_names import lazy_names
from toolcrib.errors import MissingExtraError
from toolcrib.sandbox._engines import SandboxName, default_sandbox, replayable, sandbox_named, type_checker
from toolcrib.sandbox._program_files import ProgramFiles, read_files, require_files
from toolcrib.sandbox._program_queue import ProgramQueue
from toolcrib.sandbox._protocol import (
    Dialect,
    Emit,
    HasDialect,
    HasSessions,
    HasSessionValues,
    Host,
    OutputStream,
    Program,
    ProgramError,
    Raised,
    Reply,
    RestoresSessions,
    Resumable,
    Sandbox,
    SandboxLimits,
    SandboxResult,
    SandboxSession,
    SaveState,
    SessionValues,
    SuspendedReply,
    TypeChecker,
    TypeProblem,
    Value,
)
from toolcrib.sandbox._source import Source, SourceEdit, parse_program
from toolcrib.sandbox._stopwatch import Stopwatch
from toolcrib.sandbox._values import json_size, memory_size
from toolcrib.sandbox._worker.awaiting import awaited_calls
from toolcrib.sandbox._worker_end import WorkerEnd
from toolcrib.sandbox._workers import GUEST, ReportingWorker, StoppableWorker, Worker, Workers, guest_command

if TYPE_CHECKING:
    from toolcrib.sandbox._command_workers import CommandWorkers, bubblewrap, gvisor
    from toolcrib.sandbox._inline import UnsafeInlineSandbox
    from toolcrib.sandbox._monty import MontySandbox
    from toolcrib.sandbox._process import ProcessSandbox, SubprocessSandbox
    from toolcrib.sandbox._worker_sandbox import WorkerSandbox

__all__ = [
    "GUEST",
    "CommandWorkers",
    "Dialect",
    "Emit",
    "HasDialect",
    "HasSessionValues",
    "HasSessions",
    "Host",
    "MontySandbox",
    "OutputStream",
    "ProcessSandbox",
    "Program",
    "ProgramError",
    "ProgramFiles",
    "ProgramQueue",
    "Raised",
    "Reply",
    "ReportingWorker",
    "RestoresSessions",
    "Resumable",
    "Sandbox",
    "SandboxLimits",
    "SandboxName",
    "SandboxResult",
    "SandboxSession",
    "SaveState",
    "SessionValues",
    "Source",
    "SourceEdit",
    "StoppableWorker",
    "Stopwatch",
    "SubprocessSandbox",
    "SuspendedReply",
    "TypeChecker",
    "TypeProblem",
    "UnsafeInlineSandbox",
    "Value",
    "Worker",
    "WorkerEnd",
    "WorkerSandbox",
    "Workers",
    "awaited_calls",
    "bubblewrap",
    "default_sandbox",
    "guest_command",
    "gvisor",
    "json_size",
    "memory_size",
    "parse_program",
    "read_files",
    "replayable",
    "require_files",
    "sandbox_named",
    "type_checker",
]

_load, __dir__ = lazy_names(
    __name__,
    {
        "._command_workers": "CommandWorkers bubblewrap gvisor",
        "._inline": "UnsafeInlineSandbox",
        "._monty": "MontySandbox",
        "._process": "ProcessSandbox SubprocessSandbox",
        "._worker_sandbox": "WorkerSandbox",
    },
)


def __getattr__(name: str) -> Any:
    """Load an engine, and its optional dependency with it, when it is first named."""
    try:
        return _load(name)
    except ModuleNotFoundError as error:
        raise MissingExtraError(name, "monty") from error
