"""Hogs: what takes memory, time, threads or places from the host and from others, each in a host of its own.

`python -m tests.attacks.hogs NAME [--control] [--user N]` writes `held`, `HOGGED` or `not tried: why`. The control is
the same hog where what should hold it is missing, which shows that the detector sees it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import resource
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.attacks.harness import attacks
from tests.sandbox.acting import descendants, until
from toolcrib import ez_tool
from toolcrib.code import SandboxLimits, Toolkit, extract_code
from toolcrib.errors import SandboxError
from toolcrib.sandbox import ProcessSandbox, ProgramQueue, SubprocessSandbox
from toolcrib.sandbox._control_group import own_group

MB = 1 << 20
USER = 61_234 + os.getpid() % 3_000  # of whom no other process is: the kernel counts the threads of a user
LIMITS = SandboxLimits(program_time=0.5, wall_time=15.0, sleep_time=10.0)
THREADS = """
import hashlib, threading
block = b"x" * (1 << 22)
def compute():
    while True: hashlib.sha256(block).digest()
for _ in range(4): threading.Thread(target=compute, daemon=True).start()
"""
HOLDS = "data = bytearray(b'abcdefgh' * 1_000_000 * 13)\nnap(4)\nlen(data)"
HOLDS_BARE = "import sys, time; data = bytearray(b'abcdefgh' * 1_000_000 * 13); time.sleep(5)"
POOL = (
    "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(4) as p: n = sum(p.map(abs, [1, 2]))\nn"
)
QUADRATIC = re.compile(r"(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})[ \t]*(?P<label>[\w+#.-]*)[^`]*")


@ez_tool
async def nap(seconds: float = 3.0) -> str:
    """Wait."""
    await asyncio.sleep(seconds)
    return "slept"


def kit(sandbox: Any, limits: SandboxLimits = LIMITS) -> Toolkit:
    return Toolkit([nap], sandbox=sandbox, limits=limits)


def unconfined(code: str, times: int) -> list[subprocess.Popen[bytes]]:
    return [subprocess.Popen([sys.executable, "-c", code]) for _ in range(times)]


def threads_of(process: subprocess.Popen[bytes]) -> int:
    """Return how many threads a process has."""
    try:
        return len(os.listdir(f"/proc/{process.pid}/task"))
    except OSError:
        return 0


async def session_threads(control: bool) -> bool:
    """Threads of a session compute after its program has ended."""
    if control:
        await kit("unsafe_inline").execute_async(THREADS)
    else:
        session = kit("process").session()
        await session.execute_async(THREADS)
    before = computed()
    for _ in range(600 if control else 15):
        await asyncio.sleep(0.1)
        if computed() - before > 0.7:
            return True
    return False


async def waiting_threads(control: bool) -> bool:
    """Threads of a session's program compute while it waits for a tool."""
    code = f"{THREADS}\nnap(4)"
    if control:
        return (await kit("unsafe_inline").execute_async(code)).success
    return (await kit("process").session().execute_async(code)).success


async def idle_sessions(control: bool) -> bool:
    """Sessions of which no program runs any more keep their processes."""
    others = descendants(os.getpid())
    with ProcessSandbox(spares=0, session_idle=None if control else 0.5) as sandbox:
        await kit(sandbox).execute_async("1")
        before = len(descendants(os.getpid(), others))
        sessions = [kit(sandbox).session() for _ in range(5)]
        for session in sessions:
            await session.execute_async("text = 'a' * 1_000_000")
        for _ in range(25 if control else 600):
            await asyncio.sleep(0.1)
            if len(descendants(os.getpid(), others)) <= before:
                return False
        return True


async def many_sessions(control: bool) -> bool:
    """One user opens one session after another."""
    with ProcessSandbox(queue=ProgramQueue(most_sessions=1_000 if control else 5)) as sandbox, ExitStack() as opened:
        try:
            for _ in range(8):
                session = opened.enter_context(kit(sandbox).session())
                await session.execute_async("1")
        except SandboxError:
            return False
    return True


