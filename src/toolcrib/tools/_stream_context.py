"""The context of a stream: every step of one generator, and its close, see the same context variables."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator
from contextvars import copy_context
from typing import Any, cast

__all__ = ["InOneContext"]


class InOneContext:
    """An iterator whose steps run in a copy of the context that it was made in, whichever task asks for them.

    What a tool keeps current over a `yield`, such as a span, is current again in its next step and is not the
    consumer's. A consumer that breaks off has the event loop close the generator in another task.
    """

    __slots__ = ("_run", "_values")

    def __init__(self, values: AsyncIterator[Any]) -> None:
        self._values, self._run = values, copy_context().run

    def __aiter__(self) -> InOneContext:
        return self

    def __anext__(self) -> _Step:
        return _Step(self._run, self._values.__anext__())

    async def aclose(self) -> None:
        """Close the iterator, where it is a generator."""
        if isinstance(self._values, AsyncGenerator):
            await _Step(self._run, cast("AsyncGenerator[Any, None]", self._values).aclose())


class _Step:
    """One step of a generator, awaited in the context of all of them."""

    __slots__ = ("_run", "_step")

    def __init__(self, run: Callable[..., Any], step: Awaitable[Any]) -> None:
        self._run, self._step = run, cast("Generator[Any, Any, Any]", step.__await__())

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
