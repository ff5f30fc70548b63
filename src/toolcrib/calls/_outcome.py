"""Outcomes: a value for each way in which a call can end, and what a model is shown of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any, ClassVar, Generic, Literal, Never, NoReturn, Protocol, TypeAlias, runtime_checkable

from typing_extensions import TypeVar

from toolcrib import calls
from toolcrib._cut import cut_shapes
from toolcrib._json_writer import valid_text
from toolcrib._short_repr import ShortRepr
from toolcrib.calls._hiding import Hiding
from toolcrib.calls._json import Tables, lenient, lenient_later, parse_time
from toolcrib.calls._kept import Blocks, KeptResult
from toolcrib.calls._media import revived
from toolcrib.calls._render import Rendered, render_value
from toolcrib.calls._stored import StoredFields, versioned
from toolcrib.calls._value_class import rendered, value_class
from toolcrib.errors import (
    ApprovalDenied,
    ApprovalRequired,
    FieldProblem,
    NoResult,
    ResultNotSerializable,
    ToolcribError,
    explain_missing,
    refuse_unknown_options,
)

REJECTION_PREFIX = "Rejected: "
"""The beginning of the text of a rejected call, as the model reads it."""
T = TypeVar("T", default=Any)

_CHANGED = (
    "The definition of the tool is not the one that a person accepted before: they accept it as it is now by answering "
    "this request."
)


@explain_missing(
    dict.fromkeys(("content", "data", "output", "result", "return_value"), "`value`, and `text()` for a model")
)
@value_class
class Completed(ShortRepr, Generic[T]):
    """The call has a result.

    Attributes:
        value: The return value of the tool (a list of the values of a streaming tool), after post hooks.
        source: `tool`, or `hook` when a decision hook answered in its place.
        max_result_chars: The most characters of it that go back to a model; None for all.
        kept: The stored result that a model is shown in its place, where a result store keeps it.
    """

    tool: str
    call_id: str
    value: T
    source: Literal["tool", "hook"] = "tool"
    max_result_chars: int | None = None
    kept: KeptResult | None = field(default=None, repr=False)
    kind: ClassVar[Literal["completed"]] = "completed"

    @property
    def request(self) -> NoReturn:
        """Raise NoResult: nobody is asked."""
        raise _no_request(self.tool, "it is completed")

    def text(self) -> str:
        """Return the text for a model."""
        return render(self).text

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as JSON shapes, media with their bytes; a value without a JSON form becomes its text."""
        return self._as_dict(lenient(self.value, media=True))

    def _as_dict(self, value: Any) -> dict[str, Any]:
        data = {"kind": self.kind, "tool": self.tool, "call_id": self.call_id, "value": value, "source": self.source}
        if self.max_result_chars is not None:
            data["max_result_chars"] = self.max_result_chars
        return versioned("Completed", data if self.kept is None else {**data, "kept": self.kept.to_dict()})


@dataclass(frozen=True, slots=True, repr=False)
class Rejected(ShortRepr):
    """The call was refused; the tool did not run.

    Attributes:
        source: `hook` (a decision), `user` (a denial) or `limit` (a budget of the run).
    """

    tool: str
    call_id: str
    reason: str
    source: Literal["hook", "user", "limit"] = "hook"
    kind: ClassVar[Literal["rejected"]] = "rejected"

    @property
    def value(self) -> NoReturn:
        """Raise NoResult, which says why the result is missing."""
        raise NoResult(f"the call of `{self.tool}`", f"it was refused ({self.reason})", "look at `kind` first")

    @property
    def request(self) -> NoReturn:
        """Raise NoResult: nobody is asked."""
        raise _no_request(self.tool, f"it was refused ({self.reason})")

    def text(self) -> str:
        """Return the text for a model."""
        return f"{REJECTION_PREFIX}{self.reason}"

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as JSON shapes."""
        data: dict[str, Any] = {
            "kind": self.kind,
            "tool": self.tool,
            "call_id": self.call_id,
            "reason": self.reason,
            "source": self.source,
        }
        return versioned("Rejected", data)


@dataclass(frozen=True, slots=True, repr=False)
class Failed(ShortRepr):
    """The call has no result, and `message` says why.

    Attributes:
        code: The stable code of the error (`invalid_arguments`, `tool_timeout`, ...), `tool_error` for the tool's own.
        error_type: The exception's class name.
        problems: Each argument that did not fit.
        retryable: Whether the model may correct the call and make it again.
        exception: The live exception, for a host that raises it again; neither pickled nor in JSON.
        reference: The reference of an exception that was not made for a model, in the log and the record too.
        traceback: The traceback of such an exception, for the host: in the record, and never shown to a model.
    """

    tool: str
    call_id: str
    code: str
    message: str
    error_type: str = ""
    problems: tuple[FieldProblem, ...] = ()
    retryable: bool = False
    exception: BaseException | None = field(default=None, compare=False, repr=False)
    reference: str = field(default="", compare=False)
    traceback: str = field(default="", compare=False, repr=False)
    kind: ClassVar[Literal["failed"]] = "failed"

    @property
    def value(self) -> NoReturn:
        """Raise NoResult, which says why the result is missing, from the tool's own exception."""
        raise NoResult(f"the call of `{self.tool}`", f"it failed ({self.text()})", "look at `kind` first") from (
            self.exception
        )

    @property
    def request(self) -> NoReturn:
        """Raise NoResult: nobody is asked."""
        raise _no_request(self.tool, f"it failed ({self.text()})") from self.exception

    def text(self) -> str:
        """Return the text for a model."""
        kind = self.error_type or "Error"
        return kind if self.message in ("", kind) else f"{kind}: {self.message}"  # some exceptions say no more

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as JSON shapes, without the live exception and its traceback."""
        data = {
            "kind": self.kind,
            "tool": self.tool,
            "call_id": self.call_id,
            "code": self.code,
            "message": self.message,
            "error_type": self.error_type,
            "problems": [{"field": p.field, "problem": p.problem} for p in self.problems],
            "retryable": self.retryable,
        }
        return versioned("Failed", {**data, "reference": self.reference} if self.reference else data)

    def __reduce__(self) -> tuple[Any, ...]:
        values = (self.tool, self.call_id, self.code, self.message, self.error_type, self.problems, self.retryable)
        return (Failed, (*values, None, self.reference, self.traceback))


@runtime_checkable
class SupportsToDict(Protocol):
    """Something that turns to JSON shapes."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON shapes."""
        ...


