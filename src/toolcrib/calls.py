"""The values that cross the counter: a call, the decisions on it, its outcome, and what is recorded of it.

All of them are frozen, pickle, and turn to and from JSON with `to_dict` and `from_dict`. Nothing here runs anything.
"""

from __future__ import annotations

import itertools
import json
import numbers
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, cast, runtime_checkable
from uuid import uuid4

from pydantic_core import PydanticSerializationError, to_jsonable_python

from toolcrib.errors import FieldProblem, ResultNotSerializable

__all__ = [
    "ApprovalRequest",
    "Ask",
    "CallEvent",
    "CallMetadata",
    "CallRecord",
    "Complete",
    "Completed",
    "Decision",
    "DecisionNote",
    "Denial",
    "EventKind",
    "Failed",
    "Grant",
    "Outcome",
    "Reject",
    "Rejected",
    "RunNormally",
    "Suspended",
    "ToolCall",
    "Yielded",
    "cut",
    "jsonable",
    "lenient",
    "new_call_id",
    "now",
    "outcome_from_dict",
]

RawArguments: TypeAlias = str | bytes | Mapping[str, Any]
REJECTION_PREFIX = "Rejected: "
_REDACT = {"redact": True}  # what `Redacted` looks for when it serialises


# --- small change ----------------------------------------------------------------------------------------------------

_ids = itertools.count(1)
_prefix = uuid4().hex[:12]


def _renew_prefix() -> None:
    global _prefix
    _prefix = uuid4().hex[:12]


if hasattr(os, "register_at_fork"):  # a forked child must not hand out its parent's ids
    os.register_at_fork(after_in_child=_renew_prefix)


def new_call_id() -> str:
    """Return an id that no other call of this process has, and practically no other process's call."""
    return f"call_{_prefix}{next(_ids):x}"


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def cut(text: str, limit: int | None) -> str:
    """Return `text`, or its head and tail with the cut said between them, in about `limit` characters."""
    if limit is None or len(text) <= limit:
        return text
    tail = limit // 3
    head = limit - tail
    end = text[-tail:] if tail else ""
    return f"{text[:head]}\n[... {len(text) - limit} of {len(text)} characters cut ...]\n{end}"


def jsonable(value: Any, tool: str = "") -> Any:
    """Return `value` as JSON shapes: models and dataclasses as objects, dates as ISO text, sets as lists.

    Raises:
        ResultNotSerializable: Something in it has no JSON form.
    """
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return value
    try:
        return to_jsonable_python(value, inf_nan_mode="strings", fallback=_number, context=_REDACT)
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        raise ResultNotSerializable(tool, kind.__qualname__, str(error)) from error


def _number(value: Any) -> int | float:
    """Return a number of another library (mpmath, numpy) as the builtin one."""
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    raise ValueError(f"{type(value).__qualname__} has no JSON form")


def _described(value: Any) -> Any:
    """Return a number as a number, and anything else that has no JSON form as its text."""
    return _number(value) if isinstance(value, numbers.Real) else repr(value)


def lenient(value: Any) -> Any:
    """Return `value` as JSON shapes, for a record: what has no JSON form becomes its text."""
    return to_jsonable_python(value, inf_nan_mode="strings", fallback=_described, context=_REDACT)


def _parse_time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


# --- a call ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A request to run a tool.

    Attributes:
        name: The tool's name in the toolset that is asked.
        arguments: Raw JSON text, or values by parameter name.
        id: Names this call in its run; approvals and records are bound to it.
        origin: Who made the arguments. A `model`'s are validated and may name nothing that is not offered; a `host`'s
            are Python values that pass as they are, and extra ones are ignored.
    """

    name: str
    arguments: RawArguments = "{}"
    id: str = field(default_factory=new_call_id)
    origin: Literal["model", "host"] = "model"


@dataclass(frozen=True, slots=True)
class CallMetadata:
    """What a decision hook is told about a call: its id, the tool's name, and the arguments as they came."""

    id: str
    name: str
    arguments: RawArguments


# --- decisions -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunNormally:
    """Go on, with `input` (edited or not) as the tool's input."""

    input: Any


@dataclass(frozen=True, slots=True)
class Complete:
    """Answer the model with `output`; the tool does not run."""

    output: Any


@dataclass(frozen=True, slots=True)
class Reject:
    """Answer the model with `reason`; the tool does not run."""

    reason: str


@dataclass(frozen=True, slots=True)
class Ask:
    """Have a person asked, for `reason`; later hooks still run, and may reject or complete."""

    reason: str
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])


Decision: TypeAlias = RunNormally | Complete | Reject | Ask


