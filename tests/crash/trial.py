"""One trial: a way of calling a tool, killed at a point, taken up again until it has ended, with a person who answers.

The person looks at the effects when a question names a doubt, and answers what is true; else they say yes. The model
and the client do what the texts say. What must not be is in the row's `problems`.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.crash.points import (
    DATABASE,
    FOLDER,
    HOLD,
    PAID,
    POINT,
    arm_store,
    doubts,
    effects,
    note_text,
    stored_texts,
    write,
)
from toolcrib.approvals import SqliteApprovalStore
from toolcrib.errors import ApprovalError, ToolcribError
from toolcrib.record import RunFilter, list_runs, sqlite_events

AT_ONCE = "two at once"
DONE = "it was done before"  # what a person says to a call whose equal they have found done
_STEPS = 10  # times that a way is taken up, after which it is stuck
_SECOND = 10.0  # seconds that the second of two processes has for its answer while the first one is held
_LONGEST = 60.0  # seconds in which a process ends

server = multiprocessing.get_context("forkserver")


@dataclass(frozen=True, slots=True)
class Point:
    """When a process is killed.

    Attributes:
        name: The point, as `kill_at` has it, or `store N`.
        is_answered: Whether it is of the process that takes up the answer, or of the one whose call is asked about.
    """

    name: str
    is_answered: bool

    @classmethod
    def of(cls, text: str) -> Point | None:
        """Return the point that a row names; None for two processes at once."""
        when, _, name = text.partition(": ")
        return None if text == AT_ONCE else cls(name, when == "answered")

    def __str__(self) -> str:
        return f"{'answered' if self.is_answered else 'asked'}: {self.name}"


@dataclass(frozen=True, slots=True)
class Way:
    """A way of calling the tool.

    Attributes:
        job: The name of a function of the module, which may be async: it goes on as far as it can in a process of its
            own, and returns what was said at last, or None while a call waits for a person.
        asked: The names of its points in the process whose call is asked about.
        answered: Those in the process that takes up the answer. Points in the store are found by trying.
        has_call_ids: Whether a call that is made anew has the id that it had; else nothing shows that it is the same.
    """

    name: str
    module: str
    job: str
    asked: tuple[str, ...]
    answered: tuple[str, ...]
    has_call_ids: bool = True


@dataclass
class Row:
    """What a trial came to.

    Attributes:
        was_killed: Whether the point was reached.
        asked: How the person answered, in order: `yes` to a call, `yes?`, `done?` and `no?` where the question named a
            doubt.
        texts: What the model or the client was told.
        unused: The answers that no call used.
        running: The calls that the record shows as running at the end, though no process runs them.
    """

    way: str
    point: str
    was_killed: bool = False
    effects: int = 0
    asked: list[str] = field(default_factory=list[str])
    texts: list[str] = field(default_factory=list[str])
    problems: list[str] = field(default_factory=list[str])
    running: int = 0
    unused: int = 0

    @property
    def is_good(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems and not self.running

    def __str__(self) -> str:
        killed = "" if self.was_killed or self.point == AT_ONCE else " (not reached)"
        unused = f"; {self.unused} answers unused" if self.unused else ""
        told = f"asked {', '.join(self.asked) or 'nothing'}{unused}"
        title = f"{'ok  ' if self.is_good else 'FAIL'} {self.way:18} {self.point + killed:55}"
        head = f"{title} effects {self.effects}  {told}"
        running = [f"{self.running} calls are shown as running"] if self.running else []
        return "\n".join([head, *(f"       {problem}" for problem in (*self.problems, *running))])


class Trial:
    """The trial of one way and one point, in a folder of its own."""

    def __init__(self, way: Way, point: str, folder: Path) -> None:
        self.way, self.folder = way, folder
        self.row = Row(way.name, point)
        self._store = SqliteApprovalStore(folder / DATABASE)
        self._has_answered = False

    async def run(self, point: Point | None) -> Row:
        """Run the way with one death at the point, or with two processes at once where there is none."""
        for _ in range(_STEPS):
            armed = point is not None and not self.row.was_killed and point.is_answered == self._has_answered
            if point is None and self._has_answered and not (self.folder / "released").exists():
                await self._two_at_once()
            else:
                process = self._start(point.name if armed and point is not None else "")
                await self._end(process)
                self.row.was_killed = bool(self._killed_at())
            await self.answer()
            if (self.folder / "final").exists():
                break
        else:
            self.row.problems.append(f"stuck: it has not ended after it was taken up {_STEPS} times")
        await self.judge()
        return self.row

    async def _two_at_once(self) -> None:
        """Take the work up in a process whose tool is held before its effect, and in another one meanwhile, twice."""
        self.row.was_killed = True
        first = self._start(HOLD)
        while not (self.folder / "held").exists() and first.is_alive():  # noqa: ASYNC110 -- it is a file of another process
            await asyncio.sleep(0.02)
        others: list[BaseProcess] = []
        for _ in range(2):
            others.append(self._start(""))
            with contextlib.suppress(TimeoutError):
                await self._end(others[-1], _SECOND)
            await self.answer()
        (self.folder / "released").touch()
        for process in (first, *others):
            await self._end(process)
        for _ in range(2):  # the other one comes back
            await self.answer()
            await self._end(self._start(""))

    def _killed_at(self) -> str:
        file = self.folder / "killed"
        return file.read_text() if file.exists() else ""

    # --- processes

    def _start(self, point: str) -> BaseProcess:
        process = server.Process(target=_work, args=(self.way, str(self.folder), point), daemon=False)
        process.start()
        return process

    async def _end(self, process: BaseProcess, seconds: float = _LONGEST) -> int | None:
        await asyncio.to_thread(process.join, seconds)
        if process.exitcode is None and seconds < _LONGEST:
            raise TimeoutError
        if process.exitcode is None:
            process.kill()
            self.row.problems.append(f"stuck: a process has not ended in {seconds:.0f} s")
        return process.exitcode

    # --- the person

    async def answer(self) -> None:
        """Answer what is asked, as a person does who can see the effects."""
        for entry in await self._store.list(pending=True):
            request = entry.request
            done, doubted = effects(self.folder), request.in_doubt or doubts(request.text())
            if not done and "is executed now" in request.text():
                continue  # they wait for its end
            self._has_answered = True
            with contextlib.suppress(ApprovalError):
                if not (done and doubted):
                    self.row.asked.append("yes?" if doubted else "yes")
                    await self._store.answer(request.grant("ann"))
                elif request.in_doubt:
                    self.row.asked.append("done?")
                    await self._store.answer(request.done(PAID, "ann"))
                else:
                    self.row.asked.append("no?")
                    await self._store.answer(request.deny(message=DONE, by="ann"))
            if done and not doubted:
                self.row.problems.append(f"asked without a word of doubt after the effect: {request.text()!r}")

    # --- what came of it

    async def judge(self) -> None:
        """Add what must not be to the row's problems."""
        row = self.row
        if row.point.endswith(tuple("0123456789")):
            row.point = f"{row.point.partition(':')[0]}: {self._killed_at()}"
        row.effects = effects(self.folder)
        row.unused = len(await self._store.answered())
        if row.effects != 1:
            row.problems.insert(0, f"paid {row.effects} times")
        kinds = {"the call": [said for said in row.asked if said == "yes" and self.way.has_call_ids]}
        kinds["the doubt"] = [said for said in row.asked if said.endswith("?")]
        for about, said in kinds.items():
            if len(said) > 1:
                row.problems.append(f"asked {len(said)} times about {about}: {', '.join(said)}")
        for text, done in dict.fromkeys(stored_texts(self.folder)):
            row.texts.append(text)
            if done and DONE not in text and ("Rejected" in text or "used before" in text):
                row.problems.append(f"said of a call that ran: {text!r}")
        with contextlib.suppress(ToolcribError):  # of a database without a record
            found = list_runs(sqlite_events(self.folder / DATABASE), RunFilter())
            row.running = sum(run.calls.get("running", 0) for run in found)
        if row.problems and row.texts:
            row.problems.append(f"heard: {row.texts}")


def _work(way: Way, folder: str, point: str) -> None:
    """Take the way up in this process, and leave what it came to in files."""
    os.environ[FOLDER], os.environ[POINT] = folder, point
    log = os.open(Path(folder) / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    module = __import__(way.module, fromlist=[way.job])
    job: Callable[[], Awaitable[str | None] | str | None] = getattr(module, way.job)
    arm_store()
    try:
        said = job()
        final = asyncio.run(_awaited(said)) if isinstance(said, Awaitable) else said
    except Exception as error:
        traceback.print_exc()
        note_text(f"{type(error).__name__}: {error}")
        return
    if final is not None:
        write(Path(folder) / "final", final)


async def _awaited(job: Awaitable[str | None]) -> str | None:
    return await job
