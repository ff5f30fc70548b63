"""A worker that kills itself or stands still at a chosen point, to test what comes after; `main` is its process.

What its tools do is written into a folder, a line each; a file `die-at-POINT` there is where the process ends, once. A
file `stop-at-POINT` is where it stands still: it is `stopped-at-POINT` then, until that is removed.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator

from toolcrib.adapters.dbos import DurableAgent, Engine, Queue
from toolcrib.calls import RunNormally
from toolcrib.errors import WorkerError
from toolcrib.hooks import HookSet
from toolcrib.pipeline import Run
from toolcrib.schema import IdempotencyKey
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset
from toolcrib.turns import Agent, Turn

FOLDER = Path(".")
POLLING = 0.02


def die(point: str) -> None:
    """End the process as the kernel would, if this is where a test wants it."""
    mark = FOLDER / f"die-at-{point}"
    if mark.exists():
        mark.unlink()
        os.kill(os.getpid(), signal.SIGKILL)


def stand_still(point: str) -> None:
    """Wait, as a process that gets no time, if this is where a test wants it."""
    mark, stands = FOLDER / f"stop-at-{point}", FOLDER / f"stopped-at-{point}"
    with suppress(FileNotFoundError):
        mark.rename(stands)
        while stands.exists():
            time.sleep(0.01)


def wrote(line: str) -> None:
    """Do something that can be seen from outside."""
    with (FOLDER / "effects").open("a") as file:
        file.write(line + "\n")


@ez_tool()
async def charge(amount: int, key: IdempotencyKey) -> str:
    wrote(f"charge {amount} {key}")
    die("charge")
    await asyncio.to_thread(stand_still, "charge")
    return f"charged {amount}"


@ez_tool(idempotent=True)
async def set_to(value: int, key: IdempotencyKey) -> str:
    wrote(f"set {value} {key}")
    die("set_to")
    return f"set to {value}"


@ez_tool(idempotent=True)
async def fill(cents: Annotated[int, AfterValidator(lambda euros: euros * 100)]) -> str:
    wrote(f"fill {cents}")
    die("fill")
    return f"filled {cents}"


@ez_tool(idempotent=True)
async def count(n: int) -> AsyncIterator[int]:
    for number in range(n):
        if number == 2:
            await asyncio.sleep(0.2)
            die("count")
        yield number


@ez_tool()
async def down(n: int) -> Any:
    wrote(f"down {n}")
    return Turn(down, kwargs={"n": n - 1}) if n else "landed"


@ez_tool(requires_approval=True)
async def pay(amount: int) -> str:
    wrote(f"pay {amount}")
    die("pay")
    return f"paid {amount}"


def run() -> Run:
    """Return the run of a turn, which was taken from its queue and has not begun."""
    stand_still("taken")
    return Run()


def agent() -> DurableAgent:
    """Return the agent, as every process makes it."""
    hooks = HookSet()

    @hooks.on("set_to")
    async def decide(call: Any, given: Any) -> RunNormally:
        wrote("decided")
        return RunNormally(given)

    tools = Toolset([charge, set_to, fill, count, down, pay], hooks=hooks)
    made = DurableAgent(Agent("dying", "Dies.", tools), Queue("dying", polling=POLLING), run=run)

    @made.agent.before_turn
    async def before(agent: Agent, turn: Turn[Any]) -> None:
        if turn.tool is set_to:
            wrote("before")
        die("before")

    @made.agent.after_turn
    async def after(agent: Agent, turn: Turn[Any]) -> None:
        die("after")

    return made


async def work(database: str, worker: str, ready: Connection) -> None:
    """Work until the process dies, its work is handed over, or its starter lets go."""
    durable = agent()
    async with Engine(database, worker_id=worker, queues=[durable.queue], answers=POLLING, grace=1.0) as engine:
        ready.send("ready")
        let_go = asyncio.Event()
        asyncio.get_running_loop().add_reader(ready.fileno(), let_go.set)
        waits = [asyncio.create_task(event.wait()) for event in (let_go, engine.lost)]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        if engine.lost.is_set():
            ready.send("given up")


def main(database: str, folder: Path, worker: str, ready: Connection) -> None:
    """Be a worker; says `ready` when it takes work, or why it cannot."""
    global FOLDER
    FOLDER = folder
    try:
        asyncio.run(work(database, worker, ready))
    except WorkerError as error:
        ready.send(str(error))
