"""The target of the workers that `crash` disturbs: an agent of eight turns, and tools for a program of eight calls.

What a tool does is a line in a ledger outside of the databases; `main` is a worker's process.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import faulthandler
import os
import signal
import sys
import threading
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from toolcrib.adapters.dbos import DurableAgent, DurableToolkit, Queue
from toolcrib.cli import main as main_of_toolcrib
from toolcrib.code import Toolkit
from toolcrib.schema import IdempotencyKey
from toolcrib.tools import tool
from toolcrib.toolsets import Toolset
from toolcrib.turns import Agent, Turn

STEPS = 8
TIMEOUT = 600  # seconds of a turn: a worker that stands still may keep its work
PROGRAM = "for n in range(1, {steps} + 1):\n    (put if n % 2 else pay if n % 4 == 0 else add)('{run}', n)\n'done'"
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


@tool(requires_approval=True)
async def pay(run: str, n: int, key: IdempotencyKey) -> str:
    """Add something after a person has approved it."""
    wrote("add", run, n, key)
    await asyncio.sleep(0.002)
    return f"{run} {n}"


@tool(idempotent=True)
async def put_turn(run: str, n: int, key: IdempotencyKey) -> Turn[Any]:
    wrote("put", run, n, key)
    await asyncio.sleep(0.002)
    return next_turn(run, n)


@tool()
async def add_turn(run: str, n: int, key: IdempotencyKey) -> Turn[Any]:
    wrote("add", run, n, key)
    await asyncio.sleep(0.002)
    return next_turn(run, n)


@tool(requires_approval=True)
async def pay_turn(run: str, n: int, key: IdempotencyKey) -> Turn[Any] | str:
    wrote("add", run, n, key)
    await asyncio.sleep(0.002)
    return next_turn(run, n) if n < STEPS else "done"


def next_turn(run: str, n: int) -> Turn[Any]:
    following = n + 1
    next_tool = put_turn if following % 2 else pay_turn if following % 4 == 0 else add_turn
    return Turn(next_tool, kwargs={"run": run, "n": following}, timeout=TIMEOUT)


TURN_TOOLS = Toolset([put_turn, add_turn, pay_turn])
agent = DurableAgent(
    Agent("crash", "Makes eight turns", TURN_TOOLS),
    Queue("agents", worker_concurrency=25, polling=0.05),
)
toolkit = DurableToolkit(  # in the default sandbox
    Toolkit(Toolset([put, add, pay])), Queue("programs", worker_concurrency=10, polling=0.05), name="crash"
)


@dataclass(frozen=True, slots=True)
class Files:
    """The files of a worker: what its tools write, what it says, and the seconds by which its clock is wrong."""

    ledger: str
    log: str
    clock: str


def main(arguments: list[str], files: Files, source: str | None, held: Connection) -> None:
    """Be `toolcrib worker` with these arguments.

    Args:
        source: A folder with the sources of another commit, which this process then runs, unless they refused tables
            of a newer one: an operator puts that one in their place.
    """
    if source is not None and not _refused_tables(files):
        os.set_inheritable(held.fileno(), True)
        code = f"from {__name__} import *\nmain({arguments!r}, {files!r}, None, Connection({held.fileno()}))"
        path = os.pathsep.join([source, str(Path(__file__).parents[2])])
        os.execve(sys.executable, [sys.executable, "-c", code], {**os.environ, "PYTHONPATH": path})
    begin(files, held)
    sys.argv = ["toolcrib", "worker", __name__, *arguments]
    main_of_toolcrib()


def _refused_tables(files: Files) -> bool:
    log = Path(files.log)
    return log.exists() and "a newer version of Toolcrib made its" in log.read_text()


def begin(files: Files, held: Connection) -> None:
    """Have this process be a worker with these files, which ends with the process that started it, and is told."""
    os.environ[LEDGER] = files.ledger
    os.environ.pop("LD_PRELOAD", None)  # of this process alone, and not of its sandboxes
    if wrong_clock := getattr(ctypes.CDLL(None), "toolcrib_clock", None):
        wrong_clock(files.clock.encode())
    said = os.open(files.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(said, 1)
    os.dup2(said, 2)
    signal.signal(signal.SIGUSR1, _show_tasks)
    faulthandler.register(signal.SIGUSR1, chain=True)
    threading.Thread(target=_end_with, args=(held,), daemon=True).start()
    held.send("begun")


def _show_tasks(*_: object) -> None:
    """Write down what the tasks of this process wait for."""
    with contextlib.suppress(RuntimeError):  # no event loop runs any more
        for task in asyncio.all_tasks():
            task.print_stack()


def _end_with(held: Connection) -> None:
    try:
        held.recv()
    except EOFError:
        os._exit(1)
