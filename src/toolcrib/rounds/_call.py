"""Calls of a round: the pipeline's calls with what the provider sent, as the host sees and answers them.

A `DecodedCall` has no state of its own: the pipeline moves the call in it, and what a gate ended that with is where it
stands. Handled, rejected and suspended calls are views of it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from inspect import isawaitable, isclass
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar, cast

from toolcrib._short_repr import kind_of
from toolcrib.calls import (
    ApprovalRequest,
    CallMetadata,
    Complete,
    Completed,
    Decision,
    Denial,
    Failed,
    Grant,
    Outcome,
    Reject,
    Rejected,
    RunNormally,
    Suspended,
    ToolCall,
    copied,
    error_of,
)
from toolcrib.errors import RoundError, closest
from toolcrib.formats import WireCall
from toolcrib.hooks import HookSet
from toolcrib.pipeline import Call, Pipeline, Run, is_call
from toolcrib.rounds._results import ToolResult
from toolcrib.rounds._tool_calls import are_equal, own_copy
from toolcrib.tools import Tool, checked_output
from toolcrib.toolsets import Selector

I = TypeVar("I")  # noqa: E741 -- the input of a call

CallGroup: TypeAlias = Literal["pending", "handled", "rejected", "suspended", "issue"]
"""The part of a plan that a call is in."""
OUTCOMES: Final[Mapping[CallGroup, type]] = {
    "pending": type(None),
    "handled": Completed,
    "rejected": Rejected,
    "suspended": Suspended,
    "issue": Failed,
}
"""The type of the outcome of the calls in a part."""
_GROUPS: Final[Mapping[type, CallGroup]] = {outcome: group for group, outcome in OUTCOMES.items()}
_OF_A_HOOK: Final = object()  # the input is one that a hook was given, and returns


class DecodedCall(Generic[I]):
    """A call that a model makes, with its input as a Python object.

    `I` is the type of the input: the declared model, or a function's `input_model`.

    Attributes:
        id: The id that its result has to name.
        name: The tool's name.
        wire: The call as the provider sent it.
        pipeline: The pipeline that takes it.
        run: The run that it belongs to.
        pipeline_call: The pipeline's call. A `ToolCall` is one that cannot be read, and that the pipeline has still to
            count and record; None is one that it has recorded.
        outcome: The outcome from a gate, or an observer's failure; None while the call may go on.
        shown_input: The input that the host was given last.
        input_source: The arguments that this input was made of; None where the host has not looked at it.
    """

    __slots__ = ("id", "input_source", "name", "outcome", "pipeline", "pipeline_call", "run", "shown_input", "wire")

    def __init__(
        self,
        wire: WireCall,
        pipeline: Pipeline,
        run: Run,
        pipeline_call: Call | ToolCall | None = None,
        outcome: Outcome | None = None,
    ) -> None:
        self.id: str = wire.id
        self.name: str = wire.name
        self.outcome: Outcome | None = outcome
        self.wire, self.pipeline, self.run, self.pipeline_call = wire, pipeline, run, pipeline_call
        self.shown_input: Any = None
        self.input_source: object = None

    @property
    def metadata(self) -> CallMetadata:
        """Its id, the tool's name, and the arguments as the model sent them."""
        return CallMetadata(self.id, self.name, self.wire.arguments)

    @property
    def caller(self) -> str:
        """The caller: `direct` is the model itself, another word a program of the model's at the provider."""
        return self.wire.caller

    @property
    def tool(self) -> Tool[..., Any]:
        """The tool."""
        return required_call(self).tool

    @property
    def selector(self) -> Selector[Any]:
        """The compiled tool."""
        return Selector(self.name, self.tool, self.tool)

    @property
    def group(self) -> CallGroup:
        """The part of a plan that it is in."""
        return _GROUPS[type(self.outcome)]

    @property
    def input(self) -> I:
        """The input, as hooks left it. It may be edited, or another one assigned, until the call is executed.

        An edit is validated, and every gate is asked again, when hooks are applied, the call is executed or its result
        is committed. The transcript keeps what the model sent.
        """
        if self.input_source is _OF_A_HOOK:
            return self.shown_input
        call = required_call(self)
        source = call.raw_arguments
        if self.input_source is not source:
            spec = call.tool.spec
            self.shown_input = spec.validate_model(source if isinstance(source, str | bytes) else own_copy(source))
            self.input_source = source
        return self.shown_input

    @input.setter
    def input(self, value: I) -> None:
        if self.input_source is not _OF_A_HOOK:
            call = required_call(self)
            kind = call.tool.spec.input_model
            if not isinstance(value, kind):
                raise TypeError(f"the input of `{self.name}` is a {kind.__name__}, and this is {kind_of(value)}")
            self.input_source = call.raw_arguments
        self.shown_input = value

    def into_parts(self) -> tuple[CallMetadata, I]:
        """Return the metadata and the input."""
        return self.metadata, self.input

    # --- answering it

    def complete(self, output: Any) -> ToolResult:
        """Return the result that answers this call.

        Raises:
            InvalidOutput: The output is not of the type that the tool declares.
        """
        return ToolResult(self.id, self.name, checked_output(required_call(self).tool, self.name, output))

    def fail(self, error: Exception) -> ToolResult:
        """Return the result that answers this call with what went wrong; post hooks may still mend it.

        Raises:
            TypeError: It is not an exception.
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

    async def hook(self, hooks: RoundHooks = None) -> Standing[I]:
        """Ask this call's gates now, as `apply_hooks` does for a whole round, and return where it stands.

        It is the call itself while it may be executed; a Failed when a gate broke.
        """
        await ask(self, hooks_of(hooks, {self.id: self}))
        return standing_of(self)

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
            Exception: The exception of the tool.
        """
        if has_begun(self):
            raise RoundError((f"`{self.name}` ({self.id}) was executed before, and is never executed twice",))
        unknown = next((name for name in provided if name not in self.tool.spec.injected), None)
        if unknown is not None:
            known = closest(unknown, self.tool.spec.injected)
            raise TypeError(f"`{self.name}` takes no `{unknown}` from its caller. {known}")
        await ask(self)
        if self.outcome is None:
            self.pipeline.provide(required_call(self), provided)
            await execute(self)
        if isinstance(self.outcome, Completed):
            raise RoundError((f"`{self.name}` was answered by a hook, and is not executed",))
        if self.outcome is not None:
            raise error_of(self.outcome)
        executed = required_call(self)
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
        request: The question to a person; answer with `request.grant(...)` or `request.deny(...)`, and where it is
            `in_doubt` perhaps with `request.done(result)`.
    """

    call: DecodedCall[I]
    request: ApprovalRequest


Standing: TypeAlias = DecodedCall[I] | HandledTool[I] | RejectedTool[I] | SuspendedTool[I] | Failed
"""The state of a call: the call itself while it may be executed, and a Failed when a gate broke."""


def standing_of(call: DecodedCall[I]) -> Standing[I]:
    """Return where a call stands."""
    match call.outcome:
        case None:
            return call
        case Completed(value=output):
            return HandledTool(call, output)
        case Rejected(reason=reason, source=source):
            return RejectedTool(call, reason, source)
        case Suspended(request=request):
            return SuspendedTool(call, request)
        case Failed() as failed:
            return failed


Answer: TypeAlias = ToolResult | HandledTool[Any] | RejectedTool[Any]
"""The values that a commit takes for a pending call."""


def answered_call(answer: object) -> DecodedCall[Any]:
    """Return the call that a hook's answer or a refusal is of; TypeError for what is not an answer at all."""
    if isinstance(answer, HandledTool | RejectedTool):
        return cast("HandledTool[Any] | RejectedTool[Any]", answer).call
    raise TypeError(
        "a result is what `call.complete(output)`, `call.fail(error)` or `call.reject(reason)` returns, and this is a "
        f"{type(answer).__qualname__}"
    )


