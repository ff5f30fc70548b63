"""Work: one call of a round on its way over the counter, step by step, as the host asks for each."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from toolcrib.calls import CallMetadata, Completed, Denial, Failed, Grant, Outcome, Rejected, Suspended, ToolCall
from toolcrib.formats import WireCall
from toolcrib.hooks import HookSet
from toolcrib.pipeline import Performed, Pipeline, Prepared, Run
from toolcrib.rounds._strict import unfilled

__all__ = ["Desk", "State", "Work"]

State: TypeAlias = Literal["pending", "handled", "rejected", "suspended", "issue"]


@dataclass(frozen=True, slots=True)
class Desk:
    """Where the calls of one round are taken: the pipeline, the run they are part of, and how tools were defined."""

    pipeline: Pipeline
    run: Run
    strict: bool = False


class Work:
    """One call, how far it is, and what came of it.

    Attributes:
        prepared: The call with its arguments; None when these cannot be read.
        asked: Whether its gates were asked.
        begun: Whether its tool was started; it is never started twice.
        performed: What the tool came to.
        outcome: What a gate ended it with; None while it may go on.
        finished: What it came to after the post hooks.
    """

    __slots__ = ("_input", "_made_of", "asked", "begun", "desk", "finished", "outcome", "performed", "prepared", "wire")

    def __init__(self, desk: Desk, wire: WireCall) -> None:
        self.desk, self.wire = desk, wire
        self.asked = self.begun = False
        self.performed: Performed | None = None
        self.finished: Outcome | None = None
        self._input: Any = None
        self._made_of: object = None
        self.prepared: Prepared | None = None
        self.outcome: Outcome | None = None
        self._take(desk.pipeline.receive(self._call(), desk.run))

    def _call(self) -> ToolCall:
        wire, desk = self.wire, self.desk
        return ToolCall(wire.name, unfilled(desk.pipeline.toolset, wire) if desk.strict else wire.arguments, wire.id)

    @property
    def metadata(self) -> CallMetadata:
        """The call as it came."""
        return CallMetadata(self.wire.id, self.wire.name, self.wire.arguments)

    @property
    def state(self) -> State:
        """Where the call stands."""
        if self.outcome is None:
            return "pending"
        match self.outcome:
            case Completed():
                return "handled"
            case Rejected():
                return "rejected"
            case Suspended():
                return "suspended"
            case Failed():
                return "issue"

    @property
    def ready(self) -> Prepared:
        """The call with its arguments, for whoever knows that they could be read."""
        if self.prepared is None:
            raise RuntimeError(f"the arguments of `{self.wire.name}` could not be read")
        return self.prepared

    # --- the input that the host sees, and may edit

    @property
    def input(self) -> Any:
        """The input as hooks left it: the host's own copy, so that an edit is noticed and asked about."""
        prepared = self.ready
        source = prepared.call.arguments if prepared.source is None else prepared.source
        if self._made_of is not source:
            self._input, self._made_of = prepared.plan.parse(_own(source)), source
        return self._input

    @input.setter
    def input(self, value: Any) -> None:
        prepared = self.ready
        kind = prepared.plan.spec.input_model
        if not isinstance(value, kind):
            raise TypeError(
                f"the input of `{self.wire.name}` is a {kind.__name__}, and this is a {type(value).__name__}"
            )
        self._input = value
        self._made_of = prepared.call.arguments if prepared.source is None else prepared.source

    def edited(self) -> dict[str, Any] | None:
        """Return the arguments that the host made of the input; None when it left it as it was."""
        prepared = self.ready
        source = prepared.call.arguments if prepared.source is None else prepared.source
        if self._made_of is not source:
            return None
        arguments = prepared.plan.spec.arguments(self._input)
        return None if _equal(arguments, prepared.arguments) else _own(arguments)

    # --- the steps

    async def ask(self, hooks: HookSet | None) -> None:
        """Ask the call's gates, or once they were asked these hooks alone.

        Raises:
            InvalidArguments: The host edited the input to what does not fit; the call is as it was.
        """
        pipeline, run = self.desk.pipeline, self.desk.run
        made: Prepared | Outcome
        if self.asked:
            edited = self.edited() if self.outcome is None else None
            if self.outcome is not None or (hooks is None and edited is None):
                return
            made = await pipeline.again(self.ready, run, hooks=hooks, arguments=edited)
        elif self.prepared is None:  # once more, so that it is counted and recorded
            self.asked = True
            made = await pipeline.prepare(self._call(), run, hooks=hooks)
        else:
            edited = None if self._made_of is None else self.edited()  # nobody looked at the input
            if edited is not None:
                self.prepared.revise(edited)
            self.asked = True
            made = await pipeline.prepare(self.prepared, run, hooks=hooks)
        self._take(made)

    async def resolve(self, answer: Grant | Denial | None) -> None:
        """Take up a call that waits for a person with what they said; with None their store or approver is asked."""
        if isinstance(self.outcome, Suspended):
            self._take(await self.desk.pipeline.prepare(self.outcome, self.desk.run, answer))

    async def readmit(self) -> None:
        """Ask availability and approval once more for a call that was taken up from its JSON."""
        if not self.begun:
            self._take(await self.desk.pipeline.readmit(self.ready, self.desk.run))

    def provide(self, values: Mapping[str, Any]) -> None:
        """Add what the caller supplies for injected parameters of this call."""
        prepared = self.ready
        if values and prepared.ctx is None:
            prepared.enter(self.desk.run)
        if values and prepared.ctx is not None:
            prepared.ctx.provided = {**prepared.ctx.provided, **values}

    async def perform(self) -> None:
        """Run the call's tool, once; input that was edited since its gates were asked is asked about first."""
        if not self.begun:
            await self.ask(None)
        if self.begun or self.outcome is not None:
            return
        self.begun = True
        made = await self.desk.pipeline.perform(self.ready, self.desk.run)
        if isinstance(made, Performed):
            made.value = _as_it_is_now(made.value)
            self.performed = made
        else:
            self.begun = not isinstance(made, Suspended)  # a tool that asks for approval has done nothing before
            self._take(made)

    async def finish(self, output: Any, error: Exception | None) -> Outcome:
        """Let the post hooks at what the tool or the host's own code came to, once, and close the record."""
        if self.finished is None:
            performed = self._performed(output, error)
            self.finished = await self.desk.pipeline.finish(performed, self.desk.run)
        return self.finished

    def finish_at_once(self, output: Any, error: Exception | None) -> Outcome | None:
        """Do what `finish` does where there is no post hook to wait for; else nothing, and return None."""
        if self.finished is None and not self.ready.plan.held:
            desk = self.desk
            self.finished = desk.pipeline.finished(self._performed(output, error), desk.run)
        return self.finished

    def _performed(self, output: Any, error: Exception | None) -> Performed:
        performed = self.performed
        if performed is None:
            performed = self.performed = self.desk.pipeline.performed(self.ready, output, error)
        else:
            performed.value, performed.error = output, error
        return performed

    def end(self, outcome: Outcome) -> Outcome:
        """Close a call that the host answers in the place of its tool."""
        if self.finished is None:
            self.finished = outcome
            trace = self.ready.trace
            if trace is not None:
                trace.ended(outcome)
        return self.finished

    def cancel(self) -> None:
        """Close the record of a call that nobody will answer."""
        trace = None if self.prepared is None else self.prepared.trace
        if trace is not None:
            trace.cancelled()  # does nothing when the record was made

    def _take(self, made: Prepared | Outcome) -> None:
        if isinstance(made, Prepared):
            self.prepared, self.outcome = made, None
        else:
            self.outcome = made


def _own(value: Any) -> Any:
    """Return a copy that shares nothing with the call; anybody's types may refuse to be copied."""
    if not isinstance(value, Mapping):
        return value
    source: Mapping[str, Any] = value  # pyright: ignore[reportUnknownVariableType] -- checked just above
    try:
        return deepcopy(source)
    except Exception:  # anybody's __deepcopy__
        return dict(source)


def _as_it_is_now(value: Any) -> Any:
    """Return a result that later calls cannot change before it is committed: its dicts and lists are copied."""
    try:
        return _copied(value)
    except RecursionError:  # it contains itself
        return value


def _copied(value: Any) -> Any:
    kind: type[Any] = value.__class__
    if kind is dict:
        return {key: _copied(part) for key, part in value.items()}
    return [_copied(part) for part in value] if kind is list else value


def _equal(one: object, other: object) -> bool:
    try:
        return bool(one == other)
    except Exception:  # anybody's __eq__; what cannot be compared is taken to be edited
        return False
