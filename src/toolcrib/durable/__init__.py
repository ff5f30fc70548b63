"""Durable work, whatever engine runs it: the turn that goes on where it was cut off, its store, its answers.

An engine stands behind `WorkHost`. It is an adapter; this room is for adapters alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib._lazy_names import lazy_names

if TYPE_CHECKING:
    from toolcrib.durable._answered import AnswerStore, answered_entries, deny_cancelled, require_answer_store
    from toolcrib.durable._answers import Answers
    from toolcrib.durable._host import WAITING, WAITS_FOR, DurableFailure, TurnContext, WorkHost
    from toolcrib.durable._outage import UnknownHereError, newer_version, outlast, readable
    from toolcrib.durable._retry_policy import RetryPolicy, require_retries
    from toolcrib.durable._turn_execution import (
        PLACEMENT,
        TurnExecution,
        arguments_in_names,
        began,
        current_execution,
    )
    from toolcrib.durable._turn_workflow import TurnWorkflow
    from toolcrib.durable._work_store import WorkStore, held_run
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "._answered": "AnswerStore answered_entries deny_cancelled require_answer_store",
            "._answers": "Answers",
            "._host": "WAITING WAITS_FOR DurableFailure TurnContext WorkHost",
            "._outage": "UnknownHereError newer_version outlast readable",
            "._retry_policy": "RetryPolicy require_retries",
            "._turn_execution": "PLACEMENT TurnExecution arguments_in_names began current_execution",
            "._turn_workflow": "TurnWorkflow",
            "._work_store": "WorkStore held_run",
        },
    )

__all__ = [
    "PLACEMENT",
    "WAITING",
    "WAITS_FOR",
    "AnswerStore",
    "Answers",
    "DurableFailure",
    "RetryPolicy",
    "TurnContext",
    "TurnExecution",
    "TurnWorkflow",
    "UnknownHereError",
    "WorkHost",
    "WorkStore",
    "answered_entries",
    "arguments_in_names",
    "began",
    "current_execution",
    "deny_cancelled",
    "held_run",
    "newer_version",
    "outlast",
    "readable",
    "require_answer_store",
    "require_retries",
]
