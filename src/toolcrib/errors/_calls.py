"""Errors about one call: of its tool, its hooks and its limits."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import cast

from toolcrib._numbers import count_text
from toolcrib.errors._base import MessageError
from toolcrib.errors._turns import NewerForm

signal_of_newer_form: ContextVar[Callable[[NewerForm], BaseException] | None] = ContextVar(
    "toolcrib_signal_of_newer_form", default=None
)
"""The signal of an engine that leaves a call with a newer form to another process, or None."""

_signals: tuple[type[BaseException], ...] = (
    *(asyncio.CancelledError, KeyboardInterrupt, GeneratorExit),
    *getattr(sys.modules.get("toolcrib_pytest"), "OUTCOMES", ()),  # the plugin registers them itself where it is later
)


class ModelRetry(MessageError):
    """A tool raises this to have the model try again, with `message` as the advice."""

    code = "model_retry"
    message: str
    _template = "{message}"


class RetriesExhausted(MessageError):
    """The model used up the retryable answers of one tool in this run."""

    code = "retries_exhausted"
    tool: str
    max_retries: int
    last: str

    def __str__(self) -> str:
        return f"`{self.tool}` was retried {count_text(self.max_retries, 'time')} and still failed: {self.last}"


class ToolTimeoutError(MessageError, TimeoutError):
    """The deadline of one execution passed; distinct from a TimeoutError that the tool raised itself.

    Attributes:
        goes_on: Whether the work goes on; None where nobody here knows, as it is another framework's or a server's.
    """

    code = "tool_timeout"
    tool: str
    seconds: float
    goes_on: bool | None = False

    def __str__(self) -> str:
        text = f"`{self.tool}` did not finish within {self.seconds:g} s"
        if self.goes_on:
            return f"{text}; it runs in a thread that cannot be stopped and goes on in the background"
        if self.goes_on is None:
            return f"{text}; it is no longer waited for, and may go on in the background"
        return f"{text} and was stopped"


class LimitReached(MessageError):
    """A budget of the run is used up."""

    code = "limit_reached"
    tool: str
    limit: str
    value: int

    def __str__(self) -> str:
        used = "it is" if self.value == 1 else "they are"
        return (
            f"`{self.tool}` was not run: this run may make {count_text(self.value, 'call')} ({self.limit}), and {used} "
            "used up. Answer with what you have."
        )


class SpendLimitReached(MessageError):
    """A model is not asked, as a limit of money is used up.

    Attributes:
        free_at: Since when something is left again, in seconds since 1970; None where waiting does not help.
    """

    code = "spend_limit_reached"
    text: str
    free_at: float | None
    _template = "{text}"


class NotCallable(MessageError, TypeError):
    """The tool declares an input and has no function; user code executes it."""

    code = "not_callable"
    tool: str
    _template = (
        "`{tool}` declares an input and has no function. Execute it in your own loop, answer it with a hook "
        "that returns Complete, or make it a function with @tool."
    )


class HookError(MessageError):
    """A hook, or another function of the host around a tool, raised; `kind` says which, and `hook` its name.

    The host has the error; a model is shown the kind of the hook, and no text of the error.
    """

    code = "hook_error"
    tool: str
    kind: str
    hook: str
    error: str
    _template = "the {kind} `{hook}` of `{tool}` failed: {error}"

    @classmethod
    def of(cls, tool: str, kind: str, hook: object, raised: BaseException) -> HookError:
        """Return the error for an exception that a hook of this kind raised, its cause; a `HookError` as it is.

        Raises:
            BaseException: The exception itself where it is to end more than the call, as of `exception_of`.
        """
        error = exception_of(raised)
        if isinstance(error, HookError):
            return error
        name = hook if isinstance(hook, str) else getattr(hook, "__name__", type(hook).__name__)
        hook_error = cls(tool, kind, name, f"{type(error).__name__}: {message_of(error)}")
        hook_error.__cause__ = error
        return hook_error


class ExitError(MessageError, RuntimeError):
    """Code that a call runs raised what ends a process: `SystemExit`, or another error that is no `Exception`."""

    code = "exit"
    kind: str
    detail: str

    def __str__(self) -> str:
        raised = f"{self.kind}({self.detail})" if self.detail else self.kind
        return f"it raised {raised}, which ends a process and not a call; raise an Exception in its place"


def exception_of(error: BaseException) -> Exception:
    """Return an exception for an error of the host's code, which fails its call: `SystemExit` as an `ExitError`.

    Raises:
        BaseException: The error itself, where it is to end more than the call: a cancellation, Ctrl-C, the close of a
            generator, or a signal of an engine (see `register_signal`), also in the place of a `NewerForm`.
    """
    if isinstance(error, Exception) and not isinstance(error, _signals):
        signal = signal_of_newer_form.get()
        if signal is not None and isinstance(error, NewerForm):
            raised = signal(error)
            raise raised from (error.__cause__ if raised is error else error)
        return error
    if isinstance(error, _signals) or (
        isinstance(error, BaseExceptionGroup)
        and cast("BaseExceptionGroup[BaseException]", error).subgroup(_signals) is not None
    ):
        raise error
    exit_error = ExitError(
        type(cast("object", error)).__name__, message_of(cast("BaseException", error)) if error.args else ""
    )
    exit_error.__cause__ = error
    return exit_error


@contextmanager
def raising_newer_forms() -> Generator[None]:
    """End the body with a NewerForm of a gate or a tool as it is, and no call by an outcome.

    It is for code that continues a stored call, which then stays stored. The signal of an engine comes first.
    """
    if signal_of_newer_form.get() is not None:
        yield
        return
    token = signal_of_newer_form.set(lambda error: error)
    try:
        yield
    finally:
        with suppress(ValueError):  # thrown away unfinished, and closed by the garbage collector elsewhere
            signal_of_newer_form.reset(token)


def message_of(error: BaseException) -> str:
    """Return an exception's message, also when its class makes none."""
    try:
        text = str(error)
    except (Exception, SystemExit) as broken:  # the exception is the user's class, and so is its __str__
        return f"{type(error).__name__}, whose message cannot be shown ({type(broken).__name__})"
    return text or type(error).__name__