@explain_missing(
    {
        **dict.fromkeys(
            ("allow", "approve", "grant"),
            "`suspended.request.grant(by)`, given to `pipeline.run(suspended, grant=...)`",
        ),
        **dict.fromkeys(
            ("deny", "reject"),
            "`suspended.request.deny(by=..., message=...)`, given to `pipeline.run(suspended, grant=...)`",
        ),
    }
)
@dataclass(frozen=True, slots=True, repr=False)
class Suspended(ShortRepr):
    """The call waits for a person; nothing ran.

    Attributes:
        request: The question to them.
        call: The call as far as it got, from which it is resumed; as JSON it holds the real arguments, so it
            belongs in safe keeping and never in a log.
        executed_since: Since when another process or task executes the call; None where nothing runs.
    """

    tool: str
    call_id: str
    request: calls.ApprovalRequest
    call: SupportsToDict | Mapping[str, Any] | None = field(default=None, repr=False, compare=False)
    executed_since: datetime | None = None
    kind: ClassVar[Literal["suspended"]] = "suspended"

    @property
    def value(self) -> NoReturn:
        """Raise NoResult, which says for whom the call waits."""
        mend = (
            "give the run an approver, as in `Run(approver=...)`, or pass the answer, as in "
            "`pipeline.run(suspended, run, grant=suspended.request.grant())`"
        )
        raise NoResult(f"the call of `{self.tool}`", "a person has to answer its `request` first", mend)

    def text(self) -> str:
        """Return the text for a model."""
        if self.executed_since is not None:
            at = self.executed_since.isoformat(timespec="seconds")
            return f"`{self.tool}` is executed now, since {at} (request {self.request.id}); it has no result yet."
        since = "it may have been done" if self.request.in_doubt else "it has not run"
        consent = self.request.consent
        if consent is not None:
            link = f" The link, which they open in a browser: {consent.url}" if consent.url else ""
            return (
                f"`{self.tool}` is suspended (request {self.request.id}); {since}. {consent.reason}. No approval and "
                f"no tool of yours takes the place of that.{link}"
            )
        changed = f" {_CHANGED}" if self.request.tool_has_changed else ""
        return f"`{self.tool}` is suspended until a person answers (request {self.request.id}); {since}.{changed}"

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as JSON shapes, with the state that it is resumed from."""
        data: dict[str, Any] = {
            "kind": self.kind,
            "tool": self.tool,
            "call_id": self.call_id,
            "request": self.request.to_dict(),
            "call": _state(self.call),
            **({} if self.executed_since is None else {"executed_since": self.executed_since.isoformat()}),
        }
        return versioned("Suspended", data)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Suspended, (self.tool, self.call_id, self.request, _state(self.call), self.executed_since))


def _no_request(tool: str, reason: str) -> NoResult:
    return NoResult(f"the request of `{tool}`", f"there is none, because {reason}", "look at `kind` first")


def _state(call: SupportsToDict | Mapping[str, Any] | None) -> dict[str, Any] | None:
    if call is None:
        return None
    return call.to_dict() if isinstance(call, SupportsToDict) else dict(call)


Outcome: TypeAlias = Completed[T] | Rejected | Failed | Suspended
"""The end of a call, or its wait for a person; a value, and no exception."""


def error_of(outcome: Outcome) -> Exception:
    """Return the exception of an outcome for a host: the tool's own, where there was one."""
    match outcome:
        case Failed(exception=Exception() as error):
            return error
        case Failed(tool=tool, message=message):
            return ToolcribError(f"`{tool}` failed: {message}")
        case Rejected(tool=tool, reason=reason):
            return ApprovalDenied(tool, reason)
        case Suspended(request=request):
            return ApprovalRequired({**request.metadata, "request": request}, request.tool)
        case Completed(tool=tool):
            return ToolcribError(f"`{tool}` completed")


