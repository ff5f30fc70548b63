"""LiveCall: a call as the pipeline moves it, from its arrival to its record."""

from __future__ import annotations

import json
from asyncio import Future
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from copy import copy, deepcopy
from secrets import token_hex
from types import MappingProxyType
from typing import Any, Literal

from pydantic import BaseModel

from toolcrib.calls import (
    ApprovalRequest,
    DecisionNote,
    Grant,
    KeptResult,
    Outcome,
    RawArguments,
    ToolCall,
    copied,
    jsonable,
    lenient,
)
from toolcrib.errors import ApprovalError, CallStateError, InvalidArguments, SchemaError
from toolcrib.hooks import HookSet
from toolcrib.pipeline._call import CallState
from toolcrib.pipeline._edits import changed_unseen, edited, edited_objects, same, with_secrets
from toolcrib.pipeline._plan import Plan, Reading
from toolcrib.pipeline._questions import ask_approver
from toolcrib.pipeline._run import Run
from toolcrib.provenance import Question
from toolcrib.record import Trace
from toolcrib.schema import CanonicalArguments, RunContext
from toolcrib.tools import Tool

__all__ = ["LiveCall"]

_NOTHING: Mapping[str, Any] = MappingProxyType({})
_NOWHERE = nullcontext()
_WITHOUT_EFFECT = frozenset({"none", "fetch", "program"})
_ATOMS = frozenset({str, int, float, bool, bytes, type(None)})  # cannot be changed in place


