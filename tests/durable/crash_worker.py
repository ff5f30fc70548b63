"""The worker that `crash` kills: an agent of twenty turns, and the tools of a program of twenty calls.

What a tool does is a row in a ledger of its own; `main` is the process.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection

from toolcrib.adapters.dbos import DurableAgent, DurableToolkit, Engine, Queue
from toolcrib.code import Toolkit
from toolcrib.schema import IdempotencyKey
from toolcrib.tools import tool
from toolcrib.toolsets import Toolset
from toolcrib.turns import Agent, Turn

STEPS = 20
PROGRAM = "for n in range(1, {steps} + 1):\n    (put if n % 2 else add)('{run}', n)\n'done'"

ledger = -1


def wrote(kind: str, run: str, n: int, key: str) -> None:
    """Do what can be seen from outside: one write, which the kernel keeps when the process is killed."""
    os.write(ledger, f"{kind} {run} {n} {key}\n".encode())


@tool(idempotent=True)
async def put(run: str, n: int, key: IdempotencyKey) -> str:
    """Set something: doing it twice with one key is doing it once."""
    wrote("put", run, n, key)
    await asyncio.sleep(0.002)
    return f"{run} {n}"


@tool()
async def add(run: str, n: int, key: IdempotencyKey) -> str:
    """Add something: doing it twice does it twice."""
    wrote("add", run, n, key)
    await asyncio.sleep(0.002)
    return f"{run} {n}"


@tool(idempotent=True)
async def put_turn(run: str, n: int, key: IdempotencyKey) -> Turn[str]:
    wrote("put", run, n, key)
    return next_turn(run, n)


@tool()
async def add_turn(run: str, n: int, key: IdempotencyKey) -> Turn[str] | str:
    wrote("add", run, n, key)
    return next_turn(run, n) if n < STEPS else "done"


def next_turn(run: str, n: int) -> Turn[str]:
    return Turn(add_turn if n % 2 else put_turn, kwargs={"run": run, "n": n + 1})


def made() -> tuple[DurableAgent, DurableToolkit]:
    """Return the agent and the toolkit, as every process of the trial has them."""
    agent = Agent("crash", "Makes twenty turns", Toolset([put_turn, add_turn]))
    quick = Queue("agents", worker_concurrency=25, polling=0.05)
    toolkit = Toolkit(Toolset([put, add]), sandbox="monty")
    return DurableAgent(agent, quick), DurableToolkit(toolkit, replace(quick, name="programs"), name="crash")


async def work(database: str, ready: Connection) -> None:
    """Work until the process dies, or whoever started it lets go."""
    agent, toolkit = made()
    async with Engine(database, worker_id="crash", queues=(agent.queue, toolkit.queue)):
        ready.send("ready")
        with suppress(EOFError):
            await asyncio.to_thread(ready.recv)


def main(database: str, path: str, ready: Connection) -> None:
    """Be a worker; says `ready` when it takes work."""
    global ledger
    ledger = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    asyncio.run(work(database, ready))
