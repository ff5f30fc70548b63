"""Call events, notes of decisions, and the record that closes a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeAlias

from toolcrib._short_repr import ShortRepr
from toolcrib.calls._value_class import late_fields, late_times, value_class

EventKind: TypeAlias = Literal[
    "received", "decided", "suspended", "started", "yielded", "progressed", "asked", "answered", "logged", "ended"
]
"""The kinds of event of a call, in the order of the pipeline."""


@dataclass(frozen=True, slots=True)
class DecisionNote:
    """One line of a call's history: which hook decided what.

    Attributes:
        origins: Where arguments come from that decide something, under a `provenance` policy: each with `path`, `value`
            and `kind`, and with `tool`, `call_id` and `place` of the result that has the value.
    """

    hook: str
    decision: Literal["run", "complete", "reject", "ask"]
    reason: str = ""
    origins: Sequence[Mapping[str, str]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the note as JSON shapes."""
        shapes = {"hook": self.hook, "decision": self.decision, "reason": self.reason}
        return {**shapes, "origins": [dict(origin) for origin in self.origins]} if self.origins else shapes


@late_times("at")
@late_fields("data")
@value_class
class CallEvent(ShortRepr):
    """Something that happened to a call, sent to sinks as it happens.

    Attributes:
        data: JSON shapes, secrets hidden; what is in it depends on `kind`. Made when it is first read, of what was true
            when the event happened.
        record: The whole call, on the `ended` event.
        parent_id: The turn, program or request that made the call, or the call whose tool did; None at the top.
        description: The tool's description for models; not in `to_dict`, as it is the tool's and not the call's.
    """

    kind: EventKind
    call_id: str
    tool: str
    run_id: str
    entry: str
    at: datetime
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])
    record: CallRecord | None = None
    parent_id: str | None = None
    description: str = field(default="", repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the event as JSON shapes."""
        return {
            "kind": self.kind,
            "call_id": self.call_id,
            "tool": self.tool,
            "run_id": self.run_id,
            "entry": self.entry,
            "at": self.at.isoformat(),
            "data": dict(self.data),
            "record": None if self.record is None else self.record.to_dict(),
            "parent_id": self.parent_id,
        }


@late_times("started_at", "ended_at")
@late_fields("arguments", "outcome")
@value_class
class CallRecord(ShortRepr):
    """The record of a call that ended, with secrets hidden.

    Attributes:
        arguments: The final arguments; None when the call did not get as far as valid ones.
        requested: The arguments as received, when they differ from the final ones.
        decisions: The decision of each decision hook, in order.
        approval: The approver, the answer, its time and digest; None when no approval was needed. Its `done` is true
            where the answer to a call in doubt was that it was done: the result is what that person gave, and the tool
            was not executed again.
        outcome: The outcome as JSON shapes, or `{"kind": "cancelled"}`.
        duration_ms: From the call's arrival to its end, people's time included.
        parent_id: The turn, program or request that made the call, or the call whose tool did; None at the top.
        asked: The tool's questions to a person, a client or a model while it ran, in order, with their outcome: `what`,
            `of` whom, the `text`, the `outcome`, `by` whom, `duration_ms`; the first hundred, and no answers.
    """

    call_id: str
    tool: str
    run_id: str
    entry: str
    principal: str | None
    arguments: Mapping[str, Any] | None
    requested: Any
    decisions: tuple[DecisionNote, ...]
    approval: Mapping[str, Any] | None
    outcome: Mapping[str, Any]
    started_at: datetime
    ended_at: datetime
    duration_ms: float
    parent_id: str | None = None
    asked: tuple[Mapping[str, Any], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the record as JSON shapes."""
        return {
            "call_id": self.call_id,
            "tool": self.tool,
            "run_id": self.run_id,
            "entry": self.entry,
            "principal": self.principal,
            "arguments": None if self.arguments is None else dict(self.arguments),
            "requested": self.requested,
            "decisions": [note.to_dict() for note in self.decisions],
            "approval": None if self.approval is None else dict(self.approval),
            "outcome": dict(self.outcome),
            "started_at": self.started_at.isoformat(),
            "ended_at": self.ended_at.isoformat(),
            "duration_ms": round(self.duration_ms, 3),
            "parent_id": self.parent_id,
            **({"asked": [dict(question) for question in self.asked]} if self.asked else {}),
        }
