"""Recorded answers: what people said to a call, for the same final arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcrib.approvals import ApprovalEntry, misfit
from toolcrib.calls import ApprovalRequest, Denial, Grant
from toolcrib.record import RecordedAttempt


class RecordedAnswers:
    """An approval store of one run in a replay: it answers as people did, and keeps no request.

    An answer counts for the final arguments that it was given for. A standing grant counts from the call on to which it
    was given, as far as it reaches.

    Attributes:
        asked: Whether the call that was begun last needed approval.
    """

    def __init__(self) -> None:
        self._attempt = RecordedAttempt()
        self._standing: list[Grant] = []
        self._given: dict[tuple[str, str], RecordedAttempt] = {}
        self.asked = False

    def follow(self, attempt: RecordedAttempt) -> None:
        """Answer from now on as people did when a call came this time."""
        self._attempt, self.asked = attempt, False
        for answer in attempt.answers:
            if answer.get("scope", "once") != "once":
                self._given.setdefault(_name(answer), attempt)

    async def put(self, request: ApprovalRequest) -> None:
        """Keep nothing: a replay asks no person."""

    async def use(self, request: ApprovalRequest, answer: Grant | Denial) -> None:
        """Keep nothing."""

    async def begin(self, request: ApprovalRequest, grant: Grant | None, *, again: bool = False) -> None:
        """Keep nothing."""

    async def end(self, request: ApprovalRequest, grant: Grant | None, result: Mapping[str, Any] | None = None) -> None:
        """Keep nothing."""

    async def break_off(self, request: ApprovalRequest, grant: Grant | None) -> None:
        """Keep nothing."""

    async def undo(self, request: ApprovalRequest) -> None:
        """Keep nothing."""

    async def like(self, request: ApprovalRequest) -> tuple[ApprovalEntry, ...]:
        """Return nothing: a replay keeps no request."""
        return ()

    async def answer(self, answer: Grant | Denial) -> None:
        """Raise TypeError: what was recorded is all that is said."""
        raise TypeError("a replay takes no answers; they are in the record")

    async def take(self, request: ApprovalRequest) -> Grant | Denial | None:
        """Return the recorded answer for the same arguments, or a standing grant from before."""
        self.asked = True
        recorded = next((answer for answer in self._attempt.answers if self._was_given_here(answer, request)), None)
        if recorded is None:
            return next((grant for grant in self._standing if not misfit(grant, request)), None)
        by, message = str(recorded.get("approver") or ""), str(recorded.get("message") or "")
        if recorded.get("kind") == "denial":
            return request.deny(message=message, by=by)
        scope: Any = recorded.get("scope", "once")
        grant = request.grant(by, message=message, scope=scope, override_args=self._override())
        if grant.standing:
            self._standing.append(grant)
        return grant

    def _was_given_here(self, answer: Mapping[str, Any], request: ApprovalRequest) -> bool:
        """Return whether a person said this to the same arguments, and did not say it before, for good."""
        return answer.get("digest") == request.digest and self._given.get(_name(answer), self._attempt) is self._attempt

    def _override(self) -> Any:
        """Return the arguments that the approver gave in the place of the call's."""
        overridden = (note["arguments"] for note in self._attempt.notes if note["hook"] == "approver")
        return next(overridden, None)


def _name(answer: Mapping[str, Any]) -> tuple[str, str]:
    """Return the key of a standing grant: who gave it, and when."""
    return str(answer.get("approver")), str(answer.get("at"))