class LiveCall:
    """The call itself. What most calls do not need is a default of the class: one is made for every request.

    Attributes:
        ctx: The run as hooks and tool see it; None when neither does.
        trace: Emits the call's events; None when there is no sink.
        asks: Why a person has to be asked.
        ask_metadata: What they are shown besides the arguments.
        questions: The values of others that a person is asked about.
        bound: The arguments by parameter name, as the tool is given them; others are shown `arguments`.
        approved: The digest of the arguments that were approved; None when no approval was needed.
        sealed: The digest of the arguments that the gates saw last; None where no other code could change them.
        entered: Whether an execution has called the tool's function.
        gave_value: Whether the function has yielded a value.
        left: What the consumer of its values left with, before it asked for the next one.
        extra_hooks: Decision hooks that were given for this call alone.
        lost_hooks: Whether it had such hooks in the process that wrote it as JSON, where they do not go.
        gated: Whether a gate looks at its arguments.
        source: What the input is made of after an edit; None for the arguments as they came.
        by_reference: The arguments are a host's objects, which were not validated: nothing has looked at them.
        resumed: What the sinks of the process that suspended the call gave to those of this one; None for a new call.
        earlier_runs: The ids of the runs that it came through before this one; the first counted it when it came.
        doubts: How often the call was found begun and not known to have ended.
        original: The call that this is a later copy of: of all copies one is executed.
        misfit: Why a call that was begun cannot be done any more: the tool has changed since, and does not take its
            arguments now.
        delivered: Whether its result, or each value of a stream as it came, passed the deliveries.
        reporting: The delivery of what its tool reported last; None where nothing is on its way.
        kept: What is shown in the place of its result, where a result store keeps it.
        noted: How much of its execution the run's approval store knows; None for nothing.
        key: Names the call in its JSON and in all that is restored from that; empty for one that was never written.
    """

    ctx: RunContext[Any] | None = None
    notes: tuple[DecisionNote, ...] = ()
    asks: tuple[str, ...] = ()
    ask_metadata: Mapping[str, Any] = _NOTHING
    questions: tuple[Question, ...] = ()
    approved: str | None = None
    sealed: str | None = None
    entered: bool = False
    gave_value: bool = False
    left: BaseException | None = None
    grant: Grant | None = None
    request: ApprovalRequest | None = None
    extra_hooks: tuple[HookSet, ...] = ()
    lost_hooks: bool = False
    revealed: bool = False
    gated: bool = False
    resumed: Mapping[str, str] | None = None
    _form: CanonicalArguments | None = None
    _unedited: Mapping[str, Any] | None = None
    source: RawArguments | None = None
    by_reference: bool = False
    state: CallState = "received"
    begun: bool = False
    doubts: int = 0
    earlier_runs: tuple[str, ...] = ()
    original: LiveCall | None = None
    misfit: InvalidArguments | SchemaError | None = None
    noted: Literal["begun", "ended"] | None = None
    key: str = ""
    value: Any = None
    error: Exception | None = None
    outcome: Outcome | None = None
    delivered: bool = False
    reporting: Future[None] | None = None
    kept: KeptResult | None = None

    def __init__(self, received: ToolCall, plan: Plan, run: Run, trace: Trace | None = None) -> None:
        self.received = received
        self.plan = plan
        self.run = run
        self.trace = trace
        self.bound: dict[str, Any] = {}

    # --- what it is

    @property
    def id(self) -> str:
        return self.received.id

    @property
    def name(self) -> str:
        return self.plan.name

    @property
    def tool(self) -> Tool[..., Any]:
        return self.plan.tool

    @property
    def arguments(self) -> Mapping[str, Any]:
        return MappingProxyType(self.own_copy())

    @property
    def raw_arguments(self) -> Any:
        return self.received.arguments if self.source is None else self.source

    @property
    def is_executable(self) -> bool:
        return self.plan.execution is not None or self.plan.wrapped

    @property
    def counted_in(self) -> str:
        """The id of the run that counted the call when it came."""
        return self._runs()[0]

    @property
    def is_edited(self) -> bool:
        """Whether its arguments are others than those that it came with."""
        return self._unedited is not None

    @property
    def was_revealed(self) -> bool:
        """Whether its tool was found in the run, or in one that it came through."""
        return self.revealed or self.plan.name in self.run.revealed

    @property
    def done_before(self) -> bool:
        """Whether it has a result that is not of an execution here: of another process, or as the approver said."""
        said = self.grant is not None and self.grant.done is not None
        return self.state == "executed" and (said or self.resumed is not None)

    @property
    def is_noted(self) -> bool:
        """Whether the store of its run has to know when it begins and ends, and lets one of its copies begin."""
        if self.run.approvals is None or self.noted == "ended":
            return False
        return self.grant is not None or self.has_noted_effect

    @property
    def has_noted_effect(self) -> bool:
        """Whether the store of its run has to know of it though it needs no approval."""
        options = self.plan.tool.options
        return self.run.store is not None and not (options.idempotent or options.effect in _WITHOUT_EFFECT)

    @property
    def finishes_later(self) -> bool:
        """Whether something has to be awaited when its tool has run: post hooks, deliveries, a result store."""
        return self.plan.awaited or bool(self.run.delivery_steps)

    @property
    def waits_for_post_hooks(self) -> bool:
        return self.finishes_later

    @property
    def metadata(self) -> dict[str, Any]:
        """The dict that this call's middleware shares."""
        return self.ctx.metadata if self.ctx is not None else {}

    @property
    def watched(self) -> bool:
        """Whether each value of a stream goes to a sink or a hook."""
        return self.trace is not None or bool(self.plan.each) or self.has_deliveries

    @property
    def has_deliveries(self) -> bool:
        """Whether its values pass deliveries before anyone has them."""
        return bool(self.plan.deliveries or self.run.delivery_steps)

    def parse(self) -> BaseModel:
        # made anew: read from the arguments it would be validated twice, and some validators change what they are given
        return self.plan.parse(self.raw_arguments)

    def copied(self) -> LiveCall:
        """Return a copy, to be recovered: the same suspended call may be recovered twice, and one of them goes on."""
        again = copy(self)
        again.original, again.outcome = self.original or self, None
        again.earlier_runs, again.revealed = self._runs(), self.was_revealed
        again.resumed = {} if self.trace is None else self.trace.carry()
        return again

    # --- its record, cut off

    def __enter__(self) -> LiveCall:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        """Close the record as cancelled, when the body is left by an exception."""
        if kind is not None:
            self.cut_off()

    def cut_off(self) -> None:
        """Close the record as cancelled, unless it was made."""
        if self.trace is not None:
            self.trace.cancelled()

    def within(self) -> AbstractContextManager[None]:
        """Return what the code of hooks and tool is executed in, so that what they start is known to be the call's."""
        return _NOWHERE if self.trace is None else self.trace.within()

    # --- its arguments

    def revise(self, arguments: Mapping[str, Any]) -> None:
        """Take edited arguments in the place of those it has, validated again.

        Raises:
            InvalidArguments: They do not fit.
        """
        plan, before, host = self.plan, self.bound, self.received.origin == "host"
        source: RawArguments = arguments
        if not plan.spec.has_validators:
            made = plan.read_python(arguments, host=host)
        elif self.canonical().without_form or (after := plan.spec.canonical(arguments)).without_form:
            made = edited_objects(plan, arguments, before, host=host)
        else:
            base, reading, _ = self._kept()
            made, source = edited(plan, self.canonical(), base, after.values, host=host, reading=reading)
        if self._unedited is None:
            self._unedited = before
        self._form, self.bound, self.source, self.sealed = None, made, source, None

    def edit(self, arguments: Mapping[str, Any]) -> None:
        """Take the host's arguments in the place of those it has, validated: no gate has seen them.

        Raises:
            InvalidArguments: They do not fit; the call is as it was.
        """
        self.revise(arguments)
        self.asks, self.ask_metadata, self.questions, self.notes, self.approved = (), _NOTHING, (), (), None
        if self.ctx is not None:
            self.ctx.approved = False

    def replace_arguments(self, arguments: Mapping[str, Any]) -> None:
        """Take an approver's arguments, as if the call had come with them: no gate has seen them.

        Raises:
            InvalidArguments: They do not fit.
            SchemaError: The tool has no schema to check them against.
        """
        arguments = with_secrets(self.plan, self.canonical(), arguments)
        received = ToolCall(self.received.name, dict(arguments), self.id, "model")
        source: RawArguments | None = None
        if self.plan.spec.has_validators:
            after = self.plan.spec.as_given(arguments)
            base, reading, _ = self._kept()
            made, source = edited(self.plan, self.canonical(), base, after, reading=reading, derive=False)
        else:
            made = self.plan.read(received)
        self._form, self.bound, self.received, self.source, self._unedited = None, made, received, source, None
        self.asks, self.ask_metadata, self.questions, self.notes, self.approved = (), _NOTHING, (), (), None

    def read(self) -> None:
        """Read the arguments as they came; raises what `Plan.read` does."""
        if self.received.origin == "host" and self.trace is None and self.run.journal is None:
            self.by_reference = not self.gated
        self.bound = self.plan.read(self.received, by_reference=self.by_reference)

    def validate(self) -> None:
        """Validate a host's arguments, if nothing has looked at them so far; raises what `Plan.validated` does."""
        if self.by_reference:
            self._form, self.bound, self.by_reference = None, self.plan.validated(self.bound), False

    def own_copy(self) -> dict[str, Any]:
        """Return the arguments for those who may edit them in place: hooks, policies, runners."""
        if self._is_atomic():
            return dict(self.bound)
        if self.received.origin == "host":  # objects that are the host's own stay the same
            return dict(self.bound) if self.by_reference else copied(self.bound)
        try:
            return deepcopy(self.bound)
        except Exception:  # any types
            return self.plan.spec.arguments(self.parse())

    def canonical(self) -> CanonicalArguments:
        """Return the arguments in their canonical form, made once: shown, digested, recorded and sent."""
        if self._form is None:
            self._form = self.plan.spec.canonical(self.bound)
        return self._form

    def _kept(self) -> tuple[Mapping[str, Any], Reading, bool]:
        """Return the JSON from which the arguments are read, how it is read, and whether they are sure to come back.

        It is their form, or what came where that form is read as something else: a validator changes it again, or a
        union takes it for another of its types.
        """
        form, spec = self.canonical(), self.plan.spec
        if spec.reads_back(form, self.bound):
            return form.values, "json", True
        given = spec.as_given(self.as_came())
        if self.received.origin == "model":
            return given, "json", True
        try:
            return given, "python", same(self.plan.validated(given), self.bound)
        except InvalidArguments:
            return given, "json", False

    def as_came(self) -> Mapping[str, Any]:
        """Return the arguments that came with the call, without defaults and not validated."""
        raw = self.raw_arguments
        return json.loads(raw.strip() or "null") or {} if isinstance(raw, str | bytes) else raw

    def digest(self) -> str:
        """Return the digest of tool and arguments, which a grant is bound to."""
        return self.canonical().digest(self.plan.name)

    def shown_arguments(self) -> dict[str, Any]:
        """Return the arguments for a person or a record: JSON shapes, secrets hidden."""
        return self.canonical().shown

    def shown_given_first(self) -> dict[str, Any]:
        """Return the arguments for the person who decides: those that the call came with before the defaults."""
        shown, given = self.shown_arguments(), self.as_came()
        return dict(sorted(shown.items(), key=lambda item: item[0] not in given))

    def shown_request(self) -> dict[str, Any]:
        """Return the arguments as they were read at first, before any edit, as they may be shown."""
        return self.shown_arguments() if self._unedited is None else self.plan.spec.canonical(self._unedited).shown

    def shown_misfit(self) -> Any:
        """Return arguments that do not fit, as they came; None when they might hold a secret."""
        try:
            return None if self.plan.spec.has_secrets else lenient(self.received.arguments)
        except SchemaError:  # what is secret cannot be known
            return None

    # --- its way

    def enter(self, metadata: dict[str, Any] | None = None) -> None:
        """Make the context that hooks and tool are given."""
        run, call_id = self.run, self.received.id
        self.ctx = RunContext(  # by position, which costs half: agents have one made for every turn
            run.deps,
            call_id,
            self.plan.name,
            run.id,
            metadata or {},
            None,
            False,
            None,
            call_id,
            run.provide,
            run.revealed,
            None if self.trace is None else self.trace.yielded,
            None if run.approver is None else self.ask,
            run,
            self.trace,
        )

    async def ask(self, request: ApprovalRequest) -> Any:
        """Have the run's approver answer something else than the call itself, for its tool."""
        return None if self.ctx is None else await ask_approver(request, self.ctx, self.run.approver)

    def approve(self, grant: Grant | None) -> None:
        """Note that the arguments as they are now were approved."""
        self.approved, self.grant = self.digest(), grant

    def admit(self) -> None:
        """Move to `admitted`: from here on the arguments are final."""
        self.state = "admitted"
        plan = self.plan
        if self.approved is not None or (self.gated and (plan.wrapped or self._is_shared())):
            self.sealed = self.digest()

    def _is_shared(self) -> bool:
        """Return whether others may have an object in their hands that is among the arguments."""
        return not (isinstance(self.raw_arguments, str | bytes) or self._is_atomic())

    def _is_atomic(self) -> bool:
        return all(type(value) in _ATOMS for value in self.bound.values())

    def require_sealed(self, arguments: Mapping[str, Any]) -> None:
        """Check that these are the arguments that the gates saw last.

        Raises:
            ApprovalError: They are not those that were approved.
            InvalidArguments: They are not those that hooks and policies saw.
        """
        now = self.plan.spec.canonical(arguments)  # anew: a value may have been changed in place
        if now.digest(self.plan.name) == self.sealed:
            return
        if self.approved is not None:
            raise ApprovalError(self.plan.name, "the arguments changed after it was given, before the tool ran")
        raise changed_unseen(self.plan, self.canonical().values, now.values)

    def enter_body(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return what the tool's function is given, where others stand around it: what they edit is validated.

        Raises:
            CallStateError: The function was called before, and may not be called again; or the call is over.
            InvalidArguments: The edited arguments do not fit.
        """
        once = not self.plan.tool.options.idempotent or self.gave_value
        if self.state != "executing" or (self.entered and once):
            raise CallStateError(self.plan.name, self.received.id, "executed")
        if self.sealed is None and not self.by_reference and self._differ(arguments):
            self.revise(arguments)
            arguments = self.bound
            if self.trace is not None:
                self.trace.arguments = self.shown_arguments()
        self.entered = True
        return arguments

    def _differ(self, arguments: dict[str, Any]) -> bool:
        if same(arguments, self.bound):
            return False
        return self.plan.spec.canonical(arguments).digest(self.plan.name) != self.digest()

    def begin(self) -> None:
        """Move from `admitted` to `executing`: once, of all copies of a call, and once in a run of JSON.

        Raises:
            CallStateError: It was executed before, or did not pass its gates.
        """
        first = self.original
        by_store = self.run.approvals is not None and self.is_noted
        if self.state != "admitted" or (first is not None and first.begun and not by_store):
            begun = self.begun or (first is not None and first.begun)
            raise CallStateError(self.plan.name, self.received.id, "executed" if begun else self.state)
        mark = self._mark() if (self.key or first is not None) and not by_store else ""
        if mark and not self.run.use_once(mark):
            raise CallStateError(self.plan.name, self.received.id, "executed")
        self.state, self.begun = "executing", True
        if first is not None:
            first.begun = True
        if self.trace is not None:
            self.trace.started(self.shown_arguments())

    def take_back(self) -> None:
        """Move from `executing` to `admitted`: the tool asked for approval before it did anything."""
        first = self.original or self
        self.state, self.error = "admitted", None
        self.begun = first.begun = self.entered = False
        self.run.give_back(self._mark())

    def _mark(self) -> str:
        """Return what the run knows the execution of a written call by; each time it is in doubt is another.

        It is empty for a call that was never written, and of an idempotent tool, which may be executed again.
        """
        key = (self.original or self).key
        return f"call:{key}:{self.doubts}" if key and not self.plan.tool.options.idempotent else ""

    def executed(self, value: Any = None, error: Exception | None = None) -> LiveCall:
        """Move to `executed`, with what the tool came to."""
        self.state, self.value, self.error, self.delivered = "executed", value, error, False
        return self

    def suspend(self) -> None:
        """Move to `suspended`: a person has to be asked."""
        self.state = "suspended"

    def close(self, outcome: Outcome) -> Outcome:
        """Move to `closed` with the outcome, and make the record."""
        if self.state != "suspended":
            self.state = "closed"
        self.outcome = outcome
        if self.trace is not None:
            self.trace.ended(outcome)
        return outcome

    def to_dict(self) -> dict[str, Any]:
        if not self.begun:
            self.validate()
        given, reading, sure = self._kept()
        ctx, first = self.ctx, self.original or self
        first.key = first.key or token_hex(8)
        return {
            "name": self.received.name,
            "id": self.received.id,
            "key": first.key,
            "origin": self.received.origin,
            "state": self.state,
            "runs": list(self._runs()),
            "arguments": self.canonical().values,
            "given": None if given is self.canonical().values else given,
            "reading": reading,
            "digest": self.digest() if sure else "",  # which no arguments have
            "metadata": lenient(self.metadata),
            "decisions": [note.to_dict() for note in self.notes],
            "asks": list(self.asks),
            "questions": [each.to_dict() for each in self.questions],
            "ask_metadata": {str(name): lenient(value) for name, value in self.ask_metadata.items()},
            "revealed": self.was_revealed,
            "extra_hooks": bool(self.extra_hooks) or self.lost_hooks,
            "doubts": self.doubts,
            "request": None if self.request is None else self.request.to_dict(),
            "idempotency_key": self.id if ctx is None else ctx.idempotency_key,
            "trace": {} if self.trace is None else self.trace.carry(),
            "begun": self.begun,
            **(self._result() if self.state == "executed" else {}),
        }

    def _runs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.earlier_runs, self.run.id)))

    def _result(self) -> dict[str, Any]:
        if self.error is not None:
            return {"error": {"type": type(self.error).__name__, "message": str(self.error)}}
        return {"value": jsonable(self.value, self.plan.name, media=True), "delivered": self.delivered}
