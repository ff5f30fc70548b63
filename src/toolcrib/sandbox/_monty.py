"""The engine Monty: programs in a small Python of its own, each in a worker process of a pool that is kept warm.

Monty's sync client goes from snapshot to snapshot: each step of a program runs in a thread, and each call on the event
loop of the caller. One pool may be used from several loops and threads, and ends with the process.
"""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal
from weakref import WeakSet

from pydantic_monty import FunctionSnapshot, Monty, MontyError, MontyTypingError

from toolcrib._numbers import require_number, require_seconds
from toolcrib.calls import charge_time
from toolcrib.errors import CodeError, SandboxError, SandboxUnavailable, explain_options
from toolcrib.sandbox._endings import CLOSED, LIMITS, ProgramEnded, computed_too_long, took_too_long
from toolcrib.sandbox._layers import LAYERS, LayerCheck
from toolcrib.sandbox._monty_calls import MontyCalls, MontyReplies, MontyRequest
from toolcrib.sandbox._monty_program import MontyProgram, Steps
from toolcrib.sandbox._monty_state import ENGINE, MontyState
from toolcrib.sandbox._monty_subset import MODULES, NOTES, MontySource, monty_source
from toolcrib.sandbox._protocol import Dialect, Host, OutputStream, Program, ProgramError, SandboxResult, TypeProblem
from toolcrib.sandbox._stopwatch import WallClock
from toolcrib.sandbox._threads import ProgramThread, ProgramThreads
from toolcrib.sandbox._worker.launch import FOLDER
from toolcrib.sandbox._worker.messages import CHECK
from toolcrib.sandbox._zygote import Ready

_SESSIONS_PER_WORKER = 1_000  # then the worker is replaced, so that nothing can pile up in it
_CLOSE_SECONDS = 2.0  # that running programs are given to notice that they were ended
_WORKER = ("subprocess",)  # the arguments of a worker
_INTERPRETER = ("worker-process", "interpreter:no-files", "interpreter:no-network", "interpreter:no-environment")
_log = logging.getLogger("toolcrib.code")
_NEVER = "__never__: int = ''\n"
"""The first line of each checked program: a type error, without which Monty would run a program that has none."""
_IGNORED_RULES = frozenset(
    {
        *("unresolved-import", "unresolved-reference", "invalid-syntax"),  # of another Python than Monty's
        *("invalid-await", "possibly-unresolved-reference", "possibly-missing-attribute"),
    }
)
_MAYBE_NONE = re.compile(r"on (?:type )?`None` in union|element `None` of union|`None`.*in union")
"""Messages about values that may be None, such as `re.match(...).group()`: the program may know that they are not."""
_CHECK_LIMITS: Any = {"max_feed_duration_secs": 10.0, "max_suspensions": 10, "max_memory": 16_000_000}
"""By which a check without an end is ended, and no other: a program that was not checked runs as one without errors."""


