"""The pipeline: the only code that runs a tool for a model, one file for each step.

Every adapter calls it; a gate, a retry or a hook anywhere else would be a second pipeline.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib._lazy_names import lazy_names

if TYPE_CHECKING:
    from toolcrib._processes import local_user
    from toolcrib.calls import Access
    from toolcrib.pipeline._call import Call, CallState, Executor
    from toolcrib.pipeline._failures import visible_names
    from toolcrib.pipeline._pipeline import Pipeline, Stored, is_call
    from toolcrib.pipeline._run import Run, RunView, current_run, open_run, require_run, run_for
    from toolcrib.pipeline._run_options import (
        CallLimits,
        CallRecorder,
        Channel,
        Durability,
        ErrorPolicy,
        Requirement,
        must_call,
        require_limits,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "toolcrib._processes": "local_user",
            "toolcrib.calls": "Access",
            "._call": "Call CallState Executor",
            "._failures": "visible_names",
            "._pipeline": "Pipeline Stored is_call",
            "._run": "Run RunView current_run open_run require_run run_for",
            "._run_options": (
                "CallLimits CallRecorder Channel Durability ErrorPolicy Requirement must_call require_limits"
            ),
        },
    )

__all__ = [
    "Access",
    "Call",
    "CallLimits",
    "CallRecorder",
    "CallState",
    "Channel",
    "Durability",
    "ErrorPolicy",
    "Executor",
    "Pipeline",
    "Requirement",
    "Run",
    "RunView",
    "Stored",
    "current_run",
    "is_call",
    "local_user",
    "must_call",
    "open_run",
    "require_limits",
    "require_run",
    "run_for",
    "visible_names",
]
