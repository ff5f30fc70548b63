"""LiveCall: a call as the pipeline moves it, from its arrival to its record."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import chain
from operator import attrgetter
from types import MappingProxyType
from typing import Any
from uuid import NAMESPACE_URL, uuid4, uuid5

from pydantic import BaseModel

from toolcrib import calls, record, tools
from toolcrib.calls import Failed, Outcome, Suspended, ToolCall
from toolcrib.errors import FieldProblem, InvalidArguments
from toolcrib.hooks import HookSet
from toolcrib.pipeline._arguments import NOT_READ, Arguments
from toolcrib.pipeline._call import NO_HISTORY, NOT_ASKED, NOT_BEGUN, Approval, CallState, Execution, History
from toolcrib.pipeline._compiled_tool import CompiledTool
from toolcrib.pipeline._failures import error_shapes, hook_failure
from toolcrib.pipeline._run import Run
from toolcrib.schema import RunContext
from toolcrib.tools import Tool
from toolcrib.toolsets import ToolEntry, Toolset

_NOTHING: Mapping[str, Any] = MappingProxyType({})
_NOWHERE = nullcontext()
_WITHOUT_EFFECT = frozenset({"none", "fetch", "program"})


def _part(path: str) -> Any:
    """Return the property that has something of a part of the call, which only the pipeline moves."""
    return property(attrgetter(path))


class LiveCall:
    """The call itself: one is made for every request.

    Attributes:
        trace: Emits the call's events; None when there is no sink.
        ctx: The run as hooks and tool see it; None when neither does.
        args: The arguments, once they are read.
        begun: Whether its tool, or the host in its place, has begun: it is not executed a second time.
        extra_hooks: Decision hooks that were given for this call alone.
    """

    __slots__ = (
        "approval", "args", "begun", "ctx", "error", "execution", "extra_hooks", "history", "notes", "outcome", "plan",
        "received", "run", "state", "trace", "value",
    )  # fmt: skip

    def __init__(self, received: ToolCall, plan: CompiledTool, run: Run, trace: record.Trace | None = None) -> None:
        self.received = received
        self.plan = plan
        self.run = run
        self.trace = trace
        self.ctx: RunContext[Any] | None = None
        self.args: Arguments = NOT_READ
        self.state: CallState = "received"
        self.begun = False
        self.value: Any = None
        self.error: Exception | None = None
        self.outcome: Outcome | None = None
        self.notes: tuple[calls.DecisionNote, ...] = ()
        self.approval: Approval = NOT_ASKED
        self.history: History = NO_HISTORY
        self.execution: Execution = NOT_BEGUN
        self.extra_hooks: tuple[HookSet, ...] = ()

    # --- what it is

    id: str = _part("received.id")
    name: str = _part("plan.name")
    tool: Tool[..., Any] = _part("plan.tool")
    entry: ToolEntry = _part("plan.entry")
    toolset: Toolset = _part("plan.toolset")
    canonical_arguments: Mapping[str, Any] = _part("args.canonical.values")
    shown_arguments: dict[str, Any] = _part("args.for_display")
    request: calls.ApprovalRequest | None = _part("approval.request")
    grant: calls.Grant | None = _part("approval.grant")

    @property
    def arguments(self) -> Mapping[str, Any]:
        return MappingProxyType(self.args.copy())

    @property
    def raw_arguments(self) -> Any:
        return self.received.arguments if self.args is NOT_READ else self.args.raw

    @property
    def is_recorded(self) -> bool:
        return self.trace is not None

    @property
    def digest(self) -> str:
        return self.args.canonical.digest(self.plan.name, self.history.digest_key)

    @property
    def hiding(self) -> calls.Hiding:
        """The mask, for texts, of the secrets of its arguments and of those that its tool gets besides."""
        return self.args.hiding_in(self.ctx)

    def hide(self, shapes: Any, limit: int | None = None) -> Any:
        """Return a text, which is cut where it is longer than a limit, or JSON shapes, without secrets of the call."""
        return self.hiding.hide_in(shapes, limit) if shapes else shapes

    def _hidden_origins(self, origins: Sequence[Mapping[str, str]]) -> tuple[Mapping[str, str], ...]:
        return tuple({**item, "value": self.hide(item["value"])} if "value" in item else item for item in origins)

    def asked_origins(self, gate: str) -> Sequence[Mapping[str, str]]:
        return self.approval.origins.get(gate, ())

    @property
    def is_executable(self) -> bool:
        return self.plan.execution is not None or self.plan.has_wrappers

    @property
    def counted_in(self) -> str:
        """The id of the run that counted the call when it came."""
        return self.runs[0]

    @property
    def runs(self) -> tuple[str, ...]:
        """The ids of the runs that it came through, with that of its own."""
        return tuple(dict.fromkeys((*self.history.runs, self.run.id)))

    @property
    def was_revealed(self) -> bool:
        """True if its tool was found in the run, or in one that it came through."""
        return self.history.revealed or self.plan.name in self.run.revealed

    @property
    def done_before(self) -> bool:
        """True if the result came from elsewhere: another process, or an approver's answer."""
        grant = self.approval.grant
        is_answered = grant is not None and grant.done is not None
        return self.state == "executed" and (is_answered or self.history.trace is not None)

    @property
    def is_noted(self) -> bool:
        """True if the store of its run has to know when it begins and ends, and lets one of its copies begin."""
        if self.run.approvals is None or self.execution.noted == "ended":
            return False
        return self.approval.grant is not None or self.has_noted_effect

    @property
    def has_noted_effect(self) -> bool:
        """True if the store of its run has to know of it though it needs no approval."""
        options = self.plan.tool.options
        return self.run.durability.store is not None and not (options.idempotent or options.effect in _WITHOUT_EFFECT)

    @property
    def waits_for_post_hooks(self) -> bool:
        """True if something has to be awaited when its tool has run: post hooks, deliveries, a result store."""
        return self.plan.finish_is_async or bool(self.run.delivery_steps)

    @property
    def metadata(self) -> dict[str, Any]:
        """The dict that this call's middleware shares."""
        return self.ctx.metadata if self.ctx is not None else {}

    @property
    def watched(self) -> bool:
        """True if each value of a stream goes to a sink, a hook or a feature."""
        return (
            self.trace is not None or bool(self.plan.value_post_hooks or self.run.feature_parts) or self.has_deliveries
        )

    @property
    def has_deliveries(self) -> bool:
        """True if its values pass deliveries before anyone has them."""
        return bool(self.plan.deliveries or self.run.delivery_steps)

    def parse(self) -> BaseModel:
        return self.plan.make_input(self.raw_arguments)

    # --- its record, cut off

    def __enter__(self) -> LiveCall:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        """Close the record as cancelled, when the body is left by an exception."""
        if kind is not None:
            self.close_cancelled()

    def close_cancelled(self) -> None:
        """Close the record as cancelled, unless it was made."""
        if self.trace is not None:
            self.trace.cancelled()

    def activate(self) -> AbstractContextManager[None]:
        """Return a context manager in which activities that hooks and tool start are known to be the call's."""
        return _NOWHERE if self.trace is None else self.trace.within()

    # --- its gates

    def add_note(self, note: calls.DecisionNote, *, given: bool = False) -> None:
        """Add the decision of a gate, and emit it.

        Args:
            note: The decision.
            given: Whether it is a hook that the host gave for this call alone.
        """
        note = replace(note, reason=self.hide(note.reason), origins=self._hidden_origins(note.origins))
        self.notes = (*self.notes, note)
        if self.trace is not None:
            self.trace.decided(note, given=given)

    def add_reason(self, reason: str, facts: Mapping[str, Any] = _NOTHING) -> None:
        """Add a reason for which a person has to be asked, and what they are shown besides."""
        self.approval = replace(self.approval, reasons=(*self.approval.reasons, reason))
        self.add_facts(facts)

    def add_facts(self, facts: Mapping[str, Any]) -> None:
        if facts:
            self.approval = replace(self.approval, metadata={**self.approval.metadata, **facts})

    def note_answer(self, answer: dict[str, Any]) -> None:
        if self.trace is not None:
            hidden = {"message": self.hide(answer["message"])} if "message" in answer else {}
            self.trace.answered({**answer, **hidden})

    def hook_failure(self, kind: str, hook: object, raised: BaseException) -> Failed:
        return hook_failure(self, kind, hook, raised)

    def request_about(self, id: str, reason: str, **more: Any) -> calls.ApprovalRequest:
        run = self.run
        shown = {
            name: value if str(name).startswith(calls.APPROVER_RULES) else self.hide(value)
            for name, value in more.get("metadata", {}).items()
        }
        fields: dict[str, Any] = {
            "arguments": self.args.for_approval,
            "call_id": self.id,
            "digest": self.digest,
            "requested": self.shown_request(),
            "run_id": run.id,
            "principal": run.principal,
            "agent": run.channel.agent,
            "conversation_id": run.channel.conversation_id,
            "definition": self.plan.definition,
            **more,
            "metadata": shown,
            "origins": self._hidden_origins(more.get("origins", ())),
        }
        return calls.ApprovalRequest(id=id, tool=self.name, reason=self.hide(reason), **fields)

    # --- its arguments

    def read_arguments(self, gated: bool = True) -> None:
        """Read the arguments that were received.

        Args:
            gated: Whether a gate looks at a host's own: they are left as they are where nothing does.

        Raises:
            InvalidArguments: They do not fit.
            SchemaError: The tool has no schema to check a model's arguments against.
        """
        received, plan = self.received, self.plan
        raw = received.arguments
        if received.fault:
            text = calls.fault_text(received.fault, raw, quoted=not plan.spec.has_secrets)
            raise InvalidArguments(plan.name, (FieldProblem("", text),))
        if received.origin == "model":
            self.args = Arguments(plan, raw, plan.spec.read(raw))
            return
        unread = not gated and self.trace is None and self.run.durability.recorder is None
        if isinstance(raw, str | bytes):  # validated once: a validator may change what it is given again
            values = plan.tool.bind((), plan.spec.arguments(plan.spec.validate_json(raw)))
        else:
            values = plan.tool.bind((), raw)
            values = values if unread else plan.validated(values)
        self.args = Arguments(plan, raw, values, is_host=True, is_unread=unread)

    def revise(self, arguments: Mapping[str, Any]) -> None:
        """Replace the arguments by edited ones, validated again; raises InvalidArguments where they do not fit."""
        self.args = self.args.edited(arguments)
        if self.execution.seal is not None:
            self.execution = replace(self.execution, seal=None)

    def edit(self, arguments: Mapping[str, Any]) -> None:
        """Replace the arguments by the host's, validated, which no gate has seen; raises what `revise` does."""
        self.revise(arguments)
        self._forget_decisions()
        if self.ctx is not None:
            self.ctx.approved = False

    def override(self, arguments: Mapping[str, Any]) -> None:
        """Replace the arguments by an approver's, which no gate has seen; raises what `read_arguments` does."""
        self.args = self.args.overridden(arguments)
        self.received = ToolCall(self.received.name, dict(self.args.without_defaults), self.id, "model")
        self._forget_decisions()

    def _forget_decisions(self) -> None:
        self.notes = ()
        self.approval = replace(self.approval, reasons=(), metadata=_NOTHING, origins=_NOTHING, digest=None)

    def validate(self) -> None:
        """Validate a host's arguments, if nothing has looked at them so far; raises what `revise` does."""
        self.args = self.args.validated()

    def shown_request(self) -> dict[str, Any]:
        """Return the arguments as they were read at first, before any edit, as they may be shown."""
        return (self.args.original or self.args).for_display

    # --- its way

    def enter(self, metadata: dict[str, Any] | None = None) -> None:
        """Make the context that hooks and tool are given."""
        run, call_id = self.run, self.received.id
        ask = None if run.approver is None else self.ask
        report = None if self.trace is None else self.trace.yielded
        self.ctx = RunContext(  # by position, which costs half: agents have one made for every turn
            run.deps, call_id, self.plan.name, run.id, metadata or {}, None, False, None, call_id, run.provide,
            run.revealed, report, ask, run, self.trace,
        )  # fmt: skip

    async def ask(self, request: calls.ApprovalRequest) -> Any:
        """Ask the run's approver something else than the call itself, for its tool."""
        return None if self.ctx is None else await tools.ask_approver(request, self.ctx, self.run.approver)

    def hide_secrets(self, hide: Callable[..., Any] | None = None) -> None:
        """Pass what hides the secrets to what hooks and tool log, ask and report with."""
        if self.plan.has_secrets:
            self.args.keep_secrets()
        for part in (self.ctx, self.trace):
            if part is not None:
                part.hide = hide or self.hide

    def suspend(self, request: calls.ApprovalRequest) -> Suspended:
        """Move to `suspended`: a person has to be asked by a request."""
        self.approval = replace(self.approval, request=request)
        if self.trace is not None:
            self.trace.suspended(request)
        self.state = "suspended"
        return Suspended(request.tool, request.call_id, request, self)

    def to_dict(self) -> dict[str, Any]:
        if not self.begun:
            self.validate()
        stored, values = self.args.stored(), self.args.canonical.values
        ctx, history = self.ctx, self.history
        first: LiveCall = history.original or self
        if not first.history.key:
            first.history = replace(first.history, key=os.urandom(8).hex())
        data: dict[str, Any] = {
            "name": self.received.name,
            "id": self.received.id,
            "key": first.history.key,
            "origin": self.received.origin,
            "state": self.state,
            "runs": list(self.runs),
            "arguments": values,
            "given": None if stored.values is values else stored.values,
            "reading": stored.reading,
            "digest": "" if stored.lost else self.args.digest,  # which no arguments have
            "metadata": calls.lenient(self.metadata),
            "decisions": [note.to_dict() for note in self.notes],
            **self.approval.to_dict(),
            "revealed": self.was_revealed,
            "extra_hooks": bool(self.extra_hooks) or history.hooks_lost,
            "doubts": history.doubts,
            "idempotency_key": self.id if ctx is None else ctx.idempotency_key,
            "trace": {} if self.trace is None else self.trace.carry(),
            "begun": self.begun,
            **({"digest_key": history.digest_key.hex()} if self.args.has_secrets else {}),
            **({"same_process": list(stored.lost)} if stored.lost else {}),
            **(self._result() if self.state == "executed" else {}),
        }
        if stored.lost:
            return calls.versioned("Call", data)
        return {**data, "version": 2} if self.args.has_secrets else data  # in the oldest form that has its fields

    def _result(self) -> dict[str, Any]:
        if self.error is not None:
            return error_shapes(self, self.error)
        value = calls.jsonable(self.value, self.plan.name, media=True)
        return {"value": value, "delivered": self.execution.delivered}


