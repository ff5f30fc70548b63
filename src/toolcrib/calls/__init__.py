"""The values that cross the pipeline: a call, the decisions on it, its outcome with media, and what is recorded of it.

All of them are frozen, pickle, and turn to and from JSON with `to_dict` and `from_dict`. Nothing here runs anything.
"""

from toolcrib.calls._activity_event import ActivityEvent, ActivityEventKind, ActivityKind
from toolcrib.calls._approval import ApprovalRequest, Denial, Done, Grant
from toolcrib.calls._call import (
    CallMetadata,
    RawArguments,
    ToolCall,
    calling_line,
    charge_time,
    charged,
    new_call_id,
)
from toolcrib.calls._call_event import CallEvent, CallRecord, EventKind
from toolcrib.calls._copied import copied
from toolcrib.calls._decision import Ask, Complete, Decision, DecisionNote, Reject, RunNormally
from toolcrib.calls._json import cut, jsonable, lenient, now
from toolcrib.calls._media import Media, revived
from toolcrib.calls._outcome import (
    REJECTION_PREFIX,
    Completed,
    Failed,
    Outcome,
    Rejected,
    SupportsToDict,
    Suspended,
    Yielded,
    error_of,
    outcome_from_dict,
    record_of,
    render,
)
from toolcrib.calls._render import Blocks, Rendered, carried, render_value
from toolcrib.calls._stored import StoredFields
from toolcrib.calls._value_class import value_class

__all__ = [
    "REJECTION_PREFIX",
    "ActivityEvent",
    "ActivityEventKind",
    "ActivityKind",
    "ApprovalRequest",
    "Ask",
    "Blocks",
    "CallEvent",
    "CallMetadata",
    "CallRecord",
    "Complete",
    "Completed",
    "Decision",
    "DecisionNote",
    "Denial",
    "Done",
    "EventKind",
    "Failed",
    "Grant",
    "Media",
    "Outcome",
    "RawArguments",
    "Reject",
    "Rejected",
    "Rendered",
    "RunNormally",
    "StoredFields",
    "SupportsToDict",
    "Suspended",
    "ToolCall",
    "Yielded",
    "calling_line",
    "carried",
    "charge_time",
    "charged",
    "copied",
    "cut",
    "error_of",
    "jsonable",
    "lenient",
    "new_call_id",
    "now",
    "outcome_from_dict",
    "record_of",
    "render",
    "render_value",
    "revived",
    "value_class",
]
