"""Errors about asking a person first."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from toolcrib._numbers import count_text
from toolcrib.errors._base import MessageError, ToolcribError


class ApprovalRequired(ToolcribError):
    """A tool raises this, before it has done anything, to have a person asked; `metadata` is shown to them.

    A turn raises it for a call that was suspended. Where such a turn runs inside a tool that lets the error pass, the
    tool has failed: to suspend it, too, would have it do once more what it has done.

    Attributes:
        tool: The tool of the call that is suspended; empty where a tool asks about its own call.
    """

    code = "approval_required"

    def __init__(self, metadata: dict[str, Any] | None = None, tool: str = "") -> None:
        super().__init__(metadata, tool)
        self.metadata = metadata or {}
        self.tool = tool

    def __str__(self) -> str:
        return f"`{self.tool}` needs approval, and has not run" if self.tool else "this call needs approval"


class ApprovalError(MessageError, ValueError):
    """An answer to an approval request does not fit: unknown, stale, expired or used before."""

    code = "approval_error"
    tool: str
    problem: str

    def __str__(self) -> str:
        whose = f" for `{self.tool}`" if self.tool else ""
        return f"the approval{whose} cannot be used: {self.problem}"


class PendingLimitReached(ApprovalError):
    """A call is not asked about, as too many requests on behalf of its principal wait for an answer already."""

    code = "pending_limit_reached"

    def __init__(self, tool: str, principal: str, limit: int, counts_for: timedelta) -> None:
        super().__init__(tool, f"{principal} has {count_text(limit, 'request')} without an answer")
        self.args = (tool, principal, limit, counts_for)
        self.principal, self.limit, self.counts_for = principal, limit, counts_for

    def __str__(self) -> str:
        return (
            f"`{self.tool}` needs approval and was not run, and no approver is asked: {self.problem} already, which is "
            "the most that may at a time (max_pending). Have some answered (`toolcrib approvals list` shows them), or "
            f"wait until they expire: each counts for {self.counts_for}"
        )


class ApprovalDenied(MessageError, PermissionError):
    """A call was refused, by a person or a rule; raised where refusal has to be an exception."""

    code = "approval_denied"
    tool: str
    reason: str
    _template = "`{tool}` was not allowed: {reason}"


class PolicyError(MessageError, ValueError):
    """A policy's file cannot be used; the message names the rule and the field."""

    code = "bad_policy"
    file: str
    problems: tuple[str, ...]

    def __str__(self) -> str:
        return f"the policy {self.file} cannot be used: {'; '.join(self.problems)}"
