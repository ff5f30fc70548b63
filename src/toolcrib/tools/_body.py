"""The one body of a tool: what a direct call runs, and what the pipeline wraps.

Fixed and injected arguments are merged, the cap and the lock are passed, observers are told, a deadline is kept. There
is one for tools that return and one for tools that stream; both do the same things in the same order.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, suppress
from functools import partial
from inspect import Parameter, isawaitable, signature
from typing import Any, cast

from toolcrib.errors import ApprovalRequired, MissingProvided, ToolTimeoutError
from toolcrib.hooks import Hook, HookRaised, Observers, ToolHook, ambient, fire, supply, wanted
from toolcrib.schema import InjectedParameter, RunContext, ToolSpec
from toolcrib.tools._deadline import Deadline
from toolcrib.tools._locks import Gate
from toolcrib.tools._metadata import ToolMetadata
from toolcrib.tools._options import ToolOptions
from toolcrib.tools._threads import ThreadCall, in_thread

__all__ = ["Body", "is_thunk"]

_END: Any = object()


def is_thunk(value: Any) -> bool:
    """Return whether a value is a callable that wants no argument, and so is asked anew at each call."""
    if not callable(value) or isinstance(value, type):
        return False
    try:
        parameters = signature(value).parameters.values()
    except (TypeError, ValueError):
        return False
    return all(p.default is not Parameter.empty or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters)


class Body:
    """Runs one tool's function."""

    __slots__ = (
        "_fixed",
        "_gate",
        "_injected",
        "_metadata",
        "_name",
        "_plain",
        "_spec",
        "_threaded",
        "_thunks",
        "fn",
        "observers",
    )

    def __init__(
        self,
        fn: Callable[..., Any],
        spec: ToolSpec,
        options: ToolOptions,
        fixed: Mapping[str, Any],
        metadata: ToolMetadata,
    ) -> None:
        self.fn, self._spec, self._name, self._metadata = fn, spec, spec.name, metadata
        self.observers = Observers(options.tags, spec)
        self._fixed = dict(fixed)
        self._thunks = tuple(key for key, value in fixed.items() if is_thunk(value))
        gated = bool(options.lock) or options.max_concurrency is not None
        self._gate = Gate(spec.name, options.lock, options.max_concurrency) if gated else None
        self._threaded = (spec.is_sync or spec.is_sync_generator) and options.thread
        self._injected: dict[str, InjectedParameter] | None = None
        self._plain: bool | None = None  # whether fn(**arguments) is all there is to do; known once injection is

    @property
    def gate(self) -> Gate | None:
        """The lock and cap, if there are any."""
        return self._gate

    @property
    def plain(self) -> bool:
        """Whether an execution is nothing but `await fn(**arguments)`."""
        if self._plain is None:
            spec = self._spec
            extra = bool(self._fixed) or bool(spec.injected) or not spec.plain or self._gate is not None
            self._plain = spec.is_coroutine and not extra
        return self._plain

    def merge(self, arguments: Mapping[str, Any], ctx: RunContext[Any] | None) -> dict[str, Any]:
        """Return the arguments with the fixed and injected ones.

        Raises:
            MissingProvided: An injected parameter without a default is provided by nobody.
        """
        values = {**self._fixed, **arguments}
        for key in self._thunks:
            if key not in arguments:
                values[key] = self._fixed[key]()
        injected = self._injected
        if injected is None:
            injected = self._injected = dict(self._spec.injected)
        if injected and (lacking := supply(injected, values, ctx)):
            raise MissingProvided(self._name, lacking, wanted(injected[lacking]))
        return values

    async def _fire_before(
        self, hooks: Mapping[Any, tuple[Hook[Any], ...]], values: Mapping[str, Any], ctx: RunContext[Any] | None
    ) -> None:
        observers = hooks.get(ToolHook.BEFORE_INVOKE)
        if observers is not None:
            await fire(observers, (), {**self._spec.defaults, **values}, ctx)

    # --- a tool that returns

    async def call(
        self, arguments: Mapping[str, Any], ctx: RunContext[Any] | None = None, timeout: float | None = None
    ) -> Any:
        """Run the function once and return its result.

        Raises:
            ToolTimeoutError: `timeout` seconds passed in the function itself.
            HookRaised: An observer raised.
        """
        metadata = self._metadata
        metadata.started = time.time()
        token = None if ctx is None else ambient.set(ctx)
        try:
            hooks = self.observers.table()
            if not hooks and (self._plain or self.plain):
                if timeout is None:
                    return await self.fn(**arguments)
                return await self._timed(arguments, timeout)
            values = self.merge(arguments, ctx)
            if not hooks:
                return await self._gated(values, timeout)
            await self._fire_before(hooks, values, ctx)
            try:
                value = await self._gated(values, timeout)
            except ApprovalRequired:  # a question, not an error
                raise
            except Exception as error:  # the tool's own code
                await fire(hooks.get(ToolHook.ON_ERROR, ()), (), {"exc": error}, ctx)
                raise
            await fire(hooks.get(ToolHook.AFTER_INVOKE, ()), (value,), ctx=ctx)
            return value
        finally:
            metadata.ended = time.time()
            if token is not None:
                ambient.reset(token)

    async def _gated(self, values: dict[str, Any], timeout: float | None) -> Any:
        if self._gate is None:
            return await self._timed(values, timeout)
        thread = ThreadCall() if self._threaded else None
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._gate.passing(values))
            try:
                return await self._timed(values, timeout, thread)
            finally:
                if thread is not None and thread.running:  # it cannot be stopped, so the lock is still needed
                    thread.afterwards(stack.pop_all().aclose)

    async def _timed(self, values: Mapping[str, Any], timeout: float | None, thread: ThreadCall | None = None) -> Any:
        if timeout is None:
            return await self._once(values, thread)
        deadline = self._deadline(timeout)
        try:
            with deadline:
                return await (self.fn(**values) if self._plain else self._once(values, thread))
        finally:
            deadline.close()

    async def _once(self, values: Mapping[str, Any], thread: ThreadCall | None = None) -> Any:
        spec = self._spec
        if spec.is_coroutine and spec.plain:
            return await self.fn(**values)
        call = partial(self.fn, **values) if spec.plain else self._split(values)
        value: Any = await (thread or ThreadCall()).run(call) if self._threaded else call()
        return await value if isawaitable(value) else value  # a sync function may hand back an awaitable

    def _deadline(self, seconds: float) -> Deadline:
        return Deadline(seconds, ToolTimeoutError, self._name, seconds, self._threaded)

    def _split(self, values: Mapping[str, Any]) -> Callable[[], Any]:
        positional, keywords = self._spec.split(values)
        return partial(self.fn, *positional, **keywords)

    # --- a tool that streams

    def stream(
        self, arguments: Mapping[str, Any], ctx: RunContext[Any] | None = None, timeout: float | None = None
    ) -> Stream:
        """Return one execution of a streaming function, to be entered: `async with body.stream(...) as values`.

        Leaving it early closes the function's generator and tells `AFTER_INVOKE` the values so far. `timeout` covers
        the whole stream.
        """
        return Stream(partial(self._begin, arguments, ctx, timeout), self._metadata)

    async def _begin(
        self, arguments: Mapping[str, Any], ctx: RunContext[Any] | None, timeout: float | None
    ) -> AsyncIterator[Any]:
        hooks = self.observers.table()
        values = self.merge(arguments, ctx)
        if not hooks and self._gate is None and timeout is None:
            return self._source(values)  # as it is: every generator around it costs as much as a value
        if not hooks:
            return self._steps(values, timeout)
        await self._fire_before(hooks, values, ctx)
        return self._watched(self._steps(values, timeout), hooks, ctx)

    async def _watched(
        self, steps: AsyncIterator[Any], hooks: dict[Any, Any], ctx: RunContext[Any] | None
    ) -> AsyncGenerator[Any, None]:
        on_yield = hooks.get(ToolHook.ON_YIELD, ())
        values: list[Any] = []
        left_early = False
        try:
            async for value in steps:
                values.append(value)
                if on_yield:
                    await fire(on_yield, (value,), ctx=ctx)
                yield value
        except GeneratorExit:
            left_early = True
            raise
        except (HookRaised, ApprovalRequired):
            raise
        except Exception as error:  # the tool's own code
            await fire(hooks.get(ToolHook.ON_ERROR, ()), (), {"exc": error}, ctx)
            raise
        finally:
            await _close(steps)
            if left_early:
                await fire(hooks.get(ToolHook.AFTER_INVOKE, ()), (values,), ctx=ctx)
        await fire(hooks.get(ToolHook.AFTER_INVOKE, ()), (values,), ctx=ctx)

    async def _steps(self, values: dict[str, Any], timeout: float | None) -> AsyncGenerator[Any, None]:
        async with AsyncExitStack() as stack:
            if self._gate is not None:
                await stack.enter_async_context(self._gate.passing(values, streaming=True))
            source = self._source(values)
            stack.push_async_callback(_close, source)
            if timeout is None:
                async for value in source:
                    yield value
                return
            deadline = self._deadline(timeout)
            stack.callback(deadline.close)
            while True:
                with deadline:
                    value = await anext(source, _END)
                if value is _END:
                    return
                yield value

    def _source(self, values: dict[str, Any]) -> AsyncIterator[Any]:
        call = partial(self.fn, **values) if self._spec.plain else self._split(values)
        made = call()
        return _from_sync(made, self._threaded) if self._spec.is_sync_generator else made


