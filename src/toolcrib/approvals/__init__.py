"""Approval: when it is needed, what a grant is bound to, where requests and answers are kept.

The requests and grants themselves are values in `calls`; asking for one is step 5 of `invoke`. Nothing here runs a
tool.
"""

from toolcrib.approvals._digest import digest
from toolcrib.approvals._elsewhere import WaitingStore, answered_in
from toolcrib.approvals._ledger import EVERYBODY, ApprovalEntry, misfit
from toolcrib.approvals._policy import AgentContext, ApprovalPolicy, Approver, allow, deny
from toolcrib.approvals._sqlite import SqliteApprovalStore
from toolcrib.approvals._store import ApprovalStore, MemoryApprovalStore
from toolcrib.approvals._waiting import KeepsWaitingCalls, WaitingCall, WaitingCalls

__all__ = [
    "EVERYBODY",
    "AgentContext",
    "ApprovalEntry",
    "ApprovalPolicy",
    "ApprovalStore",
    "Approver",
    "KeepsWaitingCalls",
    "MemoryApprovalStore",
    "SqliteApprovalStore",
    "WaitingCall",
    "WaitingCalls",
    "WaitingStore",
    "allow",
    "answered_in",
    "deny",
    "digest",
    "misfit",
]
