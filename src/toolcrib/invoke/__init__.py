"""The counter: Pipeline, the only code that runs a tool for a model, with its run and its record.

Every door calls it; a gate, a retry or a hook anywhere else would be a second counter.
"""

from toolcrib.invoke._pipeline import Pipeline
from toolcrib.invoke._plan import Executor, Performed, Prepared, RunnableTool
from toolcrib.invoke._scope import CallLimits, Requirement, RunScope, must_call
from toolcrib.invoke._sinks import JsonLinesSink, ListSink, LogSink, Sink
from toolcrib.invoke._sync import run_sync

__all__ = [
    "CallLimits",
    "Executor",
    "JsonLinesSink",
    "ListSink",
    "LogSink",
    "Performed",
    "Pipeline",
    "Prepared",
    "Requirement",
    "RunScope",
    "RunnableTool",
    "Sink",
    "must_call",
    "run_sync",
]