class Stream:
    """One execution of a streaming tool; entered, it gives the values, and left, it stops the tool."""

    __slots__ = ("_begin", "_metadata", "_values")

    def __init__(self, begin: Callable[[], Awaitable[AsyncIterator[Any]]], metadata: ToolMetadata) -> None:
        self._begin, self._metadata = begin, metadata
        self._values: AsyncIterator[Any] | None = None

    async def __aenter__(self) -> AsyncIterator[Any]:
        self._metadata.started = time.time()
        try:
            self._values = await self._begin()
        except BaseException:
            self._metadata.ended = time.time()
            raise
        return self._values

    async def __aexit__(self, *error: object) -> None:
        try:
            if self._values is not None:
                await _close(self._values)
        finally:
            self._metadata.ended = time.time()


async def _close(source: AsyncIterator[Any]) -> None:
    if isinstance(source, AsyncGenerator):
        await cast("AsyncGenerator[Any, None]", source).aclose()


async def _from_sync(source: Iterator[Any], threaded: bool) -> AsyncGenerator[Any, None]:
    try:
        while True:
            step = partial(next, source, _END)
            value = await in_thread(step) if threaded else step()
            if value is _END:
                return
            yield value
    finally:
        close = getattr(source, "close", None)  # a generator has one; a plain iterator need not
        if callable(close):
            with suppress(ValueError):  # it runs in its thread at this moment, and cannot be closed
                close()