# --- requests to a person about it


def ask_about(call: LiveCall, reasons: list[str]) -> calls.ApprovalRequest:
    """Return the request that asks a person about a call, or names it to a store, and keep it in the call."""
    request = request_for(call, reasons)
    call.approval = replace(call.approval, request=request)
    return request


def request_for(call: LiveCall, reasons: list[str]) -> calls.ApprovalRequest:
    """Return the request that asks a person about a call, or names it to a store."""
    plan, run, before, follows = call.plan, call.run, call.request, None
    source = plan.tool.source
    extra = source.get_call_metadata(call.args.for_approval) if source is not None else None
    in_doubt = call.history.doubts > 0
    earlier: Mapping[str, Any] = run.durability.begun.get(call.id, {}) if in_doubt else {}
    access, needed = run.channel.access, plan.tool.options.approvals_needed
    known_ids = (*(() if before is None else before.requester_ids), *(() if access is None else access.ids))
    asked = f"{call.counted_in}:{call.id}:{call.history.doubts}:{call.digest}"
    if in_doubt and before is not None:  # by whose answer it began
        follows = before.id if call.state == "executing" else before.begun_by
    if in_doubt:
        key = asked if follows is None else f"{follows}:{plan.definition}"
        request_id = uuid5(NAMESPACE_URL, f"toolcrib:in-doubt:{key}")
    elif run.durability.fence is None:
        request_id = uuid4()
    else:  # two executions of one piece of work ask one question, however late the first of them is heard
        request_id = uuid5(
            NAMESPACE_URL, f"toolcrib:asked:{run.channel.program_id}:{asked}:{plan.definition}:{run.principal}"
        )
    request = call.request_about(
        f"ask_{request_id.hex}",
        "; ".join(reason for reason in reasons if reason),
        call_id=call.id if before is None else before.call_id,
        metadata={**(extra or {}), **call.approval.metadata, **earlier},
        parameters=plan.parameters,
        in_doubt=in_doubt,
        returns=tools.output_schema(plan.tool) if in_doubt else None,
        approvals_needed=needed,
        requester_ids=tuple(dict.fromkeys(known_ids)) if needed > 1 else (),
        origins=tuple(chain.from_iterable(call.approval.origins.values())),
        values_alone=bool(call.approval.origins) and len(reasons) == 1,
        follows=follows,
    )
    known = call.state == "suspended" or (run.approvals is not None and not in_doubt)
    if before is None or not known:
        return request
    if request.asks_what(before):  # a recovered call asks what it asked before
        reason = request.reason if before.replaces is None else before.reason
        return replace(request, id=before.id, created_at=before.created_at, reason=reason, replaces=before.replaces)
    return request.in_place_of(before) if before.definition != request.definition else request


def began_by(call: LiveCall, used: calls.Grant | None) -> calls.ApprovalRequest:
    """Return the request by which a call began of which its arguments and the grant were kept, if it had one."""
    request = request_for(call, [])
    return request if used is None or used.request_id is None else replace(request, id=used.request_id)
