"""The record: call and activity events, the sinks that receive them, and the event log that keeps them.

The pipeline writes events here; this package imports neither the pipeline nor tools.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib._lazy_names import lazy_names

if TYPE_CHECKING:
    from toolcrib.record._activity_filter import ActivityFilter
    from toolcrib.record._activity_trace import (
        ActivityTrace,
        Stepped,
        Within,
        current_activity,
        trace_activity,
    )
    from toolcrib.record._batch_sink import BatchSink, RecordedEvent
    from toolcrib.record._brief_event import brief_event, one_line
    from toolcrib.record._call_trace import Trace
    from toolcrib.record._event_log import QUIET, Ancestors, EventLog, KeptEvent, prune_events
    from toolcrib.record._event_tables import Activity, Rows
    from toolcrib.record._postgres_sink import POSTGRES_EVENT_TABLES, PostgresSink, postgres_events
    from toolcrib.record._recorded_calls import RecordedAttempt, RecordedCall, RecordedCalls, read_calls
    from toolcrib.record._run_log import (
        RunFilter,
        RunSummary,
        TraceNode,
        ids_like,
        list_runs,
        trace_nodes,
    )
    from toolcrib.record._sinks import (
        ActivitySink,
        Followed,
        JsonLinesSink,
        ListSink,
        LogSink,
        RecordedRun,
        SelectingSink,
        Sink,
        TracingSink,
        calls_log,
        merged_sinks,
        require_sinks,
        wants_activities,
    )
    from toolcrib.record._sqlite_sink import SqliteSink, sqlite_event_tables, sqlite_events
    from toolcrib.record._word_index import WordIndex
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "._activity_filter": "ActivityFilter",
            "._activity_trace": "ActivityTrace Stepped Within current_activity trace_activity",
            "._batch_sink": "BatchSink RecordedEvent",
            "._brief_event": "brief_event one_line",
            "._call_trace": "Trace",
            "._event_log": "QUIET Ancestors EventLog KeptEvent prune_events",
            "._event_tables": "Activity Rows",
            "._postgres_sink": "POSTGRES_EVENT_TABLES PostgresSink postgres_events",
            "._recorded_calls": "RecordedAttempt RecordedCall RecordedCalls read_calls",
            "._run_log": "RunFilter RunSummary TraceNode ids_like list_runs trace_nodes",
            "._sinks": (
                "ActivitySink Followed JsonLinesSink ListSink LogSink RecordedRun SelectingSink Sink TracingSink "
                "calls_log merged_sinks require_sinks wants_activities"
            ),
            "._sqlite_sink": "SqliteSink sqlite_event_tables sqlite_events",
            "._word_index": "WordIndex",
        },
    )

__all__ = [
    "POSTGRES_EVENT_TABLES",
    "QUIET",
    "Activity",
    "ActivityFilter",
    "ActivitySink",
    "ActivityTrace",
    "Ancestors",
    "BatchSink",
    "EventLog",
    "Followed",
    "JsonLinesSink",
    "KeptEvent",
    "ListSink",
    "LogSink",
    "PostgresSink",
    "RecordedAttempt",
    "RecordedCall",
    "RecordedCalls",
    "RecordedEvent",
    "RecordedRun",
    "Rows",
    "RunFilter",
    "RunSummary",
    "SelectingSink",
    "Sink",
    "SqliteSink",
    "Stepped",
    "Trace",
    "TraceNode",
    "TracingSink",
    "Within",
    "WordIndex",
    "brief_event",
    "calls_log",
    "current_activity",
    "ids_like",
    "list_runs",
    "merged_sinks",
    "one_line",
    "postgres_events",
    "prune_events",
    "read_calls",
    "require_sinks",
    "sqlite_event_tables",
    "sqlite_events",
    "trace_activity",
    "trace_nodes",
    "wants_activities",
]
