"""Execution of several calls at once, in tasks of their own only where one of them waits."""

from __future__ import annotations

from asyncio import Semaphore, TaskGroup
from collections.abc import Callable, Coroutine, Generator, Sequence
from contextvars import copy_context
from types import coroutine
from typing import Any

from toolcrib.rounds._round_call import RoundCall

__all__ = ["execute_together"]


async def execute_together(calls: Sequence[RoundCall], most: int | None = None) -> None:
    """Execute calls at the same time, each in a context of its own.

    They are executed one after the other, as long as none waits. When one does, all that follow are started.

    Args:
        calls: The calls.
        most: How many are executed at a time; all of them when None.

    Raises:
        Exception: What a call raised; the others are cancelled.
    """
    execute = _within(Semaphore(most)) if most is not None else RoundCall.execute
    rest = iter(calls)
    try:
        async with TaskGroup() as group:

            def start_rest() -> None:
                for call in rest:
                    group.create_task(execute(call))

            for call in rest:
                await _executed(execute(call), start_rest)
    except ExceptionGroup as several:
        raise several.exceptions[0] from None  # the host sees it as it was raised


def _within(limit: Semaphore) -> Callable[[RoundCall], Coroutine[Any, Any, None]]:
    async def execute(call: RoundCall) -> None:
        async with limit:
            await call.execute()

    return execute


@coroutine
def _executed(work: Coroutine[Any, Any, None], on_wait: Callable[[], None]) -> Generator[Any, Any, None]:
    """Run a coroutine in the task of the caller and a context of its own; call `on_wait` each time that it waits."""
    run = copy_context().run
    step: Callable[[Any], Any] = work.send
    given: Any = None
    while True:
        try:
            waits_for = run(step, given)
        except StopIteration:
            return
        on_wait()
        try:
            given = yield waits_for
            step = work.send
        except BaseException as error:  # a cancellation, which the coroutine has to see
            step, given = work.throw, error
