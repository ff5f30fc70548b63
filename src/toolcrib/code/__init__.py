"""Code mode: model-written Python that calls tools, run in a sandbox.

Toolkit renders the prompts and takes each call of a program to the pipeline; `sandboxes` runs the program.
"""

from toolcrib.code._check import Finding
from toolcrib.code._events import (
    CallEnded,
    CallStarted,
    CallSuspended,
    CallValue,
    Printed,
    ProgramDone,
    ProgramEvent,
    ProgramFailed,
    ProgramPaused,
)
from toolcrib.code._extract import extract_code
from toolcrib.code._file_journal import FileJournal
from toolcrib.code._journal import JournalLog
from toolcrib.code._paused import PausedProgram, PendingCall
from toolcrib.code._result import ExecutionResult
from toolcrib.code._session import ProgramSession
from toolcrib.code._toolkit import Toolkit
from toolcrib.sandbox import Sandbox, SandboxLimits

__all__ = [
    "CallEnded",
    "CallStarted",
    "CallSuspended",
    "CallValue",
    "ExecutionResult",
    "FileJournal",
    "Finding",
    "JournalLog",
    "PausedProgram",
    "PendingCall",
    "Printed",
    "ProgramDone",
    "ProgramEvent",
    "ProgramFailed",
    "ProgramPaused",
    "ProgramSession",
    "Sandbox",
    "SandboxLimits",
    "Toolkit",
    "extract_code",
]
