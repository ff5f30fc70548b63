"""Code mode: model-written Python that calls tools, run in a sandbox.

`Toolkit` renders the prompts, checks a program, has a sandbox run it, and takes each of its calls to the pipeline. The
engines that run programs are in `toolcrib.sandbox`.
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
from toolcrib.code._file_journal import FileJournal, paused_program_in
from toolcrib.code._journal import JournalLog
from toolcrib.code._paused import PausedProgram, SuspendedProgramCall
from toolcrib.code._program_tools import tools_in
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
    "Printed",
    "ProgramDone",
    "ProgramEvent",
    "ProgramFailed",
    "ProgramPaused",
    "ProgramSession",
    "Sandbox",
    "SandboxLimits",
    "SuspendedProgramCall",
    "Toolkit",
    "extract_code",
    "paused_program_in",
    "tools_in",
]