@explain_options()
class MontySandbox:
    """Runs programs in Monty, without file, network, environment, or any object of the host's.

    A program that uses what this Python lacks is refused before it runs, with the way to write it instead. No state is
    kept from one program to the next. On Linux the kernel keeps in what gets out of the interpreter, with the layers of
    a `ProcessSandbox`; `SandboxResult.isolation` names those in force.

    Args:
        workers: The most programs at a time; each has a process of about 18 MB, kept for the next.
        checkout_timeout: Seconds a program waits for a worker when all are busy.
        require: The layers without which nothing runs; `a|b` is either, `"all"` is every layer. What else is lacking on
            Linux is a warning in the log.
        skip: Layers to leave off, to try the others alone.
    """

    def __init__(
        self,
        *,
        workers: int = 32,
        checkout_timeout: float = 60.0,
        require: Iterable[str] | Literal["all"] = (),
        skip: Iterable[str] = (),
    ) -> None:
        require_number("MontySandbox", "workers", workers, least=1)
        require_seconds("MontySandbox", "checkout_timeout", checkout_timeout)
        self._workers, self._checkout_timeout = workers, checkout_timeout
        self._skip = frozenset(skip)
        required = frozenset(LAYERS if require == "all" else require)
        self._layers = LayerCheck(required, self._skip, sandbox="MontySandbox", warn=sys.platform == "linux")
        self._lock = threading.Lock()
        self._pool: Monty | None = None
        self._seal: SealedProgram | None = None
        self._threads = ProgramThreads()
        self._running: set[_Run] = set()
        self._closed = False
        _sandboxes.add(self)

    async def run(self, program: Program, host: Host) -> SandboxResult:
        """Run a program to its end.

        Raises:
            SandboxError: There is no worker for it: all are busy, or the sandbox is closed.
        """
        try:
            source = monty_source(program)
        except CodeError as error:
            refused = ProgramError("syntax", error.kind, error.problem, error.line)
            return SandboxResult(error=refused, isolation=self._isolation())
        return await self._run(program, _Run(program, source, host))

    async def resume(self, program: Program, state: Mapping[str, Any], host: Host) -> SandboxResult:
        """Resume a paused program from Monty's snapshot of it.

        Monty does not check a snapshot: take it from your own storage, or from a signed `PausedProgram`.

        Raises:
            SandboxError: The state is of another version of Monty, or is not one; or there is no worker for it.
        """
        saved = MontyState.from_dict(state)
        return await self._run(program, _Run(program, saved.source, host, saved))

    @property
    def engine(self) -> str:
        """Monty and its version: another one cannot read a snapshot."""
        return ENGINE

    @property
    def replays(self) -> bool:
        """Programs go on where they paused."""
        return False

    @property
    def layers(self) -> tuple[str, ...]:
        """The layers of the kernel around the workers; starts the sandbox to find out.

        Raises:
            SandboxUnavailable: A layer that is required cannot be had.
        """
        self._ready()
        return self._layers.layers

    def _isolation(self) -> tuple[str, ...]:
        return (ENGINE, *_INTERPRETER, *self._layers.layers, *LIMITS)

    async def _run(self, program: Program, run: _Run) -> SandboxResult:
        with self._lock:
            self._running.add(run)
        thread = None if program.may_block else self._threads.take()
        try:
            return replace(await run.run(run.program.steps(self._ready), thread), isolation=self._isolation())
        finally:
            with self._lock:
                self._running.discard(run)
            if thread is not None:
                self._threads.give_back(thread)

    @property
    def dialect(self) -> Dialect:
        """The modules that programs find in Monty."""
        return Dialect(MODULES, notes=NOTES)

    async def type_check(self, code: str, stubs: str) -> list[TypeProblem]:
        """Return the problems that Monty's type checker finds, by line; nothing of the program runs.

        Raises:
            SandboxError: There is no worker for it.
        """
        thread = self._threads.take()
        try:
            return await thread.run(lambda: type_problems(self._ready(), code, stubs))
        except TimeoutError:
            raise SandboxError("every worker was busy, for as long as a type check was to wait for one") from None
        finally:
            self._threads.give_back(thread)

    def close(self) -> None:
        """End all programs and their workers; the sandbox cannot be used again."""
        with self._lock:
            self._closed = True
            pool, self._pool = self._pool, None
            running = list(self._running)
        for run in running:
            run.abort()
        until = time.monotonic() + _CLOSE_SECONDS
        while any(run.program.computing for run in running) and time.monotonic() < until:
            time.sleep(0.001)
        if pool is not None:
            pool.__exit__(None, None, None)
        self._seal = None
        self._threads.close()

    def __enter__(self) -> MontySandbox:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _ready(self) -> Monty:
        """Return the pool, which is started for the first program; called where programs compute."""
        global _used_by
        with self._lock:
            if self._closed:
                raise SandboxError("this sandbox was closed. Make another MontySandbox()")
            if self._pool is not None:
                return self._pool
            if _used_by not in (None, os.getpid()):
                raise SandboxError(
                    "this process was forked from one that had run programs in Monty, whose threads do not live on in "
                    "it. Start it with the `spawn` or `forkserver` method, or fork before the first program"
                )
            _used_by = os.getpid()
            seal = SealedProgram(monty_binary(), _WORKER, self._skip)
            self._layers.take(seal.report)
            self._seal = seal
            pool = Monty(
                binary_path=seal.command,
                max_processes=self._workers,
                checkout_timeout=self._checkout_timeout,
                max_checkouts_per_worker=_SESSIONS_PER_WORKER,
            )
            self._pool = pool.__enter__()
            return self._pool

    def _after_fork(self) -> None:
        """Forget the parent's workers, in a forked child."""
        if self._pool is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._pool))  # its end here would end the parent's workers
        self._lock, self._pool, self._seal = threading.Lock(), None, None
        self._threads, self._running = ProgramThreads(), set()


