"""`make soak`: thousands of programs of many tenants, a tenth of them hostile; then what is left is counted.

python -m tests.attacks.soak [--programs 10000] [--sessions 100] [--tenants 20] [--at-once 8] [--engine process|monty]
                             [--rounds 6]

Each tenant has a sandbox of its own, and all share one queue. After it, each kind of hog runs without end at one
tenant, and in turns with it and without it the programs of another tenant are timed; `--rounds 0` leaves that out.
Exits with 1 when something leaked, an honest program did not get the right answer, or a hog more than doubled the
median time of the neighbour's programs.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.sandbox.acting import descendants
from toolcrib import Toolset, ez_tool
from toolcrib import sandbox as sandboxes
from toolcrib.code import ExecutionResult, ProgramSession, SandboxLimits, Toolkit

LIMITS = SandboxLimits(program_time=0.5, wall_time=5.0, sleep_time=0.5, memory=64 * 1024 * 1024)
_GROWTH = 40_000_000  # bytes that the host may be larger at the end than after its first programs
_WARM = 200  # programs before anything is counted
_TIMED = 15  # programs of the neighbour in each half of a round
_SETTLED = 10.0  # seconds in which what was closed has gone

HOSTILE = (
    "while True: pass",
    "x = 'a' * 10**9",
    "import typing\ntyping.sys.modules['os']._exit(3)",
    "import typing\ntyping.sys.modules['os'].abort()",
    "import typing\ntyping.sys.modules['os'].write(3, b'\\x00\\x00\\x00\\x04junk')",
    "import typing\ntyping.sys.modules['os'].close(3)",
    "while True: print('x' * 100_000)",
    "def f(): return f()\nf()",
    "raise SystemExit(1)",
    "1 / 0",
    "import socket",
    "x = (",
    "while True: add(**{f'k{n}': n for n in range(5_000)})",
)
_HASHING = """
import hashlib, threading
block = b"x" * (1 << 20)
def compute():
    while True: hashlib.sha256(block).digest()
def begin(threads):
    for _ in range(threads): threading.Thread(target=compute, daemon=True).start()
"""
HOGS = {
    "computes": "while True: pass",
    "computes in 32 threads": f"{_HASHING}begin(31)\ncompute()",
    "computes while it waits": f"{_HASHING}begin(1)\nwhile True: nap(0.05)",
    "takes memory": "kept = []\nwhile True: kept.append(bytearray(b'x' * 1_000_000))",
    "prints": "while True: print('x' * 10_000)",
    "calls": "while True: add(1, 2)",
    "calls with unknown keywords": """
names = {f"k{n}": n for n in range(40_000)}
while True:
    try: add(**names)
    except TypeError: pass
""",
    "calls with large arguments": """
rows = [{str(n): [n]} for n in range(20_000)]
while True:
    try: add(rows, rows)
    except ValueError: pass