# --- the steps of a call, which the pipeline makes


def required_call(call: DecodedCall[Any]) -> Call:
    """Return the pipeline's call of one whose arguments could be read."""
    live = call.pipeline_call
    if live is None or isinstance(live, ToolCall):
        raise RuntimeError(f"the arguments of `{call.name}` could not be read")
    return live


def readable_call(call: DecodedCall[Any]) -> Call | None:
    """Return the pipeline's call; None where the arguments cannot be read."""
    return None if isinstance(call.pipeline_call, ToolCall) else call.pipeline_call


def was_asked(call: DecodedCall[Any]) -> bool:
    """Return whether its gates were asked."""
    live = call.pipeline_call
    return live is None or not (isinstance(live, ToolCall) or live.state == "received")


def has_begun(call: DecodedCall[Any]) -> bool:
    """Return whether its tool was started; it is never started twice."""
    live = call.pipeline_call
    return live is not None and not isinstance(live, ToolCall) and live.begun


def is_executable(call: DecodedCall[Any]) -> bool:
    """Return whether the pipeline can execute it now: a declared input has no function, unless something wraps it."""
    live = required_call(call)
    return not live.begun and live.is_executable


def edited_arguments(call: DecodedCall[Any]) -> dict[str, Any] | None:
    """Return the arguments that the host made of the input; None when no gate has to be asked about it."""
    if call.input_source is None or call.outcome is not None or has_begun(call):  # None: the input was never looked at
        return None
    live = required_call(call)
    if call.input_source is not live.raw_arguments:
        return None
    arguments = live.tool.spec.arguments(call.shown_input)
    return None if are_equal(call.name, arguments, live.arguments) else own_copy(arguments)


def ask_now(call: DecodedCall[Any]) -> bool:
    """Ask as `ask` does where nothing is asked about the call; return whether that is so."""
    live = call.pipeline_call
    if isinstance(live, ToolCall):
        return False
    if call.outcome is not None:
        return True
    if live is None or call.input_source is not None:
        return False
    return live.state not in ("received", "suspended") or call.pipeline.admit_now(live)


