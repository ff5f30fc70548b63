"""`make soak`: thousands of programs, a tenth of them hostile or crashing; then what is left behind is counted.

python -m tests.attacks.soak [--programs 10000] [--at-once 8] [--engine process|monty]

Exits with 1 when a process, a descriptor or memory leaked, or an honest program did not get the right answer.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import random
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolcrib import Toolset, ez_tool
from toolcrib import sandbox as sandboxes
from toolcrib.code import SandboxLimits, Toolkit

LIMITS = SandboxLimits(program_time=0.5, wall_time=5.0, sleep_time=0.5, memory=64 * 1024 * 1024)
_GROWTH = 40_000_000  # bytes that the host may be larger at the end than after its first programs
_WARM = 200  # programs before anything is counted

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
)


def work(number: int) -> str:
    """Return an honest program whose value is `number * 3`."""
    return (
        f"total = 0\nfor n in range(3):\n    total = add(total, {number})\n"
        f"print('so far', total)\nbatch = [add(n, 0) for n in range({number % 4})]\ntotal"
    )


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    await asyncio.sleep(0)
    return a + b


@dataclass(slots=True)
class Counted:
    """How the programs went."""

    right: int = 0
    wrong: list[str] = field(default_factory=list[str])
    ended: dict[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True)
class Held:
    """What this process holds."""

    processes: int
    descriptors: int
    memory: int

    @classmethod
    def now(cls) -> Held:
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return cls(_below(os.getpid()), len(os.listdir("/proc/self/fd")), pages * os.sysconf("SC_PAGE_SIZE"))

    def __str__(self) -> str:
        return f"{self.processes} processes, {self.descriptors} descriptors, {self.memory / 1e6:.0f} MB"


def _below(root: int) -> int:
    parents: dict[int, int] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = Path(f"/proc/{entry}/stat").read_text()
            except OSError:
                continue
            parents[int(entry)] = int(stat.rsplit(")", 1)[1].split()[1])
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return len(found) - 1


async def soak(sandbox: Any, programs: int, at_once: int, seed: int) -> int:
    """Run the programs, say how they went, and return the exit status."""
    toolkit = Toolkit(Toolset([ez_tool(add)]), sandbox=sandbox, limits=LIMITS)
    dice, counted = random.Random(seed), Counted()
    await _batch(toolkit, min(_WARM, programs), at_once, dice, counted)
    await asyncio.sleep(0.5)
    before, began = Held.now(), time.monotonic()
    print(f"after the first {_WARM}: {before}", flush=True)
    for done in range(0, programs, 1_000):
        await _batch(toolkit, min(1_000, programs - done), at_once, dice, counted)
        print(f"{done + 1_000:6} programs, {time.monotonic() - began:4.0f} s: {Held.now()}", flush=True)
    await asyncio.sleep(1.0)
    after = Held.now()
    print(f"in the end: {after}\nright: {counted.right}, wrong: {len(counted.wrong)}, hostile: {counted.ended}")
    for wrong in counted.wrong[:10]:
        print("  wrong:", wrong)
    leaked = (
        after.processes > before.processes + 2
        or after.descriptors > before.descriptors + 8
        or after.memory > before.memory + _GROWTH
    )
    print("LEAKED" if leaked else "nothing is left behind")
    return int(leaked or bool(counted.wrong))


async def _batch(toolkit: Toolkit, programs: int, at_once: int, dice: random.Random, counted: Counted) -> None:
    numbers = iter(range(programs))

    async def lane() -> None:
        for number in numbers:
            if dice.random() < 0.1:
                result = await toolkit.execute_async(dice.choice(HOSTILE))
                kind = (result.error or "ran to its end").split(":")[0].split(" (")[0]
                counted.ended[kind] = counted.ended.get(kind, 0) + 1
                continue
            result = await toolkit.execute_async(work(number))
            if result.success and result.return_value == number * 3 and result.output == f"so far {number * 3}\n":
                counted.right += 1
            else:
                counted.wrong.append(f"{number}: {result.return_value!r} {result.error} {result.error_output[-300:]}")

    await asyncio.gather(*(lane() for _ in range(at_once)))


def main() -> int:
    """Run what the command line asks for, and return the exit status."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--programs", type=int, default=10_000)
    asked.add_argument("--at-once", type=int, default=8)
    asked.add_argument("--engine", choices=["process", "monty"], default="process")
    asked.add_argument("--seed", type=int, default=1)
    options = asked.parse_args()
    sandbox = sandboxes.MontySandbox() if options.engine == "monty" else None
    return asyncio.run(soak(sandbox, options.programs, options.at_once, options.seed))


if __name__ == "__main__":
    sys.exit(main())
