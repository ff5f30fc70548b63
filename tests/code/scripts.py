"""A sandbox whose programs are async functions of the test's, run again from their start when they are taken up."""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from toolcrib.code.sandboxes import Host, Pending, Program, ProgramError, Raised, SandboxResult

Script = Callable[["Asks"], Awaitable[Any]]
_ROUNDS = 30  # of the event loop, after which a program that did nothing waits


class Asks:
    """What a script may do."""

    def __init__(self, host: Host, told: int) -> None:
        self._host, self._told = host, told
        self.printed = ""
        self.running = 0
        self.pending = 0
        self.steps = 0

    async def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        self.steps += 1
        self.running += 1
        try:
            reply = await self._host.call(name, list(args), kwargs)
        finally:
            self.running -= 1
            self.steps += 1
        return await self._taken(reply)

    async def stream(self, name: str, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        values: asyncio.Queue[Any] = asyncio.Queue()
        wanted = asyncio.Semaphore(0)

        async def emit(value: Any) -> None:
            await values.put((value,))
            self.running -= 1
            try:
                await wanted.acquire()
            finally:
                self.running += 1

        async def drive() -> None:
            self.running += 1
            try:
                await values.put(await self._host.call(name, list(args), kwargs, emit))
            finally:
                self.running -= 1

        task = asyncio.create_task(drive())
        try:
            while True:
                get = asyncio.ensure_future(values.get())
                await asyncio.wait([get, task], return_when=asyncio.FIRST_COMPLETED)
                if not get.done() and values.empty():
                    get.cancel()
                    task.result()
                item = await get
                self.steps += 1
                if not isinstance(item, tuple):
                    await self._taken(item)
                    return
                yield item[0]
                wanted.release()
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def _taken(self, reply: Any) -> Any:
        if isinstance(reply, Pending):
            self.pending += 1
            await asyncio.Event().wait()
        if isinstance(reply, Raised):
            raise getattr(builtins, reply.type)(reply.message)
        return reply.value

    def print(self, text: str) -> None:
        before = len(self.printed)
        self.printed += text
        new = self.printed[max(before, self._told) :]
        if new:
            self._host.output(new, "stdout")


class ScriptSandbox:
    """Runs the script that a program's text names."""

    def __init__(self, engine: str = "script-1", **scripts: Script) -> None:
        self._scripts, self._engine = scripts, engine
        self.programs: list[Program] = []

    @property
    def engine(self) -> str:
        return self._engine

    @property
    def replays(self) -> bool:
        return True

    async def run(self, program: Program, host: Host) -> SandboxResult:
        return await self.resume(program, {"told": 0}, host)

    async def resume(self, program: Program, state: Mapping[str, Any], host: Host) -> SandboxResult:
        self.programs.append(program)
        asks = Asks(host, state.get("told", 0))
        task = asyncio.ensure_future(self._scripts[program.code](asks))
        try:
            paused = await self._waits(task, asks)
            if paused:
                error = ProgramError("paused", "Paused", "it waits")
                return SandboxResult(None, asks.printed, "", error, ("none",), state={"told": len(asks.printed)})
            return SandboxResult(task.result(), asks.printed)
        except builtins.Exception as error:
            if isinstance(error, asyncio.CancelledError) or type(error).__module__ != "builtins":
                raise
            return SandboxResult(None, asks.printed, "", ProgramError("exception", type(error).__name__, str(error)))
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def _waits(self, task: asyncio.Future[Any], asks: Asks) -> bool:
        """Return whether the program waits for people and nothing else; False when it has ended."""
        still, before = 0, -1
        while not task.done():
            await asyncio.sleep(0)
            still = still + 1 if (asks.steps == before and not asks.running and asks.pending) else 0
            before = asks.steps
            if still > _ROUNDS:
                return True
            if asks.running:
                await asyncio.sleep(0.0005)
        return False
