"""Workflows and their steps: how async functions become durable work."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from dbos import DBOS

from toolcrib.adapters.dbos._engine import current_engine
from toolcrib.adapters.dbos._outage import is_outage

__all__ = ["UnknownHereError", "step", "workflow"]

P = ParamSpec("P")
R = TypeVar("R")

_RECOVERIES = 100  # how often work may be begun again before DBOS gives it up: it may kill each worker that takes it


class UnknownHereError(Exception):
    """Work is of an agent, a tool or a toolkit that this worker does not have; it names what is missing."""


def workflow(name: str) -> Callable[[Callable[P, Awaitable[R]]], Callable[P, Awaitable[R]]]:
    """Register an async function as what work of this name runs; it takes and returns JSON shapes.

    What it raises because the database is away, or because the engine is left, is no outcome: the work is cut off like
    that of a worker that died, and goes back to its queue.
    """

    def register(body: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
        @wraps(body)
        async def run(*args: P.args, **kwargs: P.kwargs) -> R:
            engine, task = current_engine(), asyncio.current_task()
            if not engine.takes_work:
                raise asyncio.CancelledError
            try:
                return await body(*args, **kwargs)
            except UnknownHereError as error:
                await engine.leave(str(DBOS.workflow_id), str(error))
                raise asyncio.CancelledError from error
            except Exception as error:
                if is_outage(error) or (task is not None and task.cancelling()):
                    raise asyncio.CancelledError from error
                raise

        return DBOS.workflow(name=name, max_recovery_attempts=_RECOVERIES)(run)

    return register


async def step(name: str, run: Callable[[], Awaitable[R]]) -> R:
    """Run a step of the workflow that calls this, and return its result, JSON shapes; one that is recorded is not run.

    Steps are matched by their place in the workflow, and one in the place of another of a different name is an error:
    so name it by what it is made of.
    """

    async def body() -> R:
        return await run()

    return await DBOS.run_step_async({"name": name}, body)
