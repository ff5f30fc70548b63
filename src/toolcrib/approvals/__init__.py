"""Approval: policies that say which calls need a person, the rules of grants, and the stores of requests and answers.

Requests and grants themselves are values in `calls`, and the pipeline makes requests. Nothing here runs a tool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib._lazy_names import lazy_names

if TYPE_CHECKING:
    from toolcrib.approvals._answer_problems import answer_problems
    from toolcrib.approvals._answers import (
        answered_fields,
        field_choices,
        field_value,
        require_fit,
        typed_bounds,
    )
    from toolcrib.approvals._entry import ApprovalEntry, answer_row, grant_row
    from toolcrib.approvals._executions import Execution, ExecutionState
    from toolcrib.approvals._fit import (
        counts_before,
        is_answer_to,
        is_outdated,
        meant_by,
        misfit,
        require_agreement,
        require_own_answer,
    )
    from toolcrib.approvals._grant_form import GrantForm
    from toolcrib.approvals._ledger_store import LedgerStore
    from toolcrib.approvals._memory_store import MemoryApprovalStore
    from toolcrib.approvals._notices import KeepsNotices, Notice, NoticeKind
    from toolcrib.approvals._pins import PinEntry, PinKind, ToolPins
    from toolcrib.approvals._policy import (
        AgentContext,
        ApprovalPolicy,
        Approver,
        answer_of,
        approve_all,
        deny_all,
        joined_answers,
        require_answer,
        require_approver,
        require_request,
        stored_approver,
    )
    from toolcrib.approvals._postgres import PostgresApprovalStore
    from toolcrib.approvals._required import approvers_problem, can_be_met
    from toolcrib.approvals._saved_sessions import SavedSession
    from toolcrib.approvals._sql_store import SqlApprovalStore, SqliteApprovalStore
    from toolcrib.approvals._store import (
        ApprovalStore,
        ClaimsWork,
        KeepsDigestKey,
        KeepsJournals,
        KeepsSessions,
        ReviewableApprovalStore,
        WaitableApprovalStore,
        WrappedApprovalStore,
        find_entry,
        pending_requests,
    )
    from toolcrib.approvals._suspended_calls import (
        KeepsSuspendedCalls,
        MemorySuspendedCalls,
        SuspendedCall,
        SuspendedCallStore,
        suspended_calls_beside,
    )
    from toolcrib.approvals._tables import POSTGRES_APPROVAL_TABLES, SQLITE_APPROVAL_TABLES, TABLES_BESIDE
    from toolcrib.approvals._used_answers import used_answers
    from toolcrib.schema import digest
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "._used_answers": "used_answers",
            "._answer_problems": "answer_problems",
            "._answers": "answered_fields field_choices field_value require_fit typed_bounds",
            "._entry": "ApprovalEntry answer_row grant_row",
            "._executions": "Execution ExecutionState",
            "._fit": "counts_before is_answer_to is_outdated meant_by misfit require_agreement require_own_answer",
            "._grant_form": "GrantForm",
            "._ledger_store": "LedgerStore",
            "._memory_store": "MemoryApprovalStore",
            "._notices": "KeepsNotices Notice NoticeKind",
            "._pins": "PinEntry PinKind ToolPins",
            "._policy": (
                "AgentContext ApprovalPolicy Approver answer_of approve_all deny_all joined_answers require_answer "
                "require_approver require_request stored_approver"
            ),
            "._required": "approvers_problem can_be_met",
            "._saved_sessions": "SavedSession",
            "._postgres": "PostgresApprovalStore",
            "._sql_store": "SqlApprovalStore SqliteApprovalStore",
            "._store": (
                "ApprovalStore ClaimsWork KeepsDigestKey KeepsJournals KeepsSessions ReviewableApprovalStore "
                "WaitableApprovalStore WrappedApprovalStore find_entry pending_requests"
            ),
            "._suspended_calls": (
                "KeepsSuspendedCalls MemorySuspendedCalls SuspendedCall SuspendedCallStore suspended_calls_beside"
            ),
            "._tables": "POSTGRES_APPROVAL_TABLES SQLITE_APPROVAL_TABLES TABLES_BESIDE",
            "toolcrib.schema": "digest",
        },
    )

__all__ = [
    "POSTGRES_APPROVAL_TABLES",
    "SQLITE_APPROVAL_TABLES",
    "TABLES_BESIDE",
    "AgentContext",
    "ApprovalEntry",
    "ApprovalPolicy",
    "ApprovalStore",
    "Approver",
    "ClaimsWork",
    "Execution",
    "ExecutionState",
    "GrantForm",
    "KeepsDigestKey",
    "KeepsJournals",
    "KeepsNotices",
    "KeepsSessions",
    "KeepsSuspendedCalls",
    "LedgerStore",
    "MemoryApprovalStore",
    "MemorySuspendedCalls",
    "Notice",
    "NoticeKind",
    "PinEntry",
    "PinKind",
    "PostgresApprovalStore",
    "ReviewableApprovalStore",
    "SavedSession",
    "SqlApprovalStore",
    "SqliteApprovalStore",
    "SuspendedCall",
    "SuspendedCallStore",
    "ToolPins",
    "WaitableApprovalStore",
    "WrappedApprovalStore",
    "answer_of",
    "answer_problems",
    "answer_row",
    "answered_fields",
    "approve_all",
    "approvers_problem",
    "can_be_met",
    "counts_before",
    "deny_all",
    "digest",
    "field_choices",
    "field_value",
    "find_entry",
    "grant_row",
    "is_answer_to",
    "is_outdated",
    "joined_answers",
    "meant_by",
    "misfit",
    "pending_requests",
    "require_agreement",
    "require_answer",
    "require_approver",
    "require_fit",
    "require_own_answer",
    "require_request",
    "stored_approver",
    "suspended_calls_beside",
    "typed_bounds",
    "used_answers",
]