async def ask(call: DecodedCall[Any], hooks: HookSet | None = None) -> None:
    """Ask the call's gates: all of them about a new call or edited input, else these hooks alone.

    Raises:
        InvalidArguments: The host edited the input to what does not fit; the call is as it was.
    """
    live = call.pipeline_call
    if isinstance(live, ToolCall):
        call.pipeline_call = None
        _take(call, await call.pipeline.admit(live, call.run, hooks=hooks))
        return
    if call.outcome is not None or has_begun(call):
        return
    edited = edited_arguments(call)
    if edited is not None or hooks is not None or not was_asked(call):
        _take(call, await call.pipeline.readmit(required_call(call), hooks=hooks, arguments=edited))


def check_answer(call: DecodedCall[Any], answer: Grant | Denial | None) -> None:
    """Check the answer to a suspended call; raises what `Pipeline.check_answer` does."""
    if isinstance(call.outcome, Suspended):
        call.pipeline.check_answer(call.outcome.tool, answer, call.outcome, call.run)


async def resolve(call: DecodedCall[Any], answer: Grant | Denial | None) -> None:
    """Resume a suspended call with a person's answer; with None the run's store and approver are asked."""
    if isinstance(call.outcome, Suspended):
        _take(call, await call.pipeline.recover(call.outcome, call.run, grant=answer))


async def execute(call: DecodedCall[Any]) -> None:
    """Run the call's tool, once; the gates are asked first where the input was edited.

    Raises:
        InvalidArguments: The host edited the input to what does not fit; the call is as it was.
        Exception: The exception of an observer.
    """
    if not ask_now(call):
        await ask(call)
    live = required_call(call)
    if call.outcome is not None or live.begun:
        return
    pipeline = call.pipeline
    try:
        executed = await pipeline.execute(live)
    except Exception:  # an observer's, which has ended the call
        call.outcome = live.outcome
        raise
    if executed is not live:
        _take(call, executed)
    elif live.error is None:
        pipeline.executed(live, copied(live.value))


async def finish(call: DecodedCall[Any], output: Any, error: Exception | None) -> Outcome:
    """Run the post hooks on what the tool or the host's code returned, once, and close the record."""
    return await call.pipeline.finish(executed_call(call, output, error))


def executed_call(call: DecodedCall[Any], output: Any, error: Exception | None) -> Call:
    """Return the pipeline's call with what the tool or the host's code returned, for the pipeline to finish."""
    live = required_call(call)
    is_known = live.state == "executed" and live.value is output and live.error is error
    return live if is_known or live.state == "closed" else call.pipeline.executed(live, output, error)


def _take(call: DecodedCall[Any], step: Call | Outcome) -> None:
    """Keep the result of a step of the pipeline."""
    if is_call(step):
        call.pipeline_call, call.outcome = step, None
    else:
        call.outcome = step


# --- hooks of a round

RoundHook: TypeAlias = Callable[[DecodedCall[Any]], Awaitable[Any]]
"""A closure as hooks: it is given a call, and returns `call.handled(...)`, `call.reject(...)`, a decision, or it."""

RoundHooks: TypeAlias = HookSet | RoundHook | None
"""Decision hooks for a round: a hook set, or an async function of each call."""


def hooks_of(hooks: RoundHooks, calls: Mapping[str, DecodedCall[Any]]) -> HookSet | None:
    """Return the hooks of a round as a hook set; a closure is given one of these calls."""
    if hooks is None or isinstance(hooks, HookSet):
        return hooks
    if isclass(hooks) or not callable(hooks):
        name = getattr(hooks, "__name__", type(hooks).__name__)
        raise TypeError(
            f"hooks of a round are a HookSet or a function that takes a call, and this is a {name}; register an "
            "object with methods: hooks = HookSet(toolset); hooks.register(policy)"
        )

    async def closure(about: CallMetadata, input: Any) -> Decision:
        call = _shown_to_hook(calls[about.id], input)
        result = hooks(call)
        answer: Any = await result if isawaitable(result) else result
        match answer:
            case None | DecodedCall():
                return RunNormally(call.input)
            case HandledTool(output=output):
                return Complete(output)
            case RejectedTool(reason=reason):
                return Reject(reason)
            case _:
                return answer  # a decision; anything else is refused with its type's name

    hook_set = HookSet()
    closure.__name__ = getattr(hooks, "__name__", "closure")
    hook_set.register(closure)
    return hook_set


def _shown_to_hook(call: DecodedCall[Any], input: Any) -> DecodedCall[Any]:
    """Return a call with the input that a hook is given, and returns."""
    shown = DecodedCall[Any](call.wire, call.pipeline, call.run, call.pipeline_call, call.outcome)
    shown.shown_input, shown.input_source = input, _OF_A_HOOK
    return shown
