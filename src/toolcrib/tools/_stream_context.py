"""The context of a stream: every step of one generator, and its close, see the same context variables."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextvars import copy_context
from typing import Any, cast

__all__ = ["InOneContext"]


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
