"""Entries of a store: a request with its answer; and the rows in which commands and the console show them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal

from toolcrib._numbers import count_text, span_text
from toolcrib._short_repr import ShortRepr
from toolcrib.approvals._executions import Execution, ExecutionState
from toolcrib.approvals._required import people_of_group
from toolcrib.calls import ApprovalRequest, Denial, Grant, GrantUse, now

_ERROR_CHARS = 500  # of the error of an equal call


@dataclass(frozen=True, slots=True, repr=False)
class ApprovalEntry(ShortRepr):
    """A request, its answer, whether a call has used that, and what is known of the execution of that call.

    Attributes:
        answer: The grant or denial; None without one.
        used_at: When a call used the answer: when it began by a grant, or was ended by a denial. From then on the
            request is closed.
        execution: The execution of the call by a grant; None while none has begun.
    """

    request: ApprovalRequest
    answer: Grant | Denial | None = None
    used_at: datetime | None = None
    execution: Execution | None = None

    @property
    def state(self) -> Literal["pending", "answered", "used"]:
        """The state of the request; a grant that expired before a call used it leaves it pending."""
        if self.used_at is not None:
            return "used"
        is_over = isinstance(self.answer, Grant) and bool(self.answer.time_problem(now()))
        return "pending" if self.answer is None or is_over else "answered"

    @property
    def expired(self) -> Denial | None:
        """The answer to the request when it expires: a denial by its rule; None where it does not expire."""
        at, rule = self.request.expires_at, self.request.expires_by
        if at is None or rule is None:
            return None
        within = f"it was not approved within {span_text(rule.expires_after or 0)}"
        message = f"{within}, which the rule {rule.rule} sets, and has not run"
        return replace(self.request.deny(message=message, by=f"{rule.rule} (rule)"), at=at)

    @property
    def has_expired(self) -> bool:
        """True if the request has expired, and is denied by its rule."""
        return self.answer is not None and self.answer == self.expired

    @property
    def closes_at(self) -> datetime | None:
        """The time at which the request expires as it stands; None where it does not, as by an answer."""
        at, answer = self.request.expires_at, self.answer
        if at is None or self.used_at is not None:
            return None
        until = answer.expires_at if isinstance(answer, Grant) else None
        return at if answer is None else None if until is None else max(at, until)

    @property
    def execution_state(self) -> ExecutionState | None:
        """The state of the execution; None where none has begun."""
        return None if self.execution is None else self.execution.state

    @property
    def is_awaited(self) -> bool:
        """True if it has no answer, or its call is executed now: `wait` of a store waits for both."""
        return self.state == "pending" or self.execution_state == "running"

    @property
    def status(self) -> str:
        """The state in words for a person: pending, in doubt, expired, denied, done, approved, used."""
        if self.state == "pending":
            return "expired" if self.answer is not None else "in doubt" if self.request.in_doubt else "pending"
        if isinstance(self.answer, Denial):
            return "expired" if self.has_expired else "denied"
        if self.state == "used":
            return "used"
        return "done" if self.answer is not None and self.answer.done is not None else "approved"

    def equal_call_text(self) -> str:
        """Return the state of its call in words, for a question about an equal one."""
        execution, state = self.execution, self.execution_state
        is_edited = isinstance(self.answer, Grant) and self.answer.override_args is not None
        edited = ", with the arguments that its approver gave in the place of these," if is_edited else ""
        call = f"an equal call (request {self.request.id}){edited}"
        if execution is None or state == "in doubt":
            return f"{call} was begun and is not known to have ended: it may have been done already"
        if execution.ended_at is None:
            return f"{call} is executed now, since {execution.begun_at.isoformat(timespec='seconds')}"
        error, at = (execution.result or {}).get("error"), execution.ended_at.isoformat(timespec="seconds")
        if error is None:
            return f"{call} was executed already, and ended at {at}"
        return (
            f'{call} was begun, and failed at {at}: "{error["message"][:_ERROR_CHARS]}"; it may have been done in part'
        )

    def answerers(self, at: datetime | None = None) -> list[dict[str, Any]]:
        """Return who may approve the request by its rules at a time, now when None, and who from when on.

        A row for each group of each rule, as JSON shapes: `rule`, `group`, `people` as far as they are listed, `from`,
        and `now`, whether that has come. A group that no longer may is left out.
        """
        asked_at, at = self.request.created_at, at or now()
        rows = [
            (rule, group, asked_at + timedelta(seconds=after))
            for rule in self.request.required
            for escalated in [rule.escalated_to(asked_at, at)]
            for after, group in (*((0.0, group) for group in rule.of), *rule.escalation)
            if not (rule.instead and escalated) or group in escalated or asked_at + timedelta(seconds=after) > at
        ]
        return [
            {
                "rule": rule.rule,
                "group": group,
                "people": people_of_group(rule, group, max(since, at)),
                "from": since.isoformat(),
                "now": since <= at,
            }
            for rule, group, since in rows
        ]

    def row(self) -> dict[str, Any]:
        """Return the request as a row of a list, as JSON shapes: what is asked, by whom and since when."""
        request = self.request
        return {
            "id": request.id,
            "call_id": request.call_id,
            "run_id": request.run_id,
            "tool": request.tool,
            "title": request.title,
            "principal": request.principal,
            "agent": request.agent,
            "conversation_id": request.conversation_id,
            "reason": request.reason,
            "created_at": request.created_at.isoformat(),
            "expires_at": None if request.expires_at is None else request.expires_at.isoformat(),
            "in_doubt": request.in_doubt,
            "asked_by": request.asked_by,
            "status": self.status,
        }


def answer_row(answer: Grant | Denial) -> dict[str, Any]:
    """Return an answer as JSON shapes: its kind (`approved`, `done`, `denied`), by whom, and what it covers."""
    row = {"by": answer.by, "at": answer.at.isoformat(), "message": answer.message}
    if isinstance(answer, Denial):
        return {"kind": "denied", **row}
    return {
        "kind": "approved" if answer.done is None else "done",
        **row,
        "by": ", ".join((*answer.also, answer.by)),
        "edited": answer.override_args is not None,
        "scope": answer.scope,
        "covers": answer.text() if answer.standing or answer.is_limited else "",
    }


def grant_row(grant: Grant, use: GrantUse | None = None) -> dict[str, Any]:
    """Return a standing grant as JSON shapes: what it covers in words, and what was used of it.

    Args:
        grant: The grant.
        use: Its use; None to leave that out.
    """
    view = {**grant.to_dict(), "by": grant.by}
    names = ("tool", "by", "scope", "at", "expires_at", "principal", "message", "digest", "request_id")
    row = {**{name: view[name] for name in names}, "text": grant.text()}
    if use is None:
        return row
    limits = [] if grant.uses is None else [f"{use.calls} of {count_text(grant.uses, 'call')}"]
    limits += [] if grant.total is None else [f"{use.spent} of {grant.total[1]}"]
    return {**row, "used": use.to_dict(), "used_text": ", ".join(limits) or count_text(use.calls, "time")}
