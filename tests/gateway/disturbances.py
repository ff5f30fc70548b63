"""What happens to the servers behind a gateway meanwhile: they are killed, stopped, and change their tools."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Self

from mcp.client.client import Client
from mcp.shared.exceptions import MCPError

from tests.sandbox.acting import descendants

_PAUSE = (0.3, 1.5)  # seconds between two disturbances
_STOPPED = (0.5, 2.0)  # seconds for which a server is stopped


class UpstreamOverHttp:
    """A server over HTTP that can be killed, and is then started again on its port."""

    def __init__(self, command: Sequence[str], port: int) -> None:
        self._command, self.port = command, port
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start it, and wait until it listens."""
        words = [*self._command, str(self.port)]
        quiet = asyncio.subprocess.DEVNULL
        self._process = await asyncio.create_subprocess_exec(*words, stdout=quiet, stderr=quiet)
        while True:
            with suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                writer.close()
                return
            await asyncio.sleep(0.05)

    async def kill(self) -> None:
        """Kill it."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    @property
    def pid(self) -> int:
        """Its process."""
        assert self._process is not None
        return self._process.pid

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.kill()


class Disturber:
    """Disturbs the servers of some gateways, but for those that are named calm.

    Attributes:
        done: How often each thing happened.
    """

    def __init__(self, chance: random.Random, gateways: Sequence[int], upstream: UpstreamOverHttp, script: str) -> None:
        self._random, self._gateways, self._upstream = chance, gateways, upstream
        self._script = script.encode()
        self.done: Counter[str] = Counter()

    @asynccontextmanager
    async def working(self, client: Client) -> AsyncIterator[None]:
        """Disturb while the body runs."""
        stop = asyncio.Event()
        task = asyncio.create_task(self._work(client, stop))
        try:
            yield
        finally:
            stop.set()
            await task

    async def _work(self, client: Client, stop: asyncio.Event) -> None:
        acts = [self._kill_one, self._stop_one, self._kill_upstream, lambda: self._change(client)]
        while not stop.is_set():
            await self._random.choice(acts)()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._random.uniform(*_PAUSE)):
                    await stop.wait()

    async def _kill_one(self) -> None:
        if pids := self._victims():
            self.done["killed"] += 1
            with suppress(ProcessLookupError):
                os.kill(self._random.choice(pids), signal.SIGKILL)

    async def _stop_one(self) -> None:
        pid = self._random.choice([*self._victims(), self._upstream.pid])
        self.done["stopped"] += 1
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            await asyncio.sleep(self._random.uniform(*_STOPPED))
            os.kill(pid, signal.SIGCONT)

    async def _kill_upstream(self) -> None:
        self.done["killed over HTTP"] += 1
        await self._upstream.kill()
        await asyncio.sleep(self._random.uniform(0.1, 1.0))
        await self._upstream.start()

    async def _change(self, client: Client) -> None:
        self.done["changed"] += 1
        with suppress(MCPError):
            await client.call_tool(self._random.choice(["north_turn", "south_turn", "web_turn"]), {})

    def _victims(self) -> list[int]:
        """Return the servers over stdio of each gateway, without those that are named calm."""
        found: list[int] = []
        for gateway in self._gateways:
            for pid in descendants(gateway):
                with suppress(OSError):
                    words = Path("/proc", str(pid), "cmdline").read_bytes().split(b"\0")
                    if self._script in words and b"calm" not in words:
                        found.append(pid)
        return found
