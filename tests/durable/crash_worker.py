"""The target of the workers that `crash` disturbs: an agent of twenty turns, and tools for a program of twenty calls.

What a tool does is a line in a ledger outside of the databases; `main` is a worker's process.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from multiprocessing.connection import Connection

from toolcrib.adapters.dbos import DurableAgent, DurableToolkit, Queue
from toolcrib.cli import main as main_of_toolcrib
from toolcrib.code import Toolkit
from toolcrib.schema import IdempotencyKey
from toolcrib.tools import tool
from toolcrib.toolsets import Toolset
from toolcrib.turns import Agent, Turn

STEPS = 20
PROGRAM = "for n in range(1, {steps} + 1):\n    (put if n % 2 else add)('{run}', n)\n'done'"
LEDGER = "TOOLCRIB_CRASH_LEDGER"  # the environment variable that names the file


def wrote(kind: str, run: str, n: int, key: str) -> None:
    """Do what can be seen from outside: one write, which the kernel keeps when the process is killed.

    The last of its fields are the seconds since the tool began: a process that stood still meanwhile cannot be fenced.
    """
    began = time.monotonic()
    ledger = os.open(os.environ[LEDGER], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(
        ledger, f"{kind} {run} {n} {key} {os.getpid()} {time.time():.3f} {time.monotonic() - began:.3f}\n".encode()
    )
    os.close(ledger)


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
    await asyncio.sleep(0.002)
    return next_turn(run, n)


@tool()
async def add_turn(run: str, n: int, key: IdempotencyKey) -> Turn[str] | str:
    wrote("add", run, n, key)
    await asyncio.sleep(0.002)
    return next_turn(run, n) if n < STEPS else "done"


def next_turn(run: str, n: int) -> Turn[str]:
    return Turn(add_turn if n % 2 else put_turn, kwargs={"run": run, "n": n + 1})


agent = DurableAgent(
    Agent("crash", "Makes twenty turns", Toolset([put_turn, add_turn])),
    Queue("agents", worker_concurrency=25, polling=0.05),
)
toolkit = DurableToolkit(  # in the default sandbox
    Toolkit(Toolset([put, add])), Queue("programs", worker_concurrency=10, polling=0.05), name="crash"
)


def main(arguments: list[str], ledger: str, log: str, held: Connection) -> None:
    """Be `toolcrib worker` with these arguments; it ends with the process that started it, too."""
    os.environ[LEDGER] = ledger
    said = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(said, 1)
    os.dup2(said, 2)
    threading.Thread(target=_end_with, args=(held,), daemon=True).start()
    sys.argv = ["toolcrib", "worker", __name__, *arguments]
    main_of_toolcrib()


def _end_with(held: Connection) -> None:
    try:
        held.recv()
    except EOFError:
        os._exit(1)
