"""State of a server: principals and their runs, pending requests, suspended calls, single flight; and `serving.http`.

Servers of every protocol need these; a protocol is an adapter's. Only `serving.http` needs an extra.
"""

from toolcrib.serving._entries import run_reporting, shown_entries
from toolcrib.serving._original_results import OriginalResults
from toolcrib.serving._pending_limit import ListsRequests, PendingApprovals, check_countable
from toolcrib.serving._principals import Principal, Principals, acting_as, local_user
from toolcrib.serving._single_flight import Flight, SingleFlight
from toolcrib.serving._suspended_calls import (
    SUSPENDED_CALL_TABLES,
    MemorySuspendedCalls,
    SqliteSuspendedCalls,
    SqlSuspendedCalls,
    suspended_calls_beside,
)

__all__ = [
    "SUSPENDED_CALL_TABLES",
    "Flight",
    "ListsRequests",
    "MemorySuspendedCalls",
    "OriginalResults",
    "PendingApprovals",
    "Principal",
    "Principals",
    "SingleFlight",
    "SqlSuspendedCalls",
    "SqliteSuspendedCalls",
    "acting_as",
    "check_countable",
    "local_user",
    "run_reporting",
    "shown_entries",
    "suspended_calls_beside",
]