def hidden_outcome(outcome: Outcome, hiding: Hiding) -> Outcome:
    """Return an outcome whose texts quote no secret; of a completed call they are its result, which stays as it is."""
    match outcome:
        case Failed() if hiding:
            problems = tuple(FieldProblem(hiding.hide(p.field), hiding.hide(p.problem)) for p in outcome.problems)
            message, lines = hiding.hide(outcome.message), hiding.hide(outcome.traceback)
            error = None if outcome.exception is None else hiding.hide_error(outcome.exception)
            return replace(outcome, message=message, problems=problems, traceback=lines, exception=error)
        case Rejected() if hiding:
            return replace(outcome, reason=hiding.hide(outcome.reason))
        case _:
            return outcome


def render(
    outcome: Outcome,
    *,
    structured: bool = False,
    blocks: Blocks | None = None,
    tables: Tables | None = None,
    **unknown: Never,
) -> Rendered:
    """Render an outcome for a model; a way in translates the result.

    Args:
        structured: Give the result as JSON shapes, too.
        blocks: The content blocks that the way in has of its own, as for `render_value`.
        tables: The replacement of a table in the JSON shapes, as for `render_value`.
    """
    if unknown:
        refuse_unknown_options("render()", unknown, ("structured", "blocks", "tables"), {})
    if not isinstance(outcome, Completed):
        return Rendered(valid_text(outcome.text()), is_error=True)
    try:
        limit = outcome.max_result_chars
        return render_value(
            outcome.value, outcome.tool, limit, structured=structured, blocks=blocks, tables=tables, kept=outcome.kept
        )
    except ResultNotSerializable as error:
        return Rendered(valid_text(f"{type(error).__name__}: {error}"), is_error=True)


def record_of(
    outcome: Outcome, limit: int | None = None, hide: Callable[[Any, int | None], Any] = cut_shapes
) -> dict[str, Any] | partial[dict[str, Any]]:
    """Return the outcome as a record keeps it, or a `partial` that returns it: see `late_fields`.

    It has the facts of media alone, and the traceback of a failure.

    What a suspended call is resumed from is not in it.

    Args:
        limit: The most characters of a result as JSON; a longer one becomes its text, the middle cut out, or what was
            shown of it where a result store keeps it.
        hide: Hides secrets in the result, as for `lenient`.
    """
    if isinstance(outcome, Completed):
        stored = outcome.kept
        is_kept = stored is not None and limit is not None and stored.chars > limit
        value = stored.text if stored is not None and is_kept else lenient_later(outcome.value, limit, hide)
        return partial(_record_of_completed, outcome, value, hide)
    data = outcome.to_dict()
    data.pop("call", None)
    if isinstance(outcome, Suspended):
        data["request"] = outcome.request.to_record()
    return {**data, "traceback": outcome.traceback} if isinstance(outcome, Failed) and outcome.traceback else data


def _record_of_completed(outcome: Completed[Any], value: Any, hide: Callable[[Any, int | None], Any]) -> dict[str, Any]:
    shapes = outcome._as_dict(rendered(value))  # pyright: ignore[reportPrivateUsage] -- the same module
    if "kept" not in shapes:
        return shapes
    stored = {**shapes["kept"], "text": hide(shapes["kept"]["text"], None)}
    return shapes | {"kept": stored, "value": hide(shapes["value"], None)}


@value_class
class Yielded:
    """One value of a streaming tool, as it was produced."""

    value: Any


def outcome_from_dict(data: Mapping[str, Any]) -> Outcome:
    """Return the outcome that `to_dict` described; raises ValueError for an unknown kind or when a field is missing."""
    kinds = {kind.kind: kind for kind in (Completed, Rejected, Failed, Suspended)}
    data = StoredFields("Outcome", data)
    kind = kinds.get(data.get("kind", ""))
    if kind is None:
        raise ValueError(f"there is no kind of outcome {data.get('kind')!r}; there are {', '.join(kinds)}")
    values = StoredFields(kind, data)
    del values["kind"]
    if kind is Completed:
        values["value"] = revived(values["value"])
        if values.get("kept") is not None:
            values["kept"] = KeptResult.from_dict(values["kept"])
    elif kind is Failed:
        values["problems"] = tuple(FieldProblem(**StoredFields(FieldProblem, p)) for p in values.get("problems", ()))
    elif kind is Suspended:
        values["request"] = calls.ApprovalRequest.from_dict(values["request"])
        values["executed_since"] = parse_time(values.get("executed_since"))
        if values.get("call") is not None:
            StoredFields("Call", values["call"])  # what cannot be resumed here is not read either
    return kind(**values)
