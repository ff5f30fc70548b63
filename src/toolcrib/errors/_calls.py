"""Errors about one call: of its tool, its hooks and its limits."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import cast

from toolcrib._numbers import count_text
from toolcrib.errors._base import ToolcribError
from toolcrib.errors._turns import NewerForm

signal_of_newer_form: ContextVar[Callable[[NewerForm], BaseException] | None] = ContextVar(
    "toolcrib_signal_of_newer_form", default=None
)
"""The signal of an engine that leaves a call with a newer form to another process, or None."""

_signals: tuple[type[BaseException], ...] = (
    *(asyncio.CancelledError, KeyboardInterrupt, GeneratorExit),
    *getattr(sys.modules.get("toolcrib_pytest"), "OUTCOMES", ()),  # the plugin registers them itself where it is later
)


class ModelRetry(ToolcribError):
    """A tool raises this to have the model try again, with `message` as the advice."""

    code = "model_retry"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return self.message


class RetriesExhausted(ToolcribError):
    """The model used up the retryable answers of one tool in this run."""

    code = "retries_exhausted"

    def __init__(self, tool: str, max_retries: int, last: str) -> None:
        super().__init__(tool, max_retries, last)
        self.tool, self.max_retries, self.last = tool, max_retries, last

    def __str__(self) -> str:
        return f"`{self.tool}` was retried {count_text(self.max_retries, 'time')} and still failed: {self.last}"


class ToolTimeoutError(ToolcribError, TimeoutError):
    """The deadline of one execution passed; distinct from a TimeoutError that the tool raised itself.

    Attributes:
        goes_on: Whether the work goes on; None where nobody here knows, as it is another framework's or a server's.
    """

    code = "tool_timeout"

    def __init__(self, tool: str, seconds: float, goes_on: bool | None = False) -> None:
        super().__init__(tool, seconds, goes_on)
        self.tool, self.seconds, self.goes_on = tool, seconds, goes_on

    def __str__(self) -> str:
        text = f"`{self.tool}` did not finish within {self.seconds:g} s"
        if self.goes_on:
            return f"{text}; it runs in a thread that cannot be stopped and goes on in the background"
        if self.goes_on is None:
            return f"{text}; it is no longer waited for, and may go on in the background"
        return f"{text} and was stopped"


class LimitReached(ToolcribError):
    """A budget of the run is used up."""

    code = "limit_reached"

    def __init__(self, tool: str, limit: str, value: int) -> None:
        super().__init__(tool, limit, value)
        self.tool, self.limit, self.value = tool, limit, value

    def __str__(self) -> str:
        used = "it is" if self.value == 1 else "they are"
        return (
            f"`{self.tool}` was not run: this run may make {count_text(self.value, 'call')} ({self.limit}), and {used} "
            "used up. Answer with what you have."
        )


class SpendLimitReached(ToolcribError):
    """A model is not asked, as a limit of money is used up.

    Attributes:
        free_at: Since when something is left again, in seconds since 1970; None where waiting does not help.
    """

    code = "spend_limit_reached"

    def __init__(self, text: str, free_at: float | None) -> None:
        super().__init__(text, free_at)
        self.text, self.free_at = text, free_at

    def __str__(self) -> str:
        return self.text


class NotCallable(ToolcribError, TypeError):
    """The tool declares an input and has no function; user code executes it."""

    code = "not_callable"

    def __init__(self, tool: str) -> None:
        super().__init__(tool)
        self.tool = tool

    def __str__(self) -> str:
        return (
            f"`{self.tool}` declares an input and has no function. Execute it in your own loop, answer it with a hook "
            "that returns Complete, or make it a function with @tool."
        )


class HookError(ToolcribError):
    """A hook, or another function of the host around a tool, raised; `kind` says which, and `hook` its name.

    The host has the error; a model is shown the kind of the hook, and no text of the error.
    """

    code = "hook_error"

    def __init__(self, tool: str, kind: str, hook: str, error: str) -> None:
        super().__init__(tool, kind, hook, error)
        self.tool, self.kind, self.hook, self.error = tool, kind, hook, error

    def __str__(self) -> str:
        return f"the {self.kind} `{self.hook}` of `{self.tool}` failed: {self.error}"

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


class ExitError(ToolcribError, RuntimeError):
    """Code that a call runs raised what ends a process: `SystemExit`, or another error that is no `Exception`."""

    code = "exit"

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(kind, detail)
        self.kind, self.detail = kind, detail

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


class LockHeldError(ToolcribError, RuntimeError):
    """A tool waits for a lock that its own caller holds; it would wait for ever."""

    code = "lock_held"

    def __init__(self, tool: str, lock: str) -> None:
        super().__init__(tool, lock)
        self.tool, self.lock = tool, lock

    def __str__(self) -> str:
        return (
            f"`{self.tool}` waits for {self.lock}, which its own caller holds. Call the plain function (`.fn`) inside, "
            "or give the two tools different locks."
        )


class CallStateError(ToolcribError, RuntimeError):
    """A call is not in the state for what it is asked to do: it was executed before, or did not pass its gates."""

    code = "call_state"

    def __init__(self, tool: str, call_id: str, state: str) -> None:
        super().__init__(tool, call_id, state)
        self.tool, self.call_id, self.state = tool, call_id, state

    def __str__(self) -> str:
        if self.state == "executed":
            return f"the call {self.call_id} of `{self.tool}` was executed before, and a call is executed once"
        return f"the call {self.call_id} of `{self.tool}` is {self.state}: only an admitted call can be executed"


class ToolCancelled(ToolcribError):
    """A tool awaited something that was cancelled, while its own call was not."""

    code = "tool_cancelled"

    def __init__(self, tool: str) -> None:
        super().__init__(tool)
        self.tool = tool

    def __str__(self) -> str:
        return f"`{self.tool}` awaited a task that was cancelled, and has no result"


class ClientUnavailable(ToolcribError, RuntimeError):
    """A tool asks for what only a client has - a person, a model - and the call has no client that can be asked."""

    code = "client_unavailable"

    def __init__(self, tool: str, wanted: str, why: str) -> None:
        super().__init__(tool, wanted, why)
        self.tool, self.wanted, self.why = tool, wanted, why

    def __str__(self) -> str:
        return f"`{self.tool}` asks for {self.wanted}, and there is none: {self.why}"


class ClientAnswerError(ToolcribError, ValueError):
    """The answer of a client, or of an approver in its place, does not fit what the tool asked for."""

    code = "client_answer"

    def __init__(self, tool: str, problem: str, by: str = "the client") -> None:
        super().__init__(tool, problem, by)
        self.tool, self.problem, self.by = tool, problem, by

    def __str__(self) -> str:
        return f"the answer of {self.by} does not fit what `{self.tool}` asked for: {self.problem}"