@dataclass(frozen=True, slots=True)
class DecisionNote:
    """One line of a call's history: which hook decided what."""

    hook: str
    decision: Literal["run", "complete", "reject", "ask"]
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the note as JSON shapes."""
        return {"hook": self.hook, "decision": self.decision, "reason": self.reason}


# --- approval --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """What a person is asked, with secrets already hidden.

    Attributes:
        id: Names this question; a call that is asked again has another.
        arguments: The final arguments, which a grant is bound to by `digest`.
        requested: The arguments as the model sent them; they differ from `arguments` when a hook edited them.
        digest: SHA-256 over the tool's name and the final arguments, in hex.
        reason: Why approval is needed.
        metadata: What the tool or a hook adds for the person to see.
    """

    id: str
    call_id: str
    tool: str
    arguments: Mapping[str, Any]
    digest: str
    requested: Any = None
    reason: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    created_at: datetime = field(default_factory=now)
    scope_id: str = ""
    principal: str | None = None

    def grant(self, approver: str = "host", **options: Any) -> Grant:
        """Return a `Grant` for this request; options are the other fields of `Grant`."""
        bound = {"call_id": self.call_id, "digest": self.digest, "request_id": self.id, **options}
        return Grant(tool=self.tool, approver=approver, **bound)

    def deny(self, message: str = "", approver: str = "host") -> Denial:
        """Return a `Denial` of this request; the model is shown `message`."""
        return Denial(tool=self.tool, call_id=self.call_id, request_id=self.id, approver=approver, message=message)

    def changes(self) -> list[str]:
        """Return one line per argument that differs from what the model sent, as `name: before -> after`."""
        before: Any = self.requested
        if not isinstance(before, Mapping):
            return []
        asked = cast("Mapping[str, Any]", before)
        lines: list[str] = []
        for name in [*asked, *(n for n in self.arguments if n not in asked)]:
            old, new = _shown(asked, name), _shown(self.arguments, name)
            if old != new:
                lines.append(f"{name}: {old} -> {new}")
        return lines

    def text(self) -> str:
        """Return what to show a person: the tool, the reason, the final arguments, and what was changed."""
        lines = [f"{self.tool} needs approval" + (f": {self.reason}" if self.reason else "")]
        lines += [f"  {name} = {json.dumps(value, ensure_ascii=False)}" for name, value in self.arguments.items()]
        changed = self.changes()
        if changed:
            lines.append("changed since the model asked:")
            lines += [f"  {line}" for line in changed]
        lines += [f"{name}: {value}" for name, value in self.metadata.items()]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the request as JSON shapes."""
        return {
            "id": self.id,
            "call_id": self.call_id,
            "tool": self.tool,
            "arguments": dict(self.arguments),
            "digest": self.digest,
            "requested": self.requested,
            "reason": self.reason,
            "metadata": lenient(dict(self.metadata)),
            "created_at": self.created_at.isoformat(),
            "scope_id": self.scope_id,
            "principal": self.principal,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ApprovalRequest:
        """Return the request that `to_dict` described."""
        return cls(**{**data, "created_at": datetime.fromisoformat(data["created_at"])})


def _shown(values: Mapping[str, Any], name: str) -> str:
    return json.dumps(values[name], ensure_ascii=False, default=str) if name in values else "(not given)"


@dataclass(frozen=True, slots=True)
class Grant:
    """A yes, and to what.

    Attributes:
        tool: The tool it is for.
        call_id: The one call it is for; None for a standing grant.
        digest: The final arguments it is for; None for any (a standing grant for the tool).
        approver: Who said yes.
        override_args: Arguments the person put in place of the model's; they are validated like the model's.
        user_input: What the person typed; reaches the tool as `ctx.user_input`.
        scope: How far it reaches: `once`, `arguments` (this tool with these arguments) or `tool`.
        expires_at: From then on it does not count.
    """

    tool: str
    approver: str = "host"
    call_id: str | None = None
    digest: str | None = None
    request_id: str | None = None
    message: str = ""
    override_args: Mapping[str, Any] | None = None
    user_input: Any = None
    scope: Literal["once", "arguments", "tool"] = "once"
    at: datetime = field(default_factory=now)
    expires_at: datetime | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the grant as JSON shapes."""
        return {
            "kind": "grant",
            "tool": self.tool,
            "approver": self.approver,
            "call_id": self.call_id,
            "digest": self.digest,
            "request_id": self.request_id,
            "message": self.message,
            "override_args": None if self.override_args is None else dict(self.override_args),
            "user_input": lenient(self.user_input),
            "scope": self.scope,
            "at": self.at.isoformat(),
            "expires_at": self.expires_at.isoformat() if self.expires_at else None,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Grant:
        """Return the grant that `to_dict` described."""
        values = {k: v for k, v in data.items() if k != "kind"}
        values["at"], values["expires_at"] = datetime.fromisoformat(data["at"]), _parse_time(data.get("expires_at"))
        return cls(**values)


@dataclass(frozen=True, slots=True)
class Denial:
    """A no: the model is shown `message` as what the person said."""

    tool: str
    approver: str = "host"
    call_id: str | None = None
    request_id: str | None = None
    message: str = ""
    at: datetime = field(default_factory=now)

    def to_dict(self) -> dict[str, Any]:
        """Return the denial as JSON shapes."""
        return {
            "kind": "denial",
            "tool": self.tool,
            "approver": self.approver,
            "call_id": self.call_id,
            "request_id": self.request_id,
            "message": self.message,
            "at": self.at.isoformat(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Denial:
        """Return the denial that `to_dict` described."""
        values = {k: v for k, v in data.items() if k != "kind"}
        return cls(**{**values, "at": datetime.fromisoformat(data["at"])})


# --- outcomes --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Completed:
    """The call has a result.

    Attributes:
        value: What the tool returned (a list of the values of a streaming tool), after post hooks.
        source: `tool`, or `hook` when a decision hook answered in its place.
        max_result: The most characters of it that go back to a model; None for all.
    """

    tool: str
    call_id: str
    value: Any
    source: Literal["tool", "hook"] = "tool"
    max_result: int | None = None
    kind: ClassVar[str] = "completed"

    def shown(self) -> Any:
        """Return the value for a model: JSON shapes, cut to `max_result`.

        Raises:
            ResultNotSerializable: The value has no JSON form.
        """
        value = jsonable(self.value, self.tool)
        if self.max_result is None:
            return value
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        return value if len(text) <= self.max_result else cut(text, self.max_result)

    def text(self) -> str:
        """Return the value as text for a model: a string as it is, anything else as JSON."""
        value = self.shown()
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as JSON shapes; a value without a JSON form becomes its text."""
        value = lenient(self.value)
        data = {"kind": self.kind, "tool": self.tool, "call_id": self.call_id, "value": value, "source": self.source}
        return data if self.max_result is None else {**data, "max_result": self.max_result}


@dataclass(frozen=True, slots=True)
class Rejected:
    """The call was refused; the tool did not run.

    Attributes:
        source: `hook` (a decision), `user` (a denial) or `limit` (a budget of the run).
    """

    tool: str
    call_id: str
    reason: str
    source: Literal["hook", "user", "limit"] = "hook"
    kind: ClassVar[str] = "rejected"

    def text(self) -> str:
        """Return what a model is shown."""
        return f"{REJECTION_PREFIX}{self.reason}"

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as JSON shapes."""
        return {
            "kind": self.kind,
            "tool": self.tool,
            "call_id": self.call_id,
            "reason": self.reason,
            "source": self.source,
        }


@dataclass(frozen=True, slots=True)
class Failed:
    """The call has no result, and `message` says why.

    Attributes:
        code: The stable code of the error (`invalid_arguments`, `tool_timeout`, ...), `tool_error` for the tool's own.
        error_type: The exception's class name.
        problems: Each argument that did not fit.
        retryable: Whether the model may mend the call and make it again.
        exception: The live exception, for a host that raises it again; neither pickled nor in JSON.
    """

    tool: str
    call_id: str
    code: str
    message: str
    error_type: str = ""
    problems: tuple[FieldProblem, ...] = ()
    retryable: bool = False
    exception: BaseException | None = field(default=None, compare=False, repr=False)
    kind: ClassVar[str] = "failed"

    def text(self) -> str:
        """Return what a model is shown."""
        return f"{self.error_type or 'Error'}: {self.message}"

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as JSON shapes, without the live exception."""
        return {
            "kind": self.kind,
            "tool": self.tool,
            "call_id": self.call_id,
            "code": self.code,
            "message": self.message,
            "error_type": self.error_type,
            "problems": [{"field": p.field, "problem": p.problem} for p in self.problems],
            "retryable": self.retryable,
        }

    def __reduce__(self) -> tuple[Any, ...]:
        fields = (self.tool, self.call_id, self.code, self.message, self.error_type, self.problems, self.retryable)
        return (Failed, fields)


@runtime_checkable
class SupportsToDict(Protocol):
    """Something that turns to JSON shapes."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON shapes."""
        ...


@dataclass(frozen=True, slots=True)
class Suspended:
    """The call waits for a person; nothing ran.

    Attributes:
        request: What they are asked.
        prepared: The call as far as it got, from which it is resumed; as JSON it holds the real arguments, so it
            belongs in safe keeping and never in a log.
    """

    tool: str
    call_id: str
    request: ApprovalRequest
    prepared: SupportsToDict | Mapping[str, Any] | None = field(default=None, repr=False, compare=False)
    kind: ClassVar[str] = "suspended"

    def text(self) -> str:
        """Return what a model is shown."""
        return f"`{self.tool}` waits for approval (request {self.request.id}); it has not run."

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as JSON shapes, with the state that it is resumed from."""
        return {
            "kind": self.kind,
            "tool": self.tool,
            "call_id": self.call_id,
            "request": self.request.to_dict(),
            "prepared": _state(self.prepared),
        }

    def __reduce__(self) -> tuple[Any, ...]:
        return (Suspended, (self.tool, self.call_id, self.request, _state(self.prepared)))


def _state(prepared: SupportsToDict | Mapping[str, Any] | None) -> dict[str, Any] | None:
    if prepared is None:
        return None
    return prepared.to_dict() if isinstance(prepared, SupportsToDict) else dict(prepared)


Outcome: TypeAlias = Completed | Rejected | Failed | Suspended


@dataclass(frozen=True, slots=True)
class Yielded:
    """One value of a streaming tool, as it was produced."""

    value: Any


def outcome_from_dict(data: Mapping[str, Any]) -> Outcome:
    """Return the outcome that `to_dict` described; raises ValueError for an unknown kind."""
    values = {k: v for k, v in data.items() if k != "kind"}
    match data.get("kind"):
        case "completed":
            return Completed(**values)
        case "rejected":
            return Rejected(**values)
        case "failed":
            problems = tuple(FieldProblem(**p) for p in data.get("problems", ()))
            return Failed(**{**values, "problems": problems})
        case "suspended":
            return Suspended(**{**values, "request": ApprovalRequest.from_dict(data["request"])})
        case other:
            raise ValueError(f"no outcome is of kind {other!r}; there are completed, rejected, failed and suspended")


# --- what is recorded ------------------------------------------------------------------------------------------------

EventKind: TypeAlias = Literal["received", "decided", "suspended", "started", "yielded", "ended"]


@dataclass(frozen=True, slots=True)
class CallEvent:
    """Something that happened to a call, sent to sinks as it happens.

    Attributes:
        data: JSON shapes, secrets hidden; what is in it depends on `kind`.
        record: The whole call, on the `ended` event.
    """

    kind: EventKind
    call_id: str
    tool: str
    scope_id: str
    door: str
    at: datetime
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])
    record: CallRecord | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the event as JSON shapes."""
        return {
            "kind": self.kind,
            "call_id": self.call_id,
            "tool": self.tool,
            "scope_id": self.scope_id,
            "door": self.door,
            "at": self.at.isoformat(),
            "data": dict(self.data),
            "record": None if self.record is None else self.record.to_dict(),
        }


@dataclass(frozen=True, slots=True)
class CallRecord:
    """What is kept of a call that ended, with secrets hidden.

    Attributes:
        arguments: The final arguments; None when the call did not get as far as valid ones.
        requested: The arguments as they came, when they differ from the final ones.
        decisions: What each decision hook said, in order.
        approval: Who said yes or no, when, to which digest; None when nobody was asked.
        outcome: The outcome as JSON shapes, or `{"kind": "cancelled"}`.
        duration_ms: From the call's arrival to its end, people's time included.
    """

    call_id: str
    tool: str
    scope_id: str
    door: str
    principal: str | None
    arguments: Mapping[str, Any] | None
    requested: Any
    decisions: tuple[DecisionNote, ...]
    approval: Mapping[str, Any] | None
    outcome: Mapping[str, Any]
    started_at: datetime
    ended_at: datetime
    duration_ms: float

    def to_dict(self) -> dict[str, Any]:
        """Return the record as JSON shapes."""
        return {
            "call_id": self.call_id,
            "tool": self.tool,
            "scope_id": self.scope_id,
            "door": self.door,
            "principal": self.principal,
            "arguments": None if self.arguments is None else dict(self.arguments),
            "requested": self.requested,
            "decisions": [note.to_dict() for note in self.decisions],
            "approval": None if self.approval is None else dict(self.approval),
            "outcome": dict(self.outcome),
            "started_at": self.started_at.isoformat(),
            "ended_at": self.ended_at.isoformat(),
            "duration_ms": round(self.duration_ms, 3),
        }
