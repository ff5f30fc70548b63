"""Runs hostile programs in a victim process and looks for traces of success from outside.

A program's first lines say what it tries and which traces would show that it got through; every trace is looked for in
every run. `run.py` is the command, `test_attacks.py` the test.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

__all__ = ["NOBODY", "Attack", "Finding", "attacks", "run_attacks"]

NOBODY = 65534
_PROGRAMS = Path(__file__).parent / "programs"
_ROOT = Path(__file__).parents[2]
_LATE = 20.0  # seconds past every limit after which a host without an answer counts as hung
_STARTED = 300.0  # seconds in which a host has to start; one that dies at it is seen at once
_MEMORY = 400_000_000  # bytes by which the host may not grow
_PROCESSES = 20
_STARTS = {"bubblewrap": 10.0, "gvisor": 60.0}  # seconds that a program may take to start behind a wall
_OF_A_WALL = 10  # processes that one program may have there
_SHELLS = ("sh", "-c", """sh -c '"$@"; exit $?' sh "$@"; exit $?""", "sh")  # so that the victim has a parent to kill
_FLOOD = 5_000_000  # characters handed to a model


@dataclass(frozen=True, slots=True)
class Attack:
    """One hostile program.

    Attributes:
        traces: What would show that it got through, in the words of its second line.
    """

    name: str
    what: str
    traces: frozenset[str]
    code: str

    def armed(self, spots: Spots, number: int) -> str:
        """Return the program with the places to aim at filled in."""
        code = self.code.replace("@CANARY@", str(spots.folder)).replace("@ABSTRACT@", spots.abstract)
        return code.replace("@TCP@", f"{spots.tcp}").replace("@UDP@", f"{spots.udp}").replace("@NUMBER@", f"{number}")


@dataclass(slots=True)
class Finding:
    """What became of one attack; `traces` is empty when it was held."""

    name: str
    traces: set[str] = field(default_factory=set[str])
    said: str = ""
    secs: float = 0.0


def attacks(pattern: str = "*") -> list[Attack]:
    """Return the attacks whose file names match, in order."""
    return [_read(path) for path in sorted(_PROGRAMS.glob(f"{pattern}.py"))]


def _read(path: Path) -> Attack:
    what, traces, code = path.read_text().split("\n", 2)
    named = re.fullmatch(r"# breach: (.+)", traces)
    if named is None:
        raise ValueError(f"{path.name}: its second line must be `# breach: ` and traces")
    return Attack(path.stem, what.removeprefix("# "), frozenset(named[1].split(", ")), code)


class Spots:
    """What one program may reach if it gets out: a folder with a secret, and ears on the loopback."""

    def __init__(self, folder: Path, secret: str) -> None:
        folder.mkdir()
        folder.chmod(0o777)
        (folder / "secret.txt").write_text(secret)
        self.folder, self.heard = folder, set[str]()
        self.abstract = "toolcrib-" + secrets.token_hex(6)
        self._ears = [_bound(socket.SOCK_STREAM), _bound(socket.SOCK_DGRAM), socket.socket(socket.AF_UNIX)]
        self._ears[2].bind("\0" + self.abstract)
        self._ears[2].listen()
        self.tcp, self.udp = (ear.getsockname()[1] for ear in self._ears[:2])

    def listen(self) -> None:
        """Note who has knocked meanwhile."""
        ready, _, _ = select.select(self._ears, [], [], 0)
        self.heard.update(("net_tcp", "net_udp", "net_abstract")[self._ears.index(ear)] for ear in ready)

    def close(self) -> None:
        for ear in self._ears:
            ear.close()


def _bound(kind: int) -> socket.socket:
    ear = socket.socket(socket.AF_INET, kind)
    ear.bind(("127.0.0.1", 0))
    if kind == socket.SOCK_STREAM:
        ear.listen()
    return ear


def run_attacks(
    engine: str,
    chosen: Sequence[Attack],
    *,
    skip: Sequence[str] = (),
    user: int | None = None,
    at_once: int = 4,
    linger: float = 1.3,
) -> list[Finding]:
    """Run attacks in one victim, or each in one of its own for the control, and return what became of them.

    What cannot be told apart, such as the processor time after all is over, is found under the name `(host)`.

    Args:
        engine: `process`, `packages` (that with the packages of data work), `monty`, `bubblewrap`, `gvisor`, or
            `control`: no sandbox at all.
        skip: Layers of the process sandbox that are switched off.
        user: The user id that the victim becomes, which takes root; this process's own when None.
    """
    groups = [[attack] for attack in chosen] if engine == "control" else [list(chosen)]
    found: list[Finding] = []
    for group in groups:
        found += _Victim(engine, group, skip, user, at_once, linger).observed()
    return found


class _Victim:
    """One victim process and what is seen of it."""

    def __init__(
        self, engine: str, group: list[Attack], skip: Sequence[str], user: int | None, at_once: int, linger: float
    ) -> None:
        self._group, self._control = group, engine == "control"
        self._late = _LATE + _STARTS.get(engine, 0.0)
        self._processes = _PROCESSES + (_OF_A_WALL * (at_once + 2) if engine in _STARTS else 0)
        self._env_secret, self._file_secret = "env-" + secrets.token_hex(14), secrets.token_hex(18)
        self._job = {"engine": engine, "skip": [*skip], "at_once": at_once, "linger": linger, "user": user}
        self._found = {attack.name: Finding(attack.name) for attack in group}
        self._host = Finding("(host)")
        self._stderr: IO[bytes] | None = None
        self._quiet: tuple[float, int] | None = None  # when all was over, and the processor time by then

    def observed(self) -> list[Finding]:
        """Run it, and return the findings."""
        with tempfile.TemporaryDirectory(prefix="toolcrib-", ignore_cleanup_errors=True) as name:
            folder = Path(name)
            folder.chmod(0o777)
            spots = {a.name: Spots(folder / a.name, self._file_secret) for a in self._group}
            try:
                self._watch(folder, spots)
                for attack in self._group:
                    self._look(attack, spots[attack.name], folder)
            finally:
                for spot in spots.values():
                    spot.close()
        return [*self._found.values(), *([self._host] if self._host.traces else [])]

    # --- while it runs

    def _watch(self, folder: Path, spots: dict[str, Spots]) -> None:
        (folder / "secret.txt").write_text(self._file_secret)
        reader, writer = os.pipe()
        programs = [
            (("neighbour:" if "neighbour" in a.traces else "") + a.name, a.armed(spots[a.name], number))
            for number, a in enumerate(self._group)
        ]
        (folder / "job.json").write_text(
            json.dumps(self._job | {"fd": writer, "marks": str(folder), "programs": programs})
        )
        with (folder / "stderr.txt").open("wb") as self._stderr:
            victim = self._started(folder, writer)
        os.close(writer)
        try:
            self._follow(victim, reader)
        finally:
            os.close(reader)
            self._end(victim)
            self._last_words((folder / "stderr.txt").read_text(errors="replace"), victim.returncode)

    def _started(self, folder: Path, writer: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tests.attacks.victim", str(folder / "job.json")]
        if self._control:  # what it leaves behind ends with its namespace
            command = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *_SHELLS, *command]
        return subprocess.Popen(
            command,
            env={
                **{"SECRET_CANARY": self._env_secret, "PATH": "/usr/bin:/bin", "TMPDIR": str(folder)},
                "PYTHONPATH": f"{_ROOT}:{_ROOT / 'src'}",
            },
            cwd=_ROOT,
            pass_fds=[writer],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._stderr,
            start_new_session=True,
        )

    def _follow(self, victim: subprocess.Popen[bytes], reader: int) -> None:
        """Read what it reports until it ends, hangs, or grows out of all bounds."""
        buffer, ready, over = b"", False, False
        base = _Seen()
        last = time.monotonic()
        patience = _STARTED
        while True:
            readable, _, _ = select.select([reader], [], [], 0.1)
            if readable:
                data = os.read(reader, 1 << 20)
                if not data:
                    break
                *lines, buffer = (buffer + data).split(b"\n")
                for line in lines:
                    report = json.loads(line)
                    last, patience = time.monotonic(), 3.0 + self._late
                    if "ready" in report:
                        ready, base = True, _seen(victim.pid)
                    elif "over" in report:
                        over = True
                        self._quiet = (time.monotonic(), _seen(victim.pid).ticks)
                    else:
                        self._take(report)
            if ready and self._outgrown(victim.pid, base):
                break
            if over and self._idle(victim.pid):
                break
            if time.monotonic() - last > patience:
                self._all({"hang"} if ready else {"nostart"})
                break
        if not over:
            self._unfinished({"dead"})

    def _outgrown(self, pid: int, base: _Seen) -> bool:
        seen = _seen(pid)
        if seen.host - base.host > _MEMORY or (self._control and seen.memory - base.memory > 2 * _MEMORY):
            self._unfinished({"mem"})
            return True
        if not self._control and seen.largest > _MEMORY:
            self._host.traces.add("mem")
        if len(seen.processes) - len(base.processes) > self._processes:
            (self._all if self._control else self._blame)({"procs"})
            return self._control
        return False

    def _idle(self, pid: int) -> bool:
        """Return whether it was watched long enough after its end; it should have nothing left to do."""
        began, ticks = self._quiet or (0.0, 0)
        passed = time.monotonic() - began
        if passed < 1.0:
            return False
        used = (_seen(pid).ticks - ticks) / os.sysconf("SC_CLK_TCK") / passed
        if used > 0.5:
            self._blame({"cpu"})
        return True

    def _blame(self, traces: set[str]) -> None:
        only = next(iter(self._found.values())) if len(self._found) == 1 else self._host
        only.traces |= traces

    def _all(self, traces: set[str]) -> None:
        self._unfinished(traces)

    def _unfinished(self, traces: set[str]) -> None:
        """Blame the programs that were not reported on yet; all but one of them wrongly, when several ran."""
        for finding in self._found.values():
            if not finding.secs and not finding.traces:
                finding.traces |= traces

    def _take(self, report: dict[str, Any]) -> None:
        finding = self._found[report["name"].removeprefix("neighbour:")]
        finding.secs, finding.said = max(report["secs"], 0.01), " | ".join(part for part in report["said"] if part)
        if "alive" not in report.get("neighbour", "alive"):
            finding.said = f"the neighbour said {report['neighbour']!r}"
        text = json.dumps(report["said"])
        signs = {
            "leak_env": self._env_secret in text,
            "leak_file": self._file_secret in text,
            "leak_key": report["hostkey"],
            "leak_stat": "STAT 36" in text,
            "kernel": "GOT " in text,
            "tamper": bool(report["tamper"]),
            "persist": report.get("persist", False),
            "baseexc": "baseexc" in report,
            "raised": "raised" in report and not self._control,
            "threads": report["threads"] > 60,
            "late": report["secs"] > 3.0 + self._late,
            "flood": report["size"] > _FLOOD,
            "neighbour": "alive" not in report.get("neighbour", "alive"),
        }
        finding.traces |= {sign for sign, there in signs.items() if there}

    def _last_words(self, text: str, status: int) -> None:
        """Keep what the victim said at its end beside those who are blamed for it."""
        for finding in self._found.values():
            if "dead" in finding.traces and not finding.said:
                finding.said = f"status {status}: {text[-300:].strip()}"

    def _end(self, victim: subprocess.Popen[bytes]) -> None:
        for pid in [victim.pid, *_seen(victim.pid).processes]:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        victim.wait()

    # --- when it is over

    def _look(self, attack: Attack, spots: Spots, folder: Path) -> None:
        finding = self._found[attack.name]
        spots.listen()
        finding.traces |= spots.heard
        if (spots.folder / "pwned").exists():
            finding.traces.add("write")
        for mark in ("unoffered", "guarded"):
            if (folder / mark).exists() and mark in attack.traces:
                finding.traces.add(mark)


@dataclass(frozen=True, slots=True)
class _Seen:
    """A process and all below it, at one moment."""

    processes: tuple[int, ...] = ()
    ticks: int = 0
    memory: int = 0
    host: int = 0  # the process itself
    largest: int = 0  # of those below it


def _seen(root: int) -> _Seen:
    children: dict[int, list[int]] = {}
    stats: dict[int, tuple[int, int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with suppress(OSError, IndexError, ValueError):
                fields = Path(f"/proc/{entry}/stat").read_text().rsplit(")", 1)[1].split()
                children.setdefault(int(fields[1]), []).append(int(entry))
                stats[int(entry)] = (int(fields[11]) + int(fields[12]), int(fields[21]) * os.sysconf("SC_PAGE_SIZE"))
    below = [pid for pid in _walk(root, children) if pid in stats]
    sizes = [stats[pid][1] for pid in below]
    return _Seen(
        tuple(below),
        sum(stats[pid][0] for pid in below),
        sum(sizes),
        sizes[0] if sizes else 0,
        max(sizes[1:], default=0),
    )


def _walk(root: int, children: dict[int, list[int]]) -> Iterator[int]:
    todo = [root]
    while todo:
        pid = todo.pop()
        yield pid
        todo += children.get(pid, [])