class _Run:
    """One program between its steps and its host; used on the event loop of the caller."""

    def __init__(self, program: Program, source: MontySource, host: Host, saved: MontyState | None = None) -> None:
        self._limits, self._may_block, self._host = program.limits, program.may_block, host
        self._is_journalled = program.save_state is not None
        self._loop = asyncio.get_running_loop()
        self._deadline = WallClock(program)
        self._computed = self._charged = 0.0  # seconds, of the program and of the host for it
        self._calls = MontyCalls(host, program)
        self.program = MontyProgram(program, source, self._pass_on, saved)

    async def run(self, steps: Steps[SandboxResult], thread: ProgramThread | None) -> SandboxResult:
        """Run the program's steps and the host's calls in turn, until the program has ended."""
        done = False
        charged = charge_time.set(self._charge)
        try:
            async with self._deadline:
                asked = await self._next(steps, None, thread)
                while not isinstance(asked, SandboxResult):
                    asked = await self._next(steps, await self._calls.answer(asked), thread)
                if self._is_journalled and asked.error is not None and asked.error.kind in ("sandbox", "stopped"):
                    await self._calls.finish()
                done = True
                return asked
        except ProgramEnded as ended:
            return self.program.result(error=ended.error)
        except TimeoutError:
            if not self._deadline.is_over:
                raise
            self.program.end(took_too_long(self._limits))
            return self.program.result(error=None if self.program.ended is None else self.program.ended.error)
        finally:
            charge_time.reset(charged)
            if not done:
                self.program.end(None)
                _close(steps) if thread is None else thread.post(partial(_close, steps))
            await self._calls.close()

    async def _next(
        self, steps: Steps[SandboxResult], replies: MontyReplies | None, thread: ProgramThread | None
    ) -> list[MontyRequest] | SandboxResult:
        if self._computed + self._charged > self._limits.program_time:
            self.program.end(computed_too_long(self._limits))
        if thread is None:
            return self._step(steps, replies)
        return await thread.run(partial(self._step, steps, replies))

    def _step(self, steps: Steps[SandboxResult], replies: MontyReplies | None) -> list[MontyRequest] | SandboxResult:
        """Run the program until its next requests or its result, and return them."""
        began = time.monotonic()
        try:
            return next(steps) if replies is None else steps.send(replies)
        except StopIteration as stop:
            return stop.value
        except (SandboxError, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as broken:  # Monty's own code, panics too: this is not an error of the program
            raise SandboxError(f"Monty failed: {type(broken).__name__}: {broken}") from broken
        finally:
            self._computed += time.monotonic() - began

    def _charge(self, seconds: float) -> None:
        self._charged += seconds

    def _pass_on(self, text: str, stream: OutputStream) -> None:
        if self._may_block:
            self._host.output(text, stream)
        else:
            with suppress(RuntimeError):  # the loop was closed while the program ran
                self._loop.call_soon_threadsafe(self._host.output, text, stream)

    def abort(self) -> None:
        """End the program because the sandbox is closed; called from any thread."""
        self.program.end(CLOSED)
        if not self._is_journalled:  # else its calls come to their end, for the journal
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._deadline.end)


_sandboxes: WeakSet[MontySandbox] = WeakSet()
_used_by: int | None = None  # the process in which Monty started its threads


def _close(steps: Steps[SandboxResult]) -> None:
    try:
        steps.close()
    except Exception as broken:  # Monty's own code, in a session that is thrown away
        _log.debug("a Monty session did not close: %s", broken)


def _forked() -> None:
    for sandbox in list(_sandboxes):
        sandbox._after_fork()  # pyright: ignore[reportPrivateUsage] -- of the class above


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


@atexit.register
def _close_all() -> None:
    for sandbox in list(_sandboxes):
        sandbox.close()


def monty_binary() -> str:
    """Return the program of Monty's workers: that which `MONTY_BIN` names, or `monty` where scripts are installed.

    Raises:
        SandboxUnavailable: The program is not installed.
    """
    user = sysconfig.get_path("scripts", f"{os.name}_user")
    folders = (sysconfig.get_path("scripts"), user, os.environ.get("PATH", ""))
    found = os.environ.get("MONTY_BIN") or shutil.which("monty", path=os.pathsep.join(folders))
    if found is None:
        raise SandboxUnavailable("the program `monty` is not there. Install it: pip install 'toolcrib[monty]'")
    return found