""",
    "calls at once": "import asyncio\nawait asyncio.gather(*(nap(0.01) for _ in range(4_000)))",
    "crashes": "import typing\ntyping.sys.modules['os'].abort()",
    "sends no frames": "import typing\ntyping.sys.modules['os'].write(3, b'\\x00\\x0f\\x00\\x00' + b' ' * 900_000)",
}


def work(number: int) -> str:
    """Return an honest program whose value is `number * 3`."""
    return (
        f"total = 0\nfor n in range(3):\n    total = add(total, {number})\n"
        f"print('so far', total)\nbatch = [add(n, 0) for n in range({number % 4})]\ntotal"
    )


@ez_tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    await asyncio.sleep(0)
    return a + b


@ez_tool
async def nap(seconds: float) -> None:
    """Wait."""
    await asyncio.sleep(seconds)


# --- what is held ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Held:
    """What this process holds."""

    processes: int
    descriptors: int
    threads: int
    memory: int
    groups: int
    files: int

    @classmethod
    def now(cls, groups: Iterable[str] = ()) -> Held:
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return cls(
            processes=len(descendants(os.getpid())),
            descriptors=len(os.listdir("/proc/self/fd")),
            threads=threading.active_count(),
            memory=pages * os.sysconf("SC_PAGE_SIZE"),
            groups=sum(map(os.path.exists, groups)),
            files=len(os.listdir(tempfile.gettempdir())),
        )

    def __str__(self) -> str:
        return (
            f"{self.processes} processes, {self.descriptors} descriptors, {self.threads} threads, "
            f"{self.memory / 1e6:.0f} MB, {self.groups} control groups, {self.files} files"
        )

    def more(self, before: Held) -> list[str]:
        """Return what there is more of than before, by name."""
        allowed = {"processes": 0, "descriptors": 4, "threads": 2, "memory": _GROWTH, "groups": 0, "files": 0}
        return [name for name, by in allowed.items() if getattr(self, name) > getattr(before, name) + by]


async def settled(before: Held, groups: Iterable[str]) -> Held:
    """Return what is held once what was closed is gone, or has not gone for long."""
    until = time.monotonic() + _SETTLED
    while (held := Held.now(groups)).more(before) and time.monotonic() < until:  # noqa: ASYNC110 -- nothing tells
        await asyncio.sleep(0.2)
    return held


# --- many programs --------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Counted:
    """How the programs went."""

    right: int = 0
    wrong: list[str] = field(default_factory=list[str])
    ended: dict[str, int] = field(default_factory=dict[str, int])
    sessions: int = 0


@dataclass(slots=True)
class Place:
    """One user of a tenant: a session that is begun again when it was lost, or programs one by one."""

    toolkit: Toolkit
    has_session: bool
    session: ProgramSession | None = None

    async def run(self, code: str, counted: Counted) -> ExecutionResult:
        if not self.has_session:
            return await self.toolkit.execute_async(code)
        if self.session is None:
            self.session = self.toolkit.session()
            counted.sessions += 1
        result = await self.session.execute_async(code)
        if result.error is not None and "session ended with it" in result.error:
            self.close()
        return result

    def close(self) -> None:
        if self.session is not None:
            self.session.close()
            self.session = None


class Tenants:
    """Tenants with a sandbox each, and their users."""

    def __init__(self, engine: str, tenants: int, sessions: int) -> None:
        self.queue = sandboxes.ProgramQueue(
            most_programs=16, most_sessions=sessions + 8, most_memory=(sessions + 32) * LIMITS.memory
        )
        tools = Toolset([add, nap])
        self.sandboxes: list[Any] = [self._sandbox(engine) for _ in range(tenants if engine == "process" else 1)]
        self.toolkits = [Toolkit(tools, sandbox=each, limits=LIMITS) for each in self.sandboxes]
        keeps = engine == "process"
        self.places = [Place(self.toolkits[n % len(self.toolkits)], keeps) for n in range(sessions)]
        self.places += [Place(toolkit, False) for toolkit in self.toolkits]

    def _sandbox(self, engine: str) -> Any:
        if engine == "monty":
            return sandboxes.MontySandbox()
        return sandboxes.ProcessSandbox(queue=self.queue, spares=1)

    async def run(self, programs: int, at_once: int, dice: random.Random, counted: Counted) -> None:
        """Run so many programs, each at one user, of whom each runs one at a time."""
        numbers, free = iter(range(programs)), asyncio.Queue[Place]()
        for place in dice.sample(self.places, len(self.places)):
            free.put_nowait(place)

        async def lane() -> None:
            for number in numbers:
                place = await free.get()
                await _one(place, number, dice, counted)
                free.put_nowait(place)

        await asyncio.gather(*(lane() for _ in range(at_once)))

    def close(self) -> None:
        for place in self.places:
            place.close()
        for sandbox in self.sandboxes:
            sandbox.close()


async def _one(place: Place, number: int, dice: random.Random, counted: Counted) -> None:
    if dice.random() < 0.1:
        result = await place.run(dice.choice(HOSTILE), counted)
        kind = (result.error or "ran to its end").split(":")[0].split(" (")[0]
        counted.ended[kind] = counted.ended.get(kind, 0) + 1
        return
    result = await place.run(work(number), counted)
    if result.success and result.return_value == number * 3 and result.output == f"so far {number * 3}\n":
        counted.right += 1
    else:
        counted.wrong.append(f"{number}: {result.return_value!r} {result.error} {result.error_output[-300:]}")


async def soak(engine: str, programs: int, tenants: int, sessions: int, at_once: int, seed: int) -> int:
    """Run the programs, say how they went, and return the exit status."""
    first, dice, counted = Held.now(), random.Random(seed), Counted()
    there = Tenants(engine, tenants, sessions)
    groups = tuple(there.queue.group().folders)
    await there.run(min(_WARM, programs), at_once, dice, counted)
    began, warm = time.monotonic(), Held.now(groups)
    print(f"in the beginning: {first}\nafter the first {_WARM}: {warm}", flush=True)
    for done in range(0, programs, 1_000):
        await there.run(min(1_000, programs - done), at_once, dice, counted)
        print(
            f"{min(done + 1_000, programs):6} programs, {time.monotonic() - began:4.0f} s: {Held.now(groups)}",
            flush=True,
        )
    there.close()
    after = await settled(replace(first, memory=warm.memory, threads=warm.threads), groups)  # what is loaded once stays
    print(f"in the end: {after}\nright: {counted.right}, wrong: {len(counted.wrong)}, sessions: {counted.sessions}")
    print(f"hostile: {counted.ended}")
    for wrong in counted.wrong[:10]:
        print("  wrong:", wrong)
    leaked = after.more(replace(first, memory=warm.memory, threads=warm.threads))
    print(f"LEAKED: {', '.join(leaked)}" if leaked else "nothing is left behind")
    return int(bool(leaked or counted.wrong))


# --- one hog, and a neighbour --------------------------------------------------------------------------------------


async def hogging(engine: str, rounds: int) -> int:
    """Time the programs of one tenant in turns with and without a hog at another; return the exit status."""
    there = Tenants(engine, 2, 0)
    hog, neighbour = there.toolkits[0], Toolkit(Toolset([add, nap]), sandbox=there.sandboxes[-1])
    await _timed(neighbour, _TIMED)
    worst = 0.0
    print(f"{'the hog':32}  median without    with   ratio", flush=True)
    for name, code in HOGS.items():
        without: list[float] = []
        beside: list[float] = []
        for _ in range(rounds):
            without += await _timed(neighbour, _TIMED)
            running = asyncio.create_task(_without_end(hog, code))
            await asyncio.sleep(0.1)
            beside += await _timed(neighbour, _TIMED)
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running
        ratio = statistics.median(beside) / statistics.median(without)
        worst = max(worst, ratio)
        alone, hogged = (statistics.median(took) * 1e3 for took in (without, beside))
        print(f"{name:32} {alone:10.1f} ms {hogged:6.1f} ms {ratio:6.2f}", flush=True)
    there.close()
    print(f"the worst hog: {worst:.2f} times the neighbour's median")
    return int(worst > 2)


async def _without_end(toolkit: Toolkit, code: str) -> None:
    while True:
        await toolkit.execute_async(code)


async def _timed(toolkit: Toolkit, programs: int) -> list[float]:
    took: list[float] = []
    for number in range(programs):
        began = time.perf_counter()
        result = await toolkit.execute_async(work(number))
        took.append(time.perf_counter() - began)
        if result.return_value != number * 3:
            raise RuntimeError(f"an honest program failed: {result.error}")
    return took


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for, and return the exit status."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--programs", type=int, default=10_000)
    asked.add_argument("--sessions", type=int, default=100)
    asked.add_argument("--tenants", type=int, default=20)
    asked.add_argument("--at-once", type=int, default=8)
    asked.add_argument("--rounds", type=int, default=6, help="turns with each kind of hog")
    asked.add_argument("--engine", choices=["process", "monty"], default="process")
    asked.add_argument("--seed", type=int, default=1)
    given = asked.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = folder
        return _run(given)


def _run(given: argparse.Namespace) -> int:
    status = asyncio.run(soak(given.engine, given.programs, given.tenants, given.sessions, given.at_once, given.seed))
    if given.rounds and given.engine == "process":
        status |= asyncio.run(hogging(given.engine, given.rounds))
    return status


if __name__ == "__main__":
    sys.exit(main())
