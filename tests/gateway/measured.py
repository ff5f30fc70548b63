"""Gateway in a process of its own, and what it holds: memory, descriptors, tasks, sessions, processes."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from tests.gateway.soak_gateway import of_process

# how much more of it there may be at the end than after the second phase
ALLOWED = {
    "memory": 12_000_000,
    "descriptors": 4,
    "threads": 3,
    "processes": 0,
    "tasks": 2,
    "sessions": 0,
    "objects": 4_000,
    "stdio_memory": 12_000_000,
    "stdio_descriptors": 4,
    "stdio_threads": 3,
    "stdio_processes": 0,
}


class GatewayProcess:
    """A gateway over HTTP, which is asked what it holds."""

    url: str
    pid: int

    def __init__(self, file: Path, tokens: Mapping[str, str], folder: Path) -> None:
        self._words = [sys.executable, "-m", "tests.gateway.soak_gateway", str(file), json.dumps(dict(tokens))]
        self._log = folder / "gateway.log"

    async def __aenter__(self) -> Self:
        with self._log.open("w") as log:
            pipe = asyncio.subprocess.PIPE
            self._process = await asyncio.create_subprocess_exec(
                *self._words, stdin=pipe, stdout=pipe, stderr=log, limit=1 << 24
            )
        self.pid = self._process.pid
        self.url = (await self._line())["url"]
        return self

    async def __aexit__(self, *error: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            async with asyncio.timeout(30):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()

    async def _line(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the gateway has ended: {self._log.read_text()[-3000:]}")
        return json.loads(line)

    async def held(self, other: int) -> dict[str, Any]:
        """Return what it holds, and what another process does."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"?\n")
        found = await self._line()
        return found | {f"stdio_{name}": value for name, value in of_process(other).items()}

    async def settled(self, other: int, patience: float) -> dict[str, Any]:
        """Return the same once both have let go of sessions and databases, and the servers are up; or after so long.

        It has to be so in two looks at once: a gateway may not have noticed yet that a server has just been killed.
        """
        until = time.monotonic() + patience
        was_quiet = False
        while True:
            await asyncio.sleep(1)
            held = await self.held(other)
            is_quiet = held["sessions"] == 0 and all(state == "up" for state in held["statuses"].values())
            is_quiet = is_quiet and held["stdio_processes"] >= held["processes"]  # it has the same servers
            is_quiet = is_quiet and held["databases"] == held["stdio_databases"] == 0  # they are kept for a while
            if (is_quiet and was_quiet) or time.monotonic() > until:
                return held
            was_quiet = is_quiet


def growth(held: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what the gateway holds more of at the end than after the second phase, and of which kinds."""
    before, after = held[min(1, len(held) - 1)], held[-1]
    grown = [name for name, most in ALLOWED.items() if after[name] > before[name] + most]
    if not grown:
        return []
    kinds = Counter(dict(after["kinds"]))
    kinds.subtract(dict(before["kinds"]))
    tasks = Counter(dict(after["task_names"]))
    tasks.subtract(dict(before["task_names"]))
    why = f"; most of all {kinds.most_common(12)}; tasks {tasks.most_common(5)}"
    return [f"{name} grew from {before[name]} to {after[name]}{why}" for name in grown]


def process_named(name: str) -> int:
    """Return the process of the gateway that was started with a name."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path("/proc", pid, "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[-3:-1] == [b"--name", name.encode()] and b"serve" in words and _parent(pid) == os.getpid():
            return int(pid)
    raise LookupError(name)


def _parent(pid: str) -> int:
    return int(Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[1])
