"""Calls of a round as the host sees them: decoded, handled, rejected or suspended."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from inspect import isawaitable, isclass
from typing import Any, Generic, Literal, TypeAlias, TypeVar, cast

from toolcrib.calls import (
    ApprovalRequest,
    CallMetadata,
    Complete,
    Completed,
    Decision,
    Failed,
    Outcome,
    Reject,
    Rejected,
    RunNormally,
    Suspended,
    error_of,
)
from toolcrib.errors import RoundError, closest
from toolcrib.hooks import HookSet
from toolcrib.rounds._results import ToolResult
from toolcrib.rounds._round_call import RoundCall
from toolcrib.tools import Tool, checked_output
from toolcrib.toolsets import Selector

__all__ = [
    "Answer",
    "DecodedCall",
    "HandledTool",
    "RejectedTool",
    "RoundHook",
    "RoundHooks",
    "SuspendedTool",
    "answered_call",
    "hooks_of",
]

I = TypeVar("I")  # noqa: E741 -- the input of a call


class DecodedCall(Generic[I]):
    """A call that a model makes, with its input as a Python object.

    `I` is the type of the input: the declared model, or a function's `input_model`.
    """

    __slots__ = ("_call", "_shown")

    def __init__(self, call: RoundCall, shown: I | None = None) -> None:
        self._call, self._shown = call, shown

    @property
    def metadata(self) -> CallMetadata:
        """Its id, the tool's name, and the arguments as the model sent them."""
        return self._call.metadata

    @property
    def id(self) -> str:
        """The id that its result has to name."""
        return self._call.id

    @property
    def name(self) -> str:
        """The tool's name."""
        return self._call.name

    @property
    def caller(self) -> str:
        """What made it: `direct` is the model itself, another word a program of the model's at the provider."""
        return self._call.wire.caller

    @property
    def tool(self) -> Tool[..., Any]:
        """The tool."""
        return self._call.readable.tool

    @property
    def selector(self) -> Selector[Any]:
        """What stands for the tool in the toolset."""
        return Selector(self.name, self.tool, self.tool)

    @property
    def input(self) -> I:
        """The input, as hooks left it. It may be edited, or another one assigned, until the call is executed.

        An edit is validated, and every gate is asked again, when hooks are applied, the call is executed or its result
        is committed. The transcript keeps what the model sent.
        """
        return self._call.input if self._shown is None else self._shown

    @input.setter
    def input(self, value: I) -> None:
        if self._shown is None:
            self._call.input = value
        else:  # of a hook, which returns it
            self._shown = value

    def into_parts(self) -> tuple[CallMetadata, I]:
        """Return the metadata and the input."""
        return self.metadata, self.input

    # --- answering it

    def complete(self, output: Any) -> ToolResult:
        """Return the result that answers this call.

        Raises:
            InvalidOutput: The output is not of the type that the tool declares.
        """
        call = self._call
        return ToolResult(call.id, call.name, checked_output(call.readable.tool, call.name, output))

    def fail(self, error: Exception) -> ToolResult:
        """Return the result that answers this call with what went wrong; post hooks may still mend it.

        Raises:
            TypeError: It is no exception.
        """
        if not isinstance(cast("object", error), Exception):
            raise TypeError(f"`fail` takes an exception, as in call.fail(ValueError({error!r:.60}))")
        return ToolResult(self.id, self.name, error=error)

    def handled(self, output: Any) -> HandledTool[I]:
        """Return the answer of a call whose tool is not executed; raises as `complete` does."""
        return HandledTool(self, checked_output(self.tool, self.name, output))

    def reject(self, reason: str) -> RejectedTool[I]:
        """Return the refusal of this call."""
        return RejectedTool(self, reason)

    async def hook(
        self, hooks: RoundHooks = None
    ) -> DecodedCall[I] | HandledTool[I] | RejectedTool[I] | SuspendedTool[I] | Failed:
        """Ask this call's gates now, as `apply_hooks` does for a whole round, and return where it stands.

        It is the call itself while it may be executed; a Failed when a gate broke.
        """
        await self._call.ask(hooks_of(hooks, {self.id: self._call}))
        return standing_of(self, self._call.outcome)

    async def call(self, **provided: Any) -> Any:
        """Execute the tool's function with the input, and return what it returns.

        Every gate is asked first, unless they were asked about this input before. Answer with `complete`, or `fail`.

        Args:
            provided: Values for its `Injected` and `Injectable` parameters, by name; the others get the run's.

        Raises:
            TypeError: It has no such parameter; nothing ran.
            InvalidArguments: The input was edited to what does not fit; nothing ran.
            ApprovalRequired: It is suspended until a person answers; nothing ran.
            ApprovalDenied: It was refused; nothing ran.
            RoundError: It was executed before.
            Exception: What the tool raised.
        """
        call = self._call
        if call.begun:
            raise RoundError((f"`{self.name}` ({self.id}) was executed before, and is never executed twice",))
        unknown = next((name for name in provided if name not in self.tool.spec.injected), None)
        if unknown is not None:
            known = closest(unknown, self.tool.spec.injected)
            raise TypeError(f"`{self.name}` takes no `{unknown}` from its caller. {known}")
        await call.ask()
        if call.outcome is None:
            call.provide(provided)
            await call.execute()
        if isinstance(call.outcome, Completed):
            raise RoundError((f"`{self.name}` was answered by a hook, and is not executed",))
        if call.outcome is not None:
            raise error_of(call.outcome)
        executed = call.readable
        if executed.error is not None:
            raise executed.error
        return executed.value

    def __repr__(self) -> str:
        return f"<DecodedCall {self.name} {self.id}>"


