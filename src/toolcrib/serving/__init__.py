"""State of a server: principals, runs, approval requests, calls that outlive their request, and `serving.http`.

Servers of every protocol need these; a protocol is an adapter's. The base of the adapters of other frameworks is
`serving.frameworks`. Only `serving.http` needs an extra.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib._lazy_names import lazy_names

if TYPE_CHECKING:
    from toolcrib.serving._entries import OriginalResults, run_reporting, shown_entries
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
    from toolcrib.serving._guard_policy import GuardPolicy, require_plain_function, require_theirs, takes_policy
    from toolcrib.serving._open_calls import (
        ClientQuestion,
        Flight,
        OpenCall,
        OpenCalls,
        OpenCallState,
        OpenLimit,
        SingleFlight,
    )
    from toolcrib.serving._principals import (
        ListsRequests,
        PendingApprovals,
        Principal,
        Principals,
        acting_as,
        check_countable,
        claimed_groups,
    )
    from toolcrib.serving._server_states import ServerStates
    from toolcrib.serving._store_tables import store_tables
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "._entries": "OriginalResults run_reporting shown_entries",
            "._front_end": "Exchange FrontEndLimits FrontEndSessions OpenSession",
            "._front_end_events": (
                "ApprovalAsked CallEnded CallShown ExchangeEnded FrontEndAnswer FrontEndEvent FrontEndRequest "
                "ReplyBegan ReplyText"
            ),
            "._guard_policy": "GuardPolicy require_plain_function require_theirs takes_policy",
            "._open_calls": "ClientQuestion Flight OpenCall OpenCallState OpenCalls OpenLimit SingleFlight",
            "._principals": (
                "ListsRequests PendingApprovals Principal Principals acting_as check_countable claimed_groups"
            ),
            "._server_states": "ServerStates",
            "._store_tables": "store_tables",
        },
    )

__all__ = [
    "ApprovalAsked",
    "CallEnded",
    "CallShown",
    "ClientQuestion",
    "Exchange",
    "ExchangeEnded",
    "Flight",
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
    "check_countable",
    "claimed_groups",
    "require_plain_function",
    "require_theirs",
    "run_reporting",
    "shown_entries",
    "store_tables",
    "takes_policy",
]
