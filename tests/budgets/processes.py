"""Processes that begin calls, or ask a model, at the same moment, whatever store they are counted in."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Callable, Generator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.synchronize import Barrier

from toolcrib.budgets import Budgets, Limit, SqliteUsageStore, TokenPrice, UsageStore
from toolcrib.calls import Completed, ToolCall
from toolcrib.errors import SpendLimitReached
from toolcrib.pipeline import Pipeline, Run
from toolcrib.rounds import PricedModel, Session
from toolcrib.testing import FakeClock, ScriptedModel, wire_reply
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset

PROCESSES = 3

_barrier: Barrier


@contextmanager
def processes_at_once() -> Generator[ProcessPoolExecutor]:
    """Run processes for `completed_at_once`, which starts them at the same moment."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(PROCESSES)
    with ProcessPoolExecutor(PROCESSES, mp_context=context, initializer=_start, initargs=(barrier,)) as pool:
        yield pool


def completed_at_once(pool: ProcessPoolExecutor, opened: Callable[[str], UsageStore], database: str) -> int:
    """Return how many of the calls that each process makes at once completed, of all of them."""
    return sum(one.result(100) for one in [pool.submit(_calls, opened, database) for _ in range(PROCESSES)])


def _start(barrier: Barrier) -> None:
    global _barrier
    _barrier = barrier


def _calls(opened: Callable[[str], UsageStore], database: str) -> int:
    store = opened(database)
    _barrier.wait(60)
    return asyncio.run(_completed(store))


async def _completed(store: UsageStore) -> int:
    @ez_tool
    async def refund() -> None:
        """Refund."""

    limit = Limit(calls=10, per="minute", by="principal")
    pipeline = Pipeline(Toolset([refund]).with_gates(Budgets([limit], store=store, clock=FakeClock())))
    calls = (pipeline.run(ToolCall("refund"), Run(principal="ann")) for _ in range(8))
    return sum(isinstance(outcome, Completed) for outcome in await asyncio.gather(*calls))


def spent_at_once(pool: ProcessPoolExecutor, database: str) -> list[int]:
    """Return how many replies each process had of a model, all of them asking at once, until it was refused."""
    return [one.result(100) for one in [pool.submit(_replies, database) for _ in range(PROCESSES)]]


def _replies(database: str) -> int:
    budgets = dollars_a_day(SqliteUsageStore(database))
    _barrier.wait(60)
    return asyncio.run(answered(budgets))


def dollars_a_day(store: UsageStore) -> Budgets:
    """Return budgets of ten dollars a day, in which a reply of `answered` costs one."""
    price = TokenPrice(input=1, output=0, currency="USD")
    limit = Limit(spend=10, currency="USD", per="day", by="principal")
    return Budgets([limit], store=store, prices={"m": price}, clock=FakeClock())


async def answered(budgets: Budgets) -> int:
    """Return how often a model is asked, one request after the other, until it is refused."""
    reply = {**wire_reply("openai", text="yes"), "usage": {"prompt_tokens": 1_000_000, "completion_tokens": 0}}
    model = ScriptedModel(*[reply] * 20)
    session = Session(PricedModel(model, budgets, model_name="m"), run=Run(principal="ann"))
    try:
        while True:
            await session.say("on").run()
    except SpendLimitReached:
        return len(model.requests)
