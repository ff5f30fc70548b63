"""The counter: Pipeline, the only code that runs a tool for a model, with its run and its record.

Every door calls it; a gate, a retry or a hook anywhere else would be a second counter.
"""

from toolcrib.invoke._approve import shown_values
from toolcrib.invoke._batch_sink import BatchSink
from toolcrib.invoke._event_log import Activity, ActivityFilter, EventLog, KeptEvent
from toolcrib.invoke._event_tables import EVENT_TABLES, write_events
from toolcrib.invoke._pipeline import Pipeline
from toolcrib.invoke._plan import Executor, Performed, Prepared, RunnableTool
from toolcrib.invoke._runs import RunTrace, Stepped, current_run, follow_run
from toolcrib.invoke._scope import CallLimits, Requirement, RunScope, must_call
from toolcrib.invoke._sinks import Followed, JsonLinesSink, ListSink, LogSink, RunSink, Sink, TracingSink, wants_runs
from toolcrib.invoke._sqlite_sink import SqliteSink, sqlite_events
from toolcrib.invoke._sync import run_sync

__all__ = [
    "EVENT_TABLES",
    "Activity",
    "ActivityFilter",
    "BatchSink",
    "CallLimits",
    "EventLog",
    "Executor",
    "Followed",
    "JsonLinesSink",
    "KeptEvent",
    "ListSink",
    "LogSink",
    "Performed",
    "Pipeline",
    "Prepared",
    "Requirement",
    "RunScope",
    "RunSink",
    "RunTrace",
    "RunnableTool",
    "Sink",
    "SqliteSink",
    "Stepped",
    "TracingSink",
    "current_run",
    "follow_run",
    "must_call",
    "run_sync",
    "shown_values",
    "sqlite_events",
    "wants_runs",
    "write_events",
]
