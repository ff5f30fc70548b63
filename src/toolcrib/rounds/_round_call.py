"""Work: one call of a round on its way over the counter, step by step, as the host asks for each."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from toolcrib.calls import CallMetadata, Completed, Denial, Failed, Grant, Outcome, Rejected, Suspended, ToolCall
from toolcrib.errors import InvalidArguments
from toolcrib.formats import WireCall
from toolcrib.hooks import HookSet
from toolcrib.pipeline import Call, Pipeline, Run, is_call
from toolcrib.rounds._strict import unfilled

__all__ = ["Desk", "Result", "State", "Work"]

State: TypeAlias = Literal["pending", "handled", "rejected", "suspended", "issue"]


@dataclass(frozen=True, slots=True)
class Desk:
    """Where the calls of one round are taken: the pipeline, the run they are part of, and how tools were defined."""

    pipeline: Pipeline
    run: Run
    strict: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """What the tool of a call came to: a value, or the error that it raised."""

    value: Any = None
    error: Exception | None = None


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
        self.performed: Result | None = None
        self.finished: Outcome | None = None
        self._input: Any = None
        self._made_of: object = None
        self.prepared: Call | None = None
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
    def ready(self) -> Call:
        """The call with its arguments, for whoever knows that they could be read."""
        if self.prepared is None:
            raise RuntimeError(f"the arguments of `{self.wire.name}` could not be read")
        return self.prepared

    # --- the input that the host sees, and may edit

    @property
    def input(self) -> Any:
        """The input as hooks left it: the host's own copy, so that an edit is noticed and asked about."""
        prepared = self.ready
        source = prepared.raw_arguments
        if self._made_of is not source:
            spec = prepared.tool.spec
            text = isinstance(source, str | bytes)
            self._input = spec.validate_json(source) if text else spec.validate_python(_own(source))
            self._made_of = source
        return self._input

    @input.setter
    def input(self, value: Any) -> None:
        prepared = self.ready
        kind = prepared.tool.spec.input_model
        if not isinstance(value, kind):
            raise TypeError(
                f"the input of `{self.wire.name}` is a {kind.__name__}, and this is a {type(value).__name__}"
            )
        self._input = value
        self._made_of = prepared.raw_arguments

    def edited(self) -> dict[str, Any] | None:
        """Return the arguments that the host made of the input; None when it left it as it was."""
        prepared = self.ready
        source = prepared.raw_arguments
        if self._made_of is not source:
            return None
        arguments = prepared.tool.spec.arguments(self._input)
        return None if _equal(arguments, prepared.arguments) else _own(arguments)

    # --- the steps

    async def ask(self, hooks: HookSet | None) -> None:
        """Ask the call's gates, or once they were asked these hooks alone.

        Raises:
            InvalidArguments: The host edited the input to what does not fit; the call is as it was.
        """
        pipeline, run = self.desk.pipeline, self.desk.run
        made: Call | Outcome
        if self.asked:
            edited = self.edited() if self.outcome is None else None
            if self.outcome is not None or (hooks is None and edited is None):
                return
            made = await pipeline.admit(self.ready, hooks=hooks, arguments=edited)
        elif self.prepared is None:  # once more, so that it is counted and recorded
            self.asked = True
            made = await pipeline.admit(self._call(), run, hooks=hooks)
        else:
            edited = None if self._made_of is None else self.edited()  # nobody looked at the input
            self.asked = True
            try:
                made = await pipeline.admit(self.prepared, hooks=hooks, arguments=edited)
            except InvalidArguments:
                self.asked = False
                raise
        self._take(made)

    async def resolve(self, answer: Grant | Denial | None) -> None:
        """Take up a call that waits for a person with what they said; with None their store or approver is asked."""
        if isinstance(self.outcome, Suspended):
            self._take(await self.desk.pipeline.recover(self.outcome, self.desk.run, grant=answer))

    async def readmit(self) -> None:
        """Ask availability and approval once more for a call that was taken up from its JSON."""
        if not self.begun:
            self._take(await self.desk.pipeline.recover(self.ready, self.desk.run))

    def provide(self, values: Mapping[str, Any]) -> None:
        """Add what the caller supplies for injected parameters of this call."""
        self.desk.pipeline.provide(self.ready, values)

    async def perform(self) -> None:
        """Run the call's tool, once; input that was edited since its gates were asked is asked about first."""
        if not self.begun:
            await self.ask(None)
        if self.begun or self.outcome is not None:
            return
        self.begun = True
        made = await self.desk.pipeline.execute(self.ready)
        if is_call(made):
            self.performed = Result(_as_it_is_now(made.value), made.error)
        else:
            self.begun = not isinstance(made, Suspended)  # a tool that asks for approval has done nothing before
            self._take(made)

    async def finish(self, output: Any, error: Exception | None) -> Outcome:
        """Let the post hooks at what the tool or the host's own code came to, once, and close the record."""
        if self.finished is None:
            self.finished = await self.desk.pipeline.finish(self._executed(output, error))
        return self.finished

    def finish_at_once(self, output: Any, error: Exception | None) -> Outcome | None:
        """Do what `finish` does where there is no post hook to wait for; else nothing, and return None."""
        if self.finished is None and not self.ready.waits_for_post_hooks:
            self.finished = self.desk.pipeline.finish_now(self._executed(output, error))
        return self.finished

    def _executed(self, output: Any, error: Exception | None) -> Call:
        self.performed = Result(output, error)
        return self.desk.pipeline.executed(self.ready, output, error)

    def end(self, outcome: Outcome) -> Outcome:
        """Close a call that the host answers in the place of its tool."""
        if self.finished is None:
            self.finished = self.desk.pipeline.answer(self.ready, outcome)
        return self.finished

    def cancel(self) -> None:
        """Close the record of a call that nobody will answer."""
        if self.prepared is not None:
            self.desk.pipeline.discard(self.prepared)

    def _take(self, made: Call | Outcome) -> None:
        if is_call(made):
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