async def threads_of_others(control: bool) -> bool:
    """Two programs take all threads that they can get; one of another tenant wants four."""
    resource.setrlimit(resource.RLIMIT_NPROC, (700, 700))
    [raw] = attacks("h04_raw_threads")
    hold = raw.code.replace("for _ in range(started):", "nap(4)\nfor _ in range(started):")
    bare = f"import ctypes, time\nnap = time.sleep\n{hold}".replace("nap(4)", "nap(90)")
    with (
        ProcessSandbox(spares=0) as hogs,
        SubprocessSandbox(spares=0) if control else ProcessSandbox(spares=0) as others,
    ):
        for sandbox in (hogs, others):
            await kit(sandbox).execute_async("1")
        holding = unconfined(bare, 2 if control else 0)
        running = [] if control else [asyncio.create_task(kit(hogs).execute_async(hold)) for _ in range(2)]
        for _ in range(600 if control else 20):
            await asyncio.sleep(0.1)
            if control and sum(map(threads_of, holding)) >= 600:
                break
        wanted = await kit(others).execute_async(POOL)
        await asyncio.gather(*running)
        for each in holding:
            each.kill()
            each.wait()
        return not wanted.success


async def fences(control: bool) -> bool:
    """Replies that look like code for as long as a pattern can be kept busy."""
    resource.setrlimit(resource.RLIMIT_CPU, (5, 5))
    for text in ("~~~" + " " * 500_000 + "`", "```" + "a" * 500_000 + "`", "```py\n" * 100_000, "~~~ \n" * 100_000):
        if control:
            QUADRATIC.fullmatch(text)
        else:
            extract_code(text)
    return False


async def memory(control: bool) -> bool:
    """Programs and host together want more memory than there is."""
    ballast = bytearray(os.urandom(MB)) * 200
    if control:
        for each in unconfined(HOLDS_BARE, 4):
            each.wait()
    else:
        toolkit = kit("process", SandboxLimits(program_time=20, wall_time=40))
        ended = await asyncio.gather(*(toolkit.execute_async(HOLDS) for _ in range(4)))
        return all(result.success for result in ended)  # then there was memory enough, and nothing was tried
    return len(ballast) == 0


HOGS: dict[str, Callable[[bool], Awaitable[bool]]] = {
    each.__name__: each
    for each in (session_threads, waiting_threads, idle_sessions, many_sessions, threads_of_others, fences, memory)
}


def computed() -> float:
    """Return the seconds that this process and those below it have computed."""
    total = 0
    for pid in (os.getpid(), *descendants(os.getpid())):
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def become(user: int) -> None:
    """Be a user without rights, with a Python that this user may start."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    sys.executable = next(each for each in (sys.executable, "/usr/bin/python3") if os.access(each, os.X_OK))


def host(name: str, control: bool, user: int | None) -> int:
    """Be the host of a hog; return 1 when it got through."""

    async def run() -> bool:
        await kit("process").execute_async("1")  # so that all is loaded that a user without rights may not read
        if user is not None:
            become(user)
        resource.setrlimit(resource.RLIMIT_CPU, (20, 20))  # of this process alone: it hangs
        return await HOGS[name](control)

    hogged = asyncio.run(run())
    sys.stdout.flush()
    os._exit(int(hogged))


def watched(name: str, control: bool, user: int | None) -> str:
    """Return what became of a host, which may be killed by the kernel."""
    groups: list[Path] = []
    if name == "threads_of_others":
        if os.geteuid() != 0:
            return "not tried: it needs root, to be a user of its own, whose threads the kernel counts"
        user = USER
    if name == "memory":
        group = own_group(MB)
        if group.problem:
            return f"not tried: {group.problem}"
        folder, file = next((f, n) for f, limits in group.folders.items() for n in limits if n.startswith("memory"))
        groups.append(Path(folder))
        Path(folder).mkdir()
        Path(folder, file).write_text(str(500 * MB))
    child = os.fork()
    if child == 0:
        for group in groups:
            (group / "cgroup.procs").write_text("0")
        host(name, control, user)
    _, status = os.waitpid(child, 0)
    for group in groups:
        until(lambda group=group: not (group / "cgroup.procs").read_text())
        group.rmdir()
    return "held" if status == 0 else "HOGGED"


def main() -> None:
    """Run what the command line asks for."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("name", choices=HOGS)
    asked.add_argument("--control", action="store_true")
    asked.add_argument("--user", type=int)
    options = asked.parse_args()
    print(watched(options.name, options.control, options.user))


if __name__ == "__main__":
    main()