def register_signal(kind: type[BaseException]) -> None:
    """Register a kind of error by which an engine ends more than one call, so that it passes calls as it is."""
    global _signals
    if kind not in _signals:
        _signals = (*_signals, kind)


class LockHeldError(MessageError, RuntimeError):
    """A tool waits for a lock that its own caller holds; it would wait for ever."""

    code = "lock_held"
    tool: str
    lock: str
    _template = (
        "`{tool}` waits for {lock}, which its own caller holds. Call the plain function (`.fn`) inside, "
        "or give the two tools different locks."
    )


class CallStateError(MessageError, RuntimeError):
    """A call is not in the state for what it is asked to do: it was executed before, or did not pass its gates."""

    code = "call_state"
    tool: str
    call_id: str
    state: str

    def __str__(self) -> str:
        if self.state == "executed":
            return f"the call {self.call_id} of `{self.tool}` was executed before, and a call is executed once"
        return f"the call {self.call_id} of `{self.tool}` is {self.state}: only an admitted call can be executed"


class ToolCancelled(MessageError):
    """A tool awaited something that was cancelled, while its own call was not."""

    code = "tool_cancelled"
    tool: str
    _template = "`{tool}` awaited a task that was cancelled, and has no result"


class ClientUnavailable(MessageError, RuntimeError):
    """A tool asks for what only a client has - a person, a model - and the call has no client that can be asked."""

    code = "client_unavailable"
    tool: str
    wanted: str
    why: str
    _template = "`{tool}` asks for {wanted}, and there is none: {why}"


class ClientAnswerError(MessageError, ValueError):
    """The answer of a client, or of an approver in its place, does not fit what the tool asked for."""

    code = "client_answer"
    tool: str
    problem: str
    by: str = "the client"
    _template = "the answer of {by} does not fit what `{tool}` asked for: {problem}"
