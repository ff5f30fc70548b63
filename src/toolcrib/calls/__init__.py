"""The values that cross the pipeline: a call, the decisions on it, its outcome with media, and what is recorded of it.

All of them are frozen, pickle, and turn to and from JSON with `to_dict` and `from_dict`. Nothing here runs anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib._lazy_names import lazy_names

if TYPE_CHECKING:
    from toolcrib._cut import cut
    from toolcrib.calls._access import Access
    from toolcrib.calls._activity_event import ActivityEvent, ActivityEventKind, ActivityKind
    from toolcrib.calls._approval import CHANGED_ON_SERVER, ApprovalRequest, Consent
    from toolcrib.calls._bound_parts import EACH, parts_of
    from toolcrib.calls._bounds import Bound, GrantUse, amount_of, fits_amounts, number_of
    from toolcrib.calls._call import (
        CallMetadata,
        RawArguments,
        ToolCall,
        calling_line,
        charge_time,
        charged,
        fault_text,
        new_call_id,
    )
    from toolcrib.calls._call_event import CallEvent, CallRecord, DecisionNote, EventKind
    from toolcrib.calls._copies import copied
    from toolcrib.calls._decision import Ask, Complete, Decision, Reject, RunNormally
    from toolcrib.calls._diff import differences
    from toolcrib.calls._doubt import DOUBT_ANSWERS, IN_DOUBT, doubt_reason
    from toolcrib.calls._grant import Denial, Done, Grant, GrantScope
    from toolcrib.calls._hiding import NOTHING_HIDDEN, Hiding
    from toolcrib.calls._identity import ANYBODY, APPROVER_RULES, Delegation, Identity, RequiredApprovers
    from toolcrib.calls._json import equal_json, json_text, jsonable, lenient, lenient_later, now, shapes_and_text
    from toolcrib.calls._kept import MODEL, Blocks, KeptResult, ResultReader
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
        hidden_outcome,
        outcome_from_dict,
        record_of,
        render,
    )
    from toolcrib.calls._render import Rendered, carried, has_blocks, render_value, result_words
    from toolcrib.calls._stored import FORM_VERSIONS, StoredFields, versioned
    from toolcrib.calls._times_of_day import TimesOfDay
    from toolcrib.calls._value_class import rendered, value_class
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "._access": "Access",
            "._activity_event": "ActivityEvent ActivityEventKind ActivityKind",
            "._bound_parts": "EACH parts_of",
            "._bounds": "Bound GrantUse amount_of fits_amounts number_of",
            "._approval": "CHANGED_ON_SERVER ApprovalRequest Consent",
            "._call": "CallMetadata RawArguments ToolCall calling_line charge_time charged fault_text new_call_id",
            "._call_event": "CallEvent CallRecord DecisionNote EventKind",
            "._copies": "copied",
            "._decision": "Ask Complete Decision Reject RunNormally",
            "._diff": "differences",
            "._doubt": "DOUBT_ANSWERS IN_DOUBT doubt_reason",
            "._grant": "Denial Done Grant GrantScope",
            "._hiding": "NOTHING_HIDDEN Hiding",
            "._identity": "ANYBODY APPROVER_RULES Delegation Identity RequiredApprovers",
            "toolcrib._cut": "cut",
            "._json": "equal_json json_text jsonable lenient lenient_later now shapes_and_text",
            "._kept": "MODEL Blocks KeptResult ResultReader",
            "._media": "Media revived",
            "._outcome": (
                "REJECTION_PREFIX Completed Failed Outcome Rejected SupportsToDict Suspended Yielded error_of "
                "hidden_outcome outcome_from_dict record_of render"
            ),
            "._render": "Rendered carried has_blocks render_value result_words",
            "._stored": "FORM_VERSIONS StoredFields versioned",
            "._times_of_day": "TimesOfDay",
            "._value_class": "rendered value_class",
        },
    )

__all__ = [
    "ANYBODY",
    "APPROVER_RULES",
    "CHANGED_ON_SERVER",
    "DOUBT_ANSWERS",
    "EACH",
    "FORM_VERSIONS",
    "IN_DOUBT",
    "MODEL",
    "NOTHING_HIDDEN",
    "REJECTION_PREFIX",
    "Access",
    "ActivityEvent",
    "ActivityEventKind",
    "ActivityKind",
    "ApprovalRequest",
    "Ask",
    "Blocks",
    "Bound",
    "CallEvent",
    "CallMetadata",
    "CallRecord",
    "Complete",
    "Completed",
    "Consent",
    "Decision",
    "DecisionNote",
    "Delegation",
    "Denial",
    "Done",
    "EventKind",
    "Failed",
    "Grant",
    "GrantScope",
    "GrantUse",
    "Hiding",
    "Identity",
    "KeptResult",
    "Media",
    "Outcome",
    "RawArguments",
    "Reject",
    "Rejected",
    "Rendered",
    "RequiredApprovers",
    "ResultReader",
    "RunNormally",
    "StoredFields",
    "SupportsToDict",
    "Suspended",
    "TimesOfDay",
    "ToolCall",
    "Yielded",
    "amount_of",
    "calling_line",
    "carried",
    "charge_time",
    "charged",
    "copied",
    "cut",
    "differences",
    "doubt_reason",
    "equal_json",
    "error_of",
    "fault_text",
    "fits_amounts",
    "has_blocks",
    "hidden_outcome",
    "json_text",
    "jsonable",
    "lenient",
    "lenient_later",
    "new_call_id",
    "now",
    "number_of",
    "outcome_from_dict",
    "parts_of",
    "record_of",
    "render",
    "render_value",
    "rendered",
    "result_words",
    "revived",
    "shapes_and_text",
    "value_class",
    "versioned",
]