@dataclass(frozen=True, slots=True)
class HandledTool(Generic[I]):
    """A call that was answered without executing the tool, by a hook for example."""

    call: DecodedCall[I]
    output: Any


@dataclass(frozen=True, slots=True)
class RejectedTool(Generic[I]):
    """A call that was refused.

    Attributes:
        source: As in `Rejected`: `hook`, `user` or `limit`.
    """

    call: DecodedCall[I]
    reason: str
    source: Literal["hook", "user", "limit"] = "hook"


@dataclass(frozen=True, slots=True)
class SuspendedTool(Generic[I]):
    """A call that is suspended until a person answers.

    Attributes:
        request: What the person is asked; answer with `request.grant(...)` or `request.deny(...)`, and where it is
            `in_doubt` perhaps with `request.done(result)`.
    """

    call: DecodedCall[I]
    request: ApprovalRequest


Standing: TypeAlias = DecodedCall[I] | HandledTool[I] | RejectedTool[I] | SuspendedTool[I] | Failed
"""Where a call stands: the call itself while it may be executed, and a Failed when a gate broke."""


def standing_of(call: DecodedCall[I], outcome: Outcome | None) -> Standing[I]:
    """Return where a call stands that came to this outcome, or to none yet."""
    match outcome:
        case None:
            return call
        case Completed(value=output):
            return HandledTool(call, output)
        case Rejected(reason=reason, source=source):
            return RejectedTool(call, reason, source)
        case Suspended(request=request):
            return SuspendedTool(call, request)
        case Failed():
            return outcome


Answer: TypeAlias = ToolResult | HandledTool[Any] | RejectedTool[Any]
"""What may be given for a pending call when a round is committed."""


def answered_call(answer: object) -> DecodedCall[Any]:
    """Return the call that a hook's answer or a refusal is of; TypeError for what is no answer at all."""
    if isinstance(answer, HandledTool | RejectedTool):
        return cast("HandledTool[Any] | RejectedTool[Any]", answer).call
    raise TypeError(
        "a result is what `call.complete(output)`, `call.fail(error)` or `call.reject(reason)` returns, and this is a "
        f"{type(answer).__qualname__}"
    )


# --- hooks of a round

RoundHook: TypeAlias = Callable[[DecodedCall[Any]], Awaitable[Any]]
"""A closure as hooks: it is given a call, and returns `call.handled(...)`, `call.reject(...)`, a decision, or it."""

RoundHooks: TypeAlias = HookSet | RoundHook | None
"""Decision hooks for a round: a hook set, or an async function of each call."""


def hooks_of(hooks: RoundHooks, calls: Mapping[str, RoundCall]) -> HookSet | None:
    """Return what a round is given as hooks as a hook set; a closure is given one of these calls."""
    if hooks is None or isinstance(hooks, HookSet):
        return hooks
    if isclass(hooks) or not callable(hooks):
        what = getattr(hooks, "__name__", type(hooks).__name__)
        raise TypeError(
            f"hooks of a round are a HookSet or a function that takes a call, and this is a {what}; register an "
            "object with methods: hooks = HookSet(toolset); hooks.register(policy)"
        )

    async def closure(about: CallMetadata, given: Any) -> Decision:
        call = DecodedCall[Any](calls[about.id], given)
        made = hooks(call)
        answer: Any = await made if isawaitable(made) else made
        match answer:
            case None | DecodedCall():
                return RunNormally(call.input)
            case HandledTool(output=output):
                return Complete(output)
            case RejectedTool(reason=reason):
                return Reject(reason)
            case _:
                return answer  # a decision; anything else is refused with its type's name

    made = HookSet()
    closure.__name__ = getattr(hooks, "__name__", "closure")
    made.register(closure)
    return made
