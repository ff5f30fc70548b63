"""Where requests wait and answers are found: each answer once, each standing grant as long as it holds."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Protocol

from toolcrib.calls import ApprovalRequest, Denial, Grant, now
from toolcrib.errors import ApprovalError

__all__ = ["ApprovalStore", "MemoryApprovalStore", "misfit"]


class ApprovalStore(Protocol):
    """Keeps what was asked and what was answered; the pipeline asks it before it asks a person."""

    async def put(self, request: ApprovalRequest) -> None:
        """Keep a request until it is answered."""
        ...

    async def answer(self, answer: Grant | Denial) -> None:
        """Take a grant or a denial; raises `ApprovalError` when it answers nothing that is asked."""
        ...

    async def take(self, request: ApprovalRequest) -> Grant | Denial | None:
        """Return what answers this request and use it up; a standing grant stays."""
        ...


def misfit(grant: Grant, request: ApprovalRequest, at: datetime | None = None) -> str:
    """Return why a grant does not fit a request, in words for a person; empty when it fits."""
    if grant.tool != request.tool:
        return f"it was given for `{grant.tool}`"
    if grant.expires_at is not None and grant.expires_at <= (at or now()):
        return f"it expired at {grant.expires_at.isoformat(timespec='seconds')}; ask again"
    if grant.scope == "once" and grant.call_id != request.call_id:
        return f"it was given for the call {grant.call_id}, and this is the call {request.call_id}"
    if grant.scope != "tool" and grant.override_args is None and grant.digest != request.digest:
        shown = ", ".join(f"{name}={value!r}" for name, value in request.arguments.items())
        return f"the arguments changed after it was given; they are now {shown or 'none'}. Ask again"
    return ""


class MemoryApprovalStore:
    """An approval store in memory, for one process."""

    def __init__(self, grants: Iterable[Grant] = ()) -> None:
        self._requests: dict[str, ApprovalRequest] = {}
        self._answers: dict[str, Grant | Denial] = {}
        self._answered: set[str] = set()
        self._standing: list[Grant] = list(grants)

    @property
    def pending(self) -> list[ApprovalRequest]:
        """The requests that nobody has answered, oldest first."""
        return [r for r in self._requests.values() if r.id not in self._answered]

    async def put(self, request: ApprovalRequest) -> None:
        """Keep a request until it is answered."""
        self._requests.setdefault(request.id, request)

    async def answer(self, answer: Grant | Denial) -> None:
        """Take a grant or a denial.

        Raises:
            ApprovalError: The request is unknown or answered already, or the grant does not fit it.
        """
        standing = isinstance(answer, Grant) and answer.scope != "once"
        if answer.request_id is None:
            if isinstance(answer, Grant) and standing:
                self._standing.append(answer)
                return
            raise ApprovalError(answer.tool, "it names no request; make it with `request.grant()` or `request.deny()`")
        request = self._requests.get(answer.request_id)
        if request is None:
            raise ApprovalError(answer.tool, f"there is no request {answer.request_id}")
        if request.id in self._answered:
            raise ApprovalError(answer.tool, f"the request {request.id} was answered before")
        if isinstance(answer, Grant) and (why := misfit(answer, request)):
            raise ApprovalError(answer.tool, why)
        self._answered.add(request.id)
        self._answers[request.call_id] = answer
        if isinstance(answer, Grant) and standing:
            self._standing.append(answer)

    async def take(self, request: ApprovalRequest) -> Grant | Denial | None:
        """Return what answers this request and use it up; a standing grant stays."""
        answer = self._answers.get(request.call_id)
        if answer is not None and (isinstance(answer, Denial) or not misfit(answer, request)):
            return self._answers.pop(request.call_id)
        return next((g for g in self._standing if not misfit(g, request)), None)
