"""A sandbox whose programs are async functions of the test's, run again from their start when they are taken up."""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from toolcrib.sandbox import Host, Program, ProgramError, Raised, SandboxResult, SuspendedReply

Script = Callable[["Asks"], Awaitable[Any]]
_ROUNDS = 30  # of the event loop, after which a program that did nothing waits


class Asks:
    """What a script may do."""

    def __init__(self, host: Host, earlier: int) -> None:
        self.host, self._earlier = host, earlier
        self._streams: list[Values] = []
        self.printed = ""
        self.running = 0
        self.pending = 0
        self.steps = 0

    async def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        self.steps += 1
        self.running += 1
        try:
            reply = await self.host.call(name, list(args), kwargs)
        finally:
            self.running -= 1
            self.steps += 1
        return await self.taken(reply)

    def stream(self, name: str, *args: Any, **kwargs: Any) -> Values:
        made = Values(self, name, args, kwargs)
        self._streams.append(made)
        return made

    async def close(self) -> None:
        for stream in self._streams:
            await stream.aclose()

    async def taken(self, reply: Any) -> Any:
        if isinstance(reply, SuspendedReply):
            self.pending += 1
            await asyncio.Event().wait()
        if isinstance(reply, Raised):
            raise getattr(builtins, reply.type)(reply.message)
        return reply.value

    def print(self, text: str) -> None:
        before = len(self.printed)
        self.printed += text
        new = self.printed[max(before, self._earlier) :]
        if new:
            self.host.output(new, "stdout")


class Values:
    """The values of a streaming call, asked for one by one."""

    def __init__(self, asks: Asks, name: str, args: Any, kwargs: Any) -> None:
        self._asks, self._wanted = asks, asyncio.Semaphore(0)
        self._items: asyncio.Queue[Any] = asyncio.Queue()
        asks.running += 1
        self._task = asyncio.create_task(self._drive(name, args, kwargs))
        self._begun = False

    async def _drive(self, name: str, args: Any, kwargs: Any) -> None:
        try:
            self._items.put_nowait(await self._asks.host.call(name, list(args), kwargs, self._emit))
        except Exception as error:
            self._items.put_nowait(error)
        finally:
            self._asks.running -= 1

    async def _emit(self, value: Any) -> None:
        self._items.put_nowait((value,))
        self._asks.running -= 1
        try:
            await self._wanted.acquire()
        finally:
            self._asks.running += 1

    def __aiter__(self) -> Values:
        return self

    async def __anext__(self) -> Any:
        if self._begun:
            self._wanted.release()
        self._begun = True
        item = await self._items.get()
        self._asks.steps += 1
        if isinstance(item, Exception):
            raise item
        if isinstance(item, tuple):
            return item[0]  # type: ignore[misc]
        await self._asks.taken(item)
        raise StopAsyncIteration

    async def aclose(self) -> None:
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])


class ScriptSandbox:
    """Runs the script that a program names in a comment."""

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
        return await self.resume(program, {"printed": 0}, host)

    async def resume(self, program: Program, state: Mapping[str, Any], host: Host) -> SandboxResult:
        self.programs.append(program)
        asks = Asks(host, state.get("printed", 0))
        task = asyncio.ensure_future(self._scripts[program.code.strip("# ")](asks))
        try:
            paused = await self._waits(task, asks)
            if paused:
                error = ProgramError("paused", "Paused", "it waits")
                return SandboxResult(None, asks.printed, "", error, ("none",), state={"printed": len(asks.printed)})
            return SandboxResult(task.result(), asks.printed)
        except builtins.Exception as error:
            if isinstance(error, asyncio.CancelledError) or type(error).__module__ != "builtins":
                raise
            return SandboxResult(None, asks.printed, "", ProgramError("exception", type(error).__name__, str(error)))
        finally:
            task.cancel()
            await asyncio.wait([task])
            await asks.close()

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