def type_problems(pool: Monty, code: str, stubs: str) -> list[TypeProblem]:
    """Return the problems that the type checker finds, by line; nothing of the program runs.

    Args:
        pool: The pool whose worker checks the program.
        code: The program; it has to parse.
        stubs: The functions that it may call, and their types.
    """
    checkout = pool.checkout(
        script_name="program.py",
        limits=_CHECK_LIMITS,
        type_check=True,
        type_check_stubs=stubs,
        type_check_format="json",
    )
    with checkout as session:
        try:
            snapshot = session.feed_start(_NEVER + code)
            if isinstance(snapshot, FunctionSnapshot) and snapshot.function_name == "import_stubs":
                snapshot.resume_not_handled()  # modules that Monty does not know
        except MontyTypingError as error:
            found: list[TypeProblem] = []
            for item in json.loads(error.display()):
                line, rule, message = item["location"]["row"] - 1, item["name"], item["message"]
                if (
                    line >= 1
                    and item["severity"] == "error"
                    and rule not in _IGNORED_RULES
                    and not _MAYBE_NONE.search(message)
                ):
                    found.append(TypeProblem(line, rule, message))
            return found
        except MontyError:
            return []  # it cannot be checked; its errors are reported when it runs
    return []


# --- the sealed process of Monty

_SCRIPT: Final = """\
#!{python} {flags}
import runpy, sys
sys.argv[1:1] = [{options!r}]
runpy.run_path({folder!r}, run_name="__main__")
"""
_LONGEST: Final = 120  # characters of a script's first line that every kernel reads
_SECONDS: Final = 30.0
_LIBRARY: Final = re.compile(r"(?:=> |^\s+)(/\S+)", re.MULTILINE)


class SealedProgram:
    """A program that runs under the seal, tried once.

    Args:
        program: Its path.
        trial: Arguments with which it soon ends well, given nothing to read.
        skip: Layers to leave off.

    Attributes:
        report: The states of all layers; a program that does not start under them has none.
        command: The path to start it by, for as long as this object is there; without a seal its own.
    """

    def __init__(self, program: str, trial: Sequence[str], skip: frozenset[str]) -> None:
        self._folder, self._made_by = "", os.getpid()
        try:
            if sys.platform != "linux":
                raise OSError("it needs Linux")
            self._folder = tempfile.mkdtemp(prefix="toolcrib-")
            options = {"program": program, "libraries": _libraries([program, *trial]), "skip": sorted(skip)}
            command = [self._script("trial", {**options, "layers": {}}), CHECK, *trial]
            ran = _run(command, {})
            if ran.returncode != 0:
                words = ran.stderr.decode(errors="replace").strip().rpartition("\n")[2]
                raise OSError(f"the program does not start under it ({words or f'status {ran.returncode}'})")
            report = json.loads(ran.stdout)
            self.report = Ready(report["ready"], report["broken"])
            self.command = self._script("program", {**options, "layers": self.report.layers})
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            self.report = Ready(dict.fromkeys(LAYERS, f"unavailable: {error}"), {})
            self.command = program

    def __del__(self) -> None:
        if self._folder and os.getpid() == self._made_by:  # a forked child leaves it to its parent
            shutil.rmtree(self._folder, ignore_errors=True)

    def _script(self, name: str, options: Mapping[str, Any]) -> str:
        """Write a script, and return its path."""
        flags = "-ISB" if sys.dont_write_bytecode else "-IS"
        if not sys.executable or " " in sys.executable or len(sys.executable) + len(flags) > _LONGEST:
            raise OSError(f"a script cannot name this Python by its path, {sys.executable!r}")
        text = json.dumps({"serve": "program", **options})
        script = Path(self._folder, name)
        script.write_text(_SCRIPT.format(python=sys.executable, flags=flags, options=text, folder=FOLDER))
        script.chmod(0o700)
        return str(script)


def _libraries(command: Sequence[str]) -> list[str]:
    """Return the paths of the libraries that a program loads, and that of its loader, which names them itself."""
    return _LIBRARY.findall(_run(command, {"LD_TRACE_LOADED_OBJECTS": "1"}).stdout.decode())


def _run(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False
    )
