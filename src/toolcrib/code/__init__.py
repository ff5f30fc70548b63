"""Code mode: model-written Python that calls tools, run in a sandbox.

`Toolkit` renders the prompts, checks a program, has a sandbox run it, and makes each of its calls through the pipeline.
The engines that run programs are in `toolcrib.sandbox`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib._lazy_names import lazy_names

if TYPE_CHECKING:
    from toolcrib.code._check import Finding
    from toolcrib.code._early_calls import EarlyCall, EarlyToolkit
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
    from toolcrib.code._journal import Journal, JournalEntry, SqlJournal, StoredJournal
    from toolcrib.code._paused import PausedProgram, SuspendedProgramCall, paused_program_in
    from toolcrib.code._postgres import PostgresProgramStore
    from toolcrib.code._program_library import ProgramLibrary, ProgramPolicy
    from toolcrib.code._program_session_state import ProgramSessionState
    from toolcrib.code._program_store import PROGRAM_TABLES, MemoryProgramStore, ProgramStore, SqliteProgramStore
    from toolcrib.code._program_tools import tools_in
    from toolcrib.code._result import ExecutionResult
    from toolcrib.code._saved_program import SavedProgram
    from toolcrib.code._session import ProgramSession
    from toolcrib.code._toolkit import Toolkit
    from toolcrib.sandbox import Sandbox, SandboxLimits
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "._check": "Finding",
            "._early_calls": "EarlyCall EarlyToolkit",
            "._events": (
                "CallEnded CallStarted CallSuspended CallValue Printed ProgramDone ProgramEvent ProgramFailed "
                "ProgramPaused"
            ),
            "._extract": "extract_code",
            "._file_journal": "FileJournal",
            "._journal": "Journal JournalEntry SqlJournal StoredJournal",
            "._paused": "PausedProgram SuspendedProgramCall paused_program_in",
            "._postgres": "PostgresProgramStore",
            "._program_library": "ProgramLibrary ProgramPolicy",
            "._program_session_state": "ProgramSessionState",
            "._program_store": "PROGRAM_TABLES MemoryProgramStore ProgramStore SqliteProgramStore",
            "._program_tools": "tools_in",
            "._result": "ExecutionResult",
            "._saved_program": "SavedProgram",
            "._session": "ProgramSession",
            "._toolkit": "Toolkit",
            "toolcrib.sandbox": "Sandbox SandboxLimits",
        },
    )

__all__ = [
    "PROGRAM_TABLES",
    "CallEnded",
    "CallStarted",
    "CallSuspended",
    "CallValue",
    "EarlyCall",
    "EarlyToolkit",
    "ExecutionResult",
    "FileJournal",
    "Finding",
    "Journal",
    "JournalEntry",
    "MemoryProgramStore",
    "PausedProgram",
    "PostgresProgramStore",
    "Printed",
    "ProgramDone",
    "ProgramEvent",
    "ProgramFailed",
    "ProgramLibrary",
    "ProgramPaused",
    "ProgramPolicy",
    "ProgramSession",
    "ProgramSessionState",
    "ProgramStore",
    "Sandbox",
    "SandboxLimits",
    "SavedProgram",
    "SqlJournal",
    "SqliteProgramStore",
    "StoredJournal",
    "SuspendedProgramCall",
    "Toolkit",
    "extract_code",
    "paused_program_in",
    "tools_in",
]
