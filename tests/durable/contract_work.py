"""What the contract of engines runs: tools whose effects can be seen, an agent here, and workers that can be killed.

What the tools do is written into a file, a line each: what happened, whatever an engine says.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from collections.abc import AsyncIterator, Callable
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from toolcrib.schema import IdempotencyKey
from toolcrib.tools import Tool, ez_tool
from toolcrib.turns import Turn

LOOK = 0.05  # seconds between two looks of an engine
_server = multiprocessing.get_context("forkserver")  # workers are forked off a process that has imported everything
_server.set_forkserver_preload(["tests.durable.contract_dbos"])


def tools_of(folder: Path) -> list[Tool[..., Any]]:
    """Return tools whose effects are lines of a file in the folder; `file` beside it holds a tool up."""

    async def happen(line: str) -> None:
        with (folder / "effects").open("a") as file:
            file.write(line + "\n")
        while (folder / "hold").exists():  # noqa: ASYNC110 -- another process removes it
            await asyncio.sleep(LOOK)

    @ez_tool()
    async def charge(amount: int) -> str:
        await happen(f"charge {amount}")
        return f"charged {amount}"

    @ez_tool(idempotent=True)
    async def set_to(value: int, key: IdempotencyKey) -> str:
        await happen(f"set to {value} {key}")
        return f"set to {value}"

    @ez_tool(requires_approval=True)
    async def pay(amount: int) -> str:
        await happen(f"pay {amount}")
        return f"paid {amount}"

    @ez_tool()
    async def count(n: int) -> AsyncIterator[int]:
        for number in range(n):
            yield number
            if number == 2:
                await happen("count")

    @ez_tool()
    async def down(n: int) -> Any:
        await happen(f"down {n}")
        return Turn(down, kwargs={"n": n - 1}) if n else "landed"

    @ez_tool()
    async def fail() -> str:
        raise ValueError("broken")

    return [charge, set_to, pay, count, down, fail]


class WorkerEngine:
    """An engine with an agent that enqueues here, and workers in processes of their own.

    Args:
        agent: The agent on the engine.
        main: What a worker does, from a connection on by which it says that it takes work.
    """

    def __init__(self, folder: Path, agent: Any, main: Callable[[Connection], None]) -> None:
        self.folder, self.agent, self._main = folder, agent, main
        self.worker: BaseProcess | None = None

    @property
    def effects(self) -> list[str]:
        """What the tools did, in order."""
        file = self.folder / "effects"
        return file.read_text().splitlines() if file.exists() else []

    def turn(self, name: str, **arguments: Any) -> Turn[Any]:
        """Return a turn of the tool of this name."""
        return Turn(self.agent.agent.toolset[name].tool, kwargs=arguments)

    async def start(self) -> None:
        """Start a worker, and return when it takes work."""
        ours, its = Pipe()
        self.worker = _server.Process(target=self._main, args=(its,), daemon=True)
        self.worker.start()
        assert await asyncio.to_thread(ours.recv) == "ready"

    async def kill(self) -> None:
        """Kill the worker as the kernel would."""
        if self.worker is not None and self.worker.pid is not None:
            os.kill(self.worker.pid, signal.SIGKILL)
            await asyncio.to_thread(self.worker.join)

    async def cut_off(self, turn: Turn[Any]) -> Any:
        """Put a turn, kill its worker while its tool runs, start another, and return the turn's handle."""
        hold = self.folder / "hold"
        hold.touch()
        handle = await self.agent.put(turn)
        await self.happened(1)
        await self.kill()
        hold.unlink()
        await self.start()
        return handle

    async def happened(self, lines: int) -> None:
        """Wait until the tools have done so much."""
        while len(self.effects) < lines:  # noqa: ASYNC110 -- another process writes it
            await asyncio.sleep(LOOK)
