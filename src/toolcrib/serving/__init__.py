"""State of a server: principals, runs, approval requests, calls that outlive their request, and `serving.http`.

Servers of every protocol need these; a protocol is an adapter's. Only `serving.http` needs an extra.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib._lazy_names import lazy_names

if TYPE_CHECKING:
    from toolcrib.serving._decisions import answer_of, is_as_seen
    from toolcrib.serving._entries import run_reporting, shown_entries
    from toolcrib.serving._framework_media import media_at
    from toolcrib.serving._framework_members import AgentTools, FrameworkMember
    from toolcrib.serving._framework_tools import Answer, FrameworkRuns, FrameworkTools, OpenFrameworkRun
    from toolcrib.serving._framework_usage import CountedRequest, record_usage
    from toolcrib.serving._front_end import Exchange, FrontEndLimits, FrontEndSessions, OpenSession
    from toolcrib.serving._front_end_events import (
        ApprovalAsked,
        CallEnded,
        CallShown,
        ExchangeEnded,
        FrontEndAnswer,
        FrontEndEvent,
        FrontEndRequest,
        ReplyBegan,
        ReplyText,
    )
    from toolcrib.serving._guard_policy import GuardPolicy
    from toolcrib.serving._open_calls import ClientQuestion, OpenCall, OpenCalls, OpenCallState, OpenLimit
    from toolcrib.serving._original_results import OriginalResults
    from toolcrib.serving._pending_limit import ListsRequests, PendingApprovals, check_countable
    from toolcrib.serving._principals import Principal, Principals, acting_as
    from toolcrib.serving._server_states import SERVER_STATE_TABLES, ServerStates
    from toolcrib.serving._single_flight import Flight, SingleFlight
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "._decisions": "answer_of is_as_seen",
            "._entries": "run_reporting shown_entries",
            "._framework_media": "media_at",
            "._framework_members": "AgentTools FrameworkMember",
            "._framework_tools": "Answer FrameworkRuns FrameworkTools OpenFrameworkRun",
            "._framework_usage": "CountedRequest record_usage",
            "._front_end": "Exchange FrontEndLimits FrontEndSessions OpenSession",
            "._front_end_events": (
                "ApprovalAsked CallEnded CallShown ExchangeEnded FrontEndAnswer FrontEndEvent FrontEndRequest "
                "ReplyBegan ReplyText"
            ),
            "._guard_policy": "GuardPolicy",
            "._open_calls": "ClientQuestion OpenCall OpenCallState OpenCalls OpenLimit",
            "._original_results": "OriginalResults",
            "._pending_limit": "ListsRequests PendingApprovals check_countable",
            "._principals": "Principal Principals acting_as",
            "._server_states": "SERVER_STATE_TABLES ServerStates",
            "._single_flight": "Flight SingleFlight",
        },
    )

__all__ = [
    "SERVER_STATE_TABLES",
    "AgentTools",
    "Answer",
    "ApprovalAsked",
    "CallEnded",
    "CallShown",
    "ClientQuestion",
    "CountedRequest",
    "Exchange",
    "ExchangeEnded",
    "Flight",
    "FrameworkMember",
    "FrameworkRuns",
    "FrameworkTools",
    "FrontEndAnswer",
    "FrontEndEvent",
    "FrontEndLimits",
    "FrontEndRequest",
    "FrontEndSessions",
    "GuardPolicy",
    "ListsRequests",
    "OpenCall",
    "OpenCallState",
    "OpenCalls",
    "OpenFrameworkRun",
    "OpenLimit",
    "OpenSession",
    "OriginalResults",
    "PendingApprovals",
    "Principal",
    "Principals",
    "ReplyBegan",
    "ReplyText",
    "ServerStates",
    "SingleFlight",
    "acting_as",
    "answer_of",
    "check_countable",
    "is_as_seen",
    "media_at",
    "record_usage",
    "run_reporting",
    "shown_entries",
]
