"""Execution of several calls at once, in tasks of their own only where one of them waits."""

from __future__ import annotations

from asyncio import Semaphore, TaskGroup
from collections.abc import Callable, Coroutine, Generator, Iterable
from contextvars import Context, copy_context
from types import coroutine
from typing import Any

from toolcrib.rounds._call import DecodedCall, execute

__all__ = ["execute_together"]


async def execute_together(calls: Iterable[DecodedCall[Any]], most: int | None = None) -> None:
    """Execute calls at the same time, each in a context of its own.

    They are executed one after the other, as long as none waits. When one does, all that follow are started.

    Args:
        calls: The calls.
        most: How many are executed at a time; all of them when None.

    Raises:
        Exception: What a call raised; the others are cancelled.
    """
    execution = execute if most is None else _within(Semaphore(most))
    rest = iter(calls)
    for call in rest:
        work, context = execution(call), copy_context()
        try:
            waits_for = context.run(work.send, None)
        except StopIteration:
            continue
        try:
            async with TaskGroup() as group:
                for following in rest:
                    group.create_task(execution(following))
                await _resumed(work, context, waits_for)
        except ExceptionGroup as several:
            raise several.exceptions[0] from None  # the host sees it as it was raised


def _within(limit: Semaphore) -> Callable[[DecodedCall[Any]], Coroutine[Any, Any, None]]:
    async def execute_within(call: DecodedCall[Any]) -> None:
        async with limit:
            await execute(call)

    return execute_within


@coroutine
def _resumed(work: Coroutine[Any, Any, None], context: Context, waits_for: Any) -> Generator[Any, Any, None]:
    """Resume a coroutine that was started in a context and waits, in the task of the caller."""
    step: Callable[[Any], Any]
    while True:
        try:
            given = yield waits_for
            step = work.send
        except BaseException as error:  # a cancellation, which the coroutine has to see
            step, given = work.throw, error
        try:
            waits_for = context.run(step, given)
        except StopIteration:
            return
