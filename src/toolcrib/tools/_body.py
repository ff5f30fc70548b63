"""The body of a tool: its function, with everything that a direct call and a model's call have in common.

Fixed and injected arguments are merged, observers are called, the cap and the lock are passed, a deadline is kept. A
tool that returns and one that streams have a method each, which do the same in the same order.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import copy_context
from functools import partial
from inspect import Parameter, isawaitable, signature
from typing import Any, TypeAlias, cast

from toolcrib import schema
from toolcrib.calls import copied
from toolcrib.errors import ApprovalRequired, HookError, MissingProvided, ToolTimeoutError, exception_of
from toolcrib.hooks import (
    ContextSource,
    Hook,
    HookRaised,
    HookType,
    Observers,
    ToolHook,
    ambient,
    fire,
    supply,
    wanted,
)
from toolcrib.schema import InjectedParameter, RunContext
from toolcrib.tools._deadline import Deadline
from toolcrib.tools._locks import Gate
from toolcrib.tools._metadata import ToolMetadata
from toolcrib.tools._options import ToolOptions
from toolcrib.tools._results import ResultCheck
from toolcrib.tools._threads import StreamThread, ThreadCall

Hooks: TypeAlias = Mapping[HookType, tuple[Hook[Any], ...]]
Begin: TypeAlias = Callable[[], Awaitable[None]]
"""A function that is awaited right before the tool's own: after the lock and the hooks, outside of the timeout."""

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
        "_checked_types",
        "_fixed",
        "_gate",
        "_injected",
        "_metadata",
        "_name",
        "_plain",
        "_results",
        "_spec",
        "_threaded",
        "_thunks",
        "fn",
        "observers",
    )

    def __init__(
        self,
        fn: Callable[..., Any],
        spec: schema.ToolSpec,
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
        self._results = ResultCheck(spec)
        self._checked_types = self._results.checked_types
        self._injected: dict[str, InjectedParameter] | None = None
        self._plain: bool | None = None  # whether fn(**arguments) is all there is to do; known once injection is

    @property
    def gate(self) -> Gate | None:
        """The lock and cap, if there are any."""
        return self._gate

    @property
    def plain(self) -> bool:
        """True if an execution is nothing but `await fn(**arguments)`."""
        if self._plain is None:
            spec = self._spec
            extra = bool(self._fixed) or bool(spec.injected) or not spec.plain or self._gate is not None
            self._plain = spec.is_coroutine and not extra
        return self._plain

    def merge(self, arguments: Mapping[str, Any], ctx: RunContext[Any] | None) -> dict[str, Any]:
        """Return the arguments with the fixed and injected ones.

        Raises:
            HookError: A function that makes a fixed argument raised.
            MissingProvided: Nothing provides an injected parameter that has no default.
        """
        values = {**self._fixed, **arguments}
        for key in self._thunks:
            if key not in arguments:
                try:
                    values[key] = self._fixed[key]()
                except BaseException as error:  # the host's code
                    raise HookError.of(self._name, "fixed argument", key, error)  # noqa: B904 -- it has it as its cause
        injected = self._injected
        if injected is None:
            injected = self._injected = dict(self._spec.injected)
        if injected and (lacking := supply(injected, values, ctx)):
            raise MissingProvided(self._name, lacking, wanted(injected[lacking]))
        if ctx is not None and (self._fixed or injected):
            names = (name for name, parameter in injected.items() if parameter.kind != "context")
            supplied = {name: values[name] for name in (*self._fixed, *names) if name in values}
            ctx.supplied = [*(ctx.supplied or ()), (self._spec, supplied)]
        return values

    async def _fire_before(self, hooks: Hooks, values: Mapping[str, Any], ctx: RunContext[Any] | None) -> None:
        observers = hooks.get(ToolHook.BEFORE_INVOKE)
        if observers is not None:
            injected = self._spec.injected  # what the run supplies is shared on purpose
            shown = {key: value if key in injected else copied(value) for key, value in values.items()}
            await fire(observers, (), {**self._spec.defaults, **shown}, ctx)

    async def _fire_after(self, hooks: Hooks, value: Any, ctx: RunContext[Any] | None) -> None:
        observers = hooks.get(ToolHook.AFTER_INVOKE)
        if observers is not None:
            await fire(observers, (copied(value),), ctx=ctx)

    async def _fire_error(self, hooks: Hooks, error: Exception, ctx: RunContext[Any] | None) -> None:
        if not (isinstance(error, ApprovalRequired) and not error.tool):
            await fire(hooks.get(ToolHook.ON_ERROR, ()), (), {"exc": error}, ctx)

    # --- a tool that returns

    async def call(
        self,
        arguments: Mapping[str, Any],
        ctx: RunContext[Any] | None = None,
        timeout: float | None = None,
        begin: Begin | None = None,
        run: ContextSource | None = None,
    ) -> Any:
        """Run the function once, after `begin`, and return its result.

        Args:
            arguments: The arguments by name, without fixed and injected ones.
            ctx: The context that hooks and function are given; None where none was made.
            timeout: The most seconds of the function itself.
            begin: Is awaited right before the function.
            run: Makes the context where code inside the function asks for it, and none was made.

        Raises:
            ToolTimeoutError: `timeout` seconds passed in the function itself.
            HookRaised: An observer raised.
        """
        metadata = self._metadata
        metadata.started = time.time()
        token = ambient.set(run if ctx is None else ctx)
        try:
            hooks = self.observers.table()
            if hooks:
                value = await self._observed(self.merge(arguments, ctx), hooks, ctx, timeout, begin)
            elif begin is not None or not (self._plain or self.plain):
                value = await self._gated(self.merge(arguments, ctx), timeout, begin)
            elif timeout is None:
                value = await self.fn(**arguments)
            else:
                value = await self._timed(arguments, timeout)
            if type(value) not in self._checked_types:
                self._results.note(value)
            return value
        finally:
            metadata.ended = time.time()
            try:  # noqa: SIM105 -- `suppress` costs a tenth of a call
                ambient.reset(token)
            except ValueError:  # thrown away unfinished, and closed by the garbage collector elsewhere
                pass

    async def _observed(
        self,
        values: dict[str, Any],
        hooks: Hooks,
        ctx: RunContext[Any] | None,
        timeout: float | None,
        begin: Begin | None,
    ) -> Any:
        await self._fire_before(hooks, values, ctx)
        try:
            value = await self._gated(values, timeout, begin)
        except BaseException as raised:  # the tool's own code
            await self._fire_error(hooks, exception_of(raised), ctx)
            raise
        await self._fire_after(hooks, value, ctx)
        return value

    async def _gated(self, values: dict[str, Any], timeout: float | None, begin: Begin | None) -> Any:
        if self._gate is None:
            if begin is not None:
                await begin()
            return await self._timed(values, timeout)
        thread = ThreadCall() if self._threaded else None
        async with self._passing(self._gate, values, thread):
            if begin is not None:
                await begin()
            return await self._timed(values, timeout, thread)

    @asynccontextmanager
    async def _passing(
        self, gate: Gate, values: dict[str, Any], thread: ThreadCall | None, *, streaming: bool = False
    ) -> AsyncGenerator[None]:
        """Hold the cap and the lock for the body, and for as long as its thread goes on."""
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(gate.passing(values, streaming=streaming))
            try:
                yield
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
        return Deadline(
            seconds, ToolTimeoutError, self._name, seconds, None if self._spec.is_elsewhere else self._threaded
        )

    def _split(self, values: Mapping[str, Any]) -> Callable[[], Any]:
        positional, keywords = self._spec.split(values)
        return partial(self.fn, *positional, **keywords)

    # --- a tool that streams

    def stream(
        self,
        arguments: Mapping[str, Any],
        ctx: RunContext[Any] | None = None,
        timeout: float | None = None,
        begin: Begin | None = None,
        run: ContextSource | None = None,
    ) -> Stream:
        """Return one execution of a streaming function, to be entered: `async with body.stream(...) as values`.

        Leaving it early closes the function's generator and calls `AFTER_INVOKE` with the values so far. `timeout`
        covers the whole stream, without the time in which the consumer holds a value. The others are as for `call`.
        """
        return Stream(partial(self._begin, arguments, ctx, timeout, begin, run), self._metadata)

    def _begin(
        self,
        arguments: Mapping[str, Any],
        ctx: RunContext[Any] | None,
        timeout: float | None,
        begin: Begin | None,
        run: ContextSource | None,
    ) -> AsyncIterator[Any]:
        values, hooks = self.merge(arguments, ctx), self.observers.table()
        is_free = ctx is None and run is None and timeout is None and begin is None
        if is_free and self._checked_types and self._gate is None and not (hooks or self._threaded):
            return self._source(values, None)  # as it is: a generator around it costs as much as a value
        return self._values(values, hooks, ctx, timeout, begin, run)

    async def _values(
        self,
        values: dict[str, Any],
        hooks: Hooks,
        ctx: RunContext[Any] | None,
        timeout: float | None,
        begin: Begin | None,
        run: ContextSource | None,
    ) -> AsyncGenerator[Any, None]:
        if ctx is not None or run is not None:
            ambient.set(run if ctx is None else ctx)  # in the context of the stream, which no other code runs in
        await self._fire_before(hooks, values, ctx)
        on_yield, checked_types, values_so_far = hooks.get(ToolHook.ON_YIELD), self._checked_types, list[Any]()
        try:
            async with AsyncExitStack() as stack:  # one generator for all that is around the values: each costs as much
                source, deadline = await self._opened(stack, values, timeout, begin)
                async for value in source:
                    if type(value) not in checked_types:
                        self._results.note(value)
                    if deadline is not None:
                        deadline.rest()
                    if hooks:
                        values_so_far.append(value)
                        if on_yield is not None:
                            await fire(on_yield, (copied(value),), ctx=ctx)
                    yield value
                    if deadline is not None:
                        deadline.begin()
        except GeneratorExit:
            await self._fire_after(hooks, values_so_far, ctx)
            raise
        except HookRaised:
            raise
        except BaseException as raised:  # the tool's own code
            await self._fire_error(hooks, exception_of(raised), ctx)
            raise
        await self._fire_after(hooks, values_so_far, ctx)

    async def _opened(
        self,
        stack: AsyncExitStack,
        values: dict[str, Any],
        timeout: float | None,
        begin: Begin | None,
    ) -> tuple[AsyncIterator[Any], Deadline | None]:
        """Pass the gate and begin; return the function's values and their deadline, which `stack` closes."""
        thread = StreamThread() if self._threaded else None
        if self._gate is not None:
            await stack.enter_async_context(self._passing(self._gate, values, thread, streaming=True))
        if begin is not None:
            await begin()
        source = self._source(values, thread)
        stack.push_async_callback(_close, source)
        if timeout is None:
            return source, None
        deadline = self._deadline(timeout)
        stack.callback(deadline.close)
        stack.enter_context(deadline)
        return source, deadline

    def _source(self, values: dict[str, Any], thread: StreamThread | None) -> AsyncIterator[Any]:
        source = self.fn(**values) if self._spec.plain else self._split(values)()
        return _from_sync(source, thread) if self._spec.is_sync_generator else source


class InOneContext:
    """An iterator whose steps run in a copy of the context that it was made in, whichever task asks for them.

    What a tool keeps current over a `yield`, such as a span, is current again in its next step and is not the
    consumer's. A consumer that breaks off has the event loop close the generator in another task.
    It is itself what each step awaits, since an object for each would cost as much as a value: a step begins when the
    one before has ended.
    """

    __slots__ = ("_next", "_run", "_step", "_values")

    def __init__(self, values: AsyncIterator[Any]) -> None:
        self._values, self._next, self._run = values, values.__anext__, copy_context().run
        self._step: Generator[Any, Any, Any]

    def __aiter__(self) -> InOneContext:
        return self

    def __anext__(self) -> InOneContext:
        self._step = self._next().__await__()
        return self

    async def aclose(self) -> None:
        """Close the iterator, where it is a generator."""
        values: Any = self._values
        if isinstance(values, AsyncGenerator):
            self._step = cast("AsyncGenerator[Any, None]", values).aclose().__await__()
            await self

    # --- one step

    def __await__(self) -> Generator[Any, Any, Any]:
        return cast("Generator[Any, Any, Any]", self)

    __iter__ = __await__

    def __next__(self) -> Any:
        return self._run(next, self._step)

    def send(self, value: Any) -> Any:
        return self._run(self._step.send, value)

    def throw(self, *error: Any) -> Any:
        return self._run(self._step.throw, *error)

    def close(self) -> None:
        self._run(self._step.close)


class Stream:
    """One execution of a streaming tool; entered, it gives the values, and left, it stops the tool."""

    __slots__ = ("_begin", "_metadata", "_values")

    def __init__(self, begin: Callable[[], AsyncIterator[Any]], metadata: ToolMetadata) -> None:
        self._begin, self._metadata = begin, metadata
        self._values: InOneContext | None = None

    async def __aenter__(self) -> AsyncIterator[Any]:
        self._metadata.started = time.time()
        self._values = InOneContext(self._begin())
        return self._values

    async def __aexit__(self, *error: object) -> None:
        try:
            if self._values is not None:
                await self._values.aclose()
        finally:
            self._metadata.ended = time.time()


async def _close(source: AsyncIterator[Any]) -> None:
    if isinstance(source, AsyncGenerator):
        await cast("AsyncGenerator[Any, None]", source).aclose()


async def _from_sync(source: Iterator[Any], thread: StreamThread | None) -> AsyncGenerator[Any, None]:
    step: Callable[[], Any] = partial(next, source, _END)
    try:
        while (value := step() if thread is None else await thread.run(step)) is not _END:
            yield value
    finally:
        close: Any = getattr(source, "close", None)  # a generator has one; a plain iterator need not
        if thread is not None:
            await thread.end(close if callable(close) else _nothing)
        elif callable(close):
            close()


def _nothing() -> None:
    """Close an iterator that has nothing to close."""
