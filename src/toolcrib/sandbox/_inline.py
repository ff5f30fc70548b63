"""The inline engine, for debugging: programs in this process, with all its rights."""

from __future__ import annotations

import ast
import asyncio
import builtins
import sys
import threading
import traceback
from collections.abc import Coroutine
from concurrent.futures import Future
from functools import partial
from types import FrameType
from typing import Any, Final

from toolcrib.calls import calling_line
from toolcrib.errors import CodeError
from toolcrib.sandbox._endings import ProgramEnded, too_many_calls, took_too_long
from toolcrib.sandbox._host_frames import builtin_exception
from toolcrib.sandbox._output import OutputMeter
from toolcrib.sandbox._protocol import (
    Dialect,
    Host,
    Program,
    ProgramError,
    Raised,
    Reply,
    SandboxResult,
    SuspendedReply,
)
from toolcrib.sandbox._source import Source, parse_program
from toolcrib.sandbox._stopwatch import WallClock
from toolcrib.sandbox._threads import ProgramThreads
from toolcrib.sandbox._worker.export import ValueRefused, exported_arguments, exported_result

_ISOLATION: Final = ("unsafe-inline", "no-isolation: all that this process can do", "limit:wall_time", "limit:calls")
_DIALECT: Final = Dialect(notes=("Tools are plain functions: call them without `await`, one after another.",))


class UnsafeInlineSandbox:
    """Runs programs with `exec` in a thread of this process. It keeps NOTHING from them: for debugging only.

    A program can read and change every object, file and secret that this process can, and end the process. A program
    that takes longer than `wall_time` has a result then, but goes on computing; memory and computing are not limited at
    all. It is chosen by name only, and each result says so.
    """

    def __init__(self) -> None:
        self._threads = ProgramThreads()

    @property
    def dialect(self) -> Dialect:
        """The Python of this process."""
        return _DIALECT

    async def run(self, program: Program, host: Host) -> SandboxResult:
        """Run a program to its end, or for `wall_time`, after which its thread goes on alone."""
        try:
            source = parse_program(program.code, program.limits.source_size)
        except CodeError as error:
            refused = ProgramError("syntax", error.kind, error.problem, error.line)
            return SandboxResult(error=refused, isolation=_ISOLATION)
        run = _Run(program, host)
        thread = self._threads.take()
        deadline = WallClock(program)
        try:
            async with deadline:
                value, error = await thread.run(partial(run.execute, source))
        except TimeoutError:
            if not deadline.is_over:
                raise
            value, error = None, took_too_long(program.limits)
        finally:
            await run.stop()
            self._threads.give_back(thread) if run.is_done.is_set() else thread.stop()
        if run.failed is not None:
            raise run.failed
        return SandboxResult(value, run.output.out.text(), "", error, _ISOLATION, run.calls)

    def close(self) -> None:
        """End the threads that wait for a program."""
        self._threads.close()


class _Run:
    """One program in its thread."""

    def __init__(self, program: Program, host: Host) -> None:
        self._program, self._host = program, host
        self._loop = asyncio.get_running_loop()
        self.output = OutputMeter(program.limits)
        self.is_over, self.is_done = threading.Event(), threading.Event()
        self.failed: BaseException | None = None
        self.calls = 0
        self._asked: asyncio.Task[Reply] | None = None

    async def stop(self) -> None:
        """Cancel the call that runs, wait for its end, and let no other begin."""
        self.is_over.set()
        if self._asked is not None and not self._asked.done():
            self._asked.cancel()
            await asyncio.wait({self._asked})

    def execute(self, source: Source) -> tuple[Any, ProgramError | None]:
        """Return the value of the last expression, or what went wrong."""
        try:
            return exported_result(self._evaluated(source.tree), self._program.limits.value_size), None
        except _Stop as stop:
            return None, stop.error
        except ValueRefused as error:
            return None, ProgramError("exception", "ValueError", f"the program's last value cannot leave it: {error}")
        except BaseException as error:  # the program's own, SystemExit included
            frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == self._program.name]
            shown = [f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}' for frame in frames]
            kind = type(error).__name__
            text = "\n".join(["Traceback (most recent call last):", *shown, f"{kind}: {error}"])
            line = (frames[-1].lineno or 0) if frames else 0
            return None, ProgramError("exception", kind, str(error), line, text)
        finally:
            self.is_done.set()

    def _evaluated(self, tree: ast.Module) -> Any:
        names: dict[str, Any] = {"__name__": "__main__", "print": self._print}
        names.update({name: partial(self._call, name) for name in self._program.tools})
        last = tree.body[-1] if tree.body else None
        expression = last.value if isinstance(last, ast.Expr) else None
        body = tree.body[:-1] if expression is not None else tree.body
        exec(compile(ast.Module(body, tree.type_ignores), self._program.name, "exec"), names)
        if expression is None:
            return None
        return eval(compile(ast.Expression(expression), self._program.name, "eval"), names)

    def _call(self, name: str, /, *args: Any, **kwargs: Any) -> Any:
        limits = self._program.limits
        if self.is_over.is_set():
            raise _Stop(None)
        if self.calls == limits.calls:
            raise _Stop(too_many_calls(name, limits))
        self.calls += 1
        positional, named = exported_arguments(name, args, kwargs, limits.value_size)
        calling_line.set(self._line())
        reply = self._answer(self._host.call(name, positional, named))
        if isinstance(reply, SuspendedReply):
            raise _Stop(ProgramError("paused", "Paused", reply.reason))
        if isinstance(reply, Raised):
            raise getattr(builtins, builtin_exception(reply.type))(reply.message)
        return reply.value

    def _line(self) -> int:
        """Return the program's line that makes a call."""
        frame: FrameType | None = sys._getframe(2)  # pyright: ignore[reportPrivateUsage] -- costs a tenth of inspect
        while frame is not None and frame.f_code.co_filename != self._program.name:
            frame = frame.f_back
        return 0 if frame is None else frame.f_lineno

    def _answer(self, call: Coroutine[Any, Any, Reply]) -> Reply:
        try:
            reply: Future[Reply] = Future()
            self._loop.call_soon_threadsafe(self._ask, call, reply)
            return reply.result()
        except BaseException as error:  # the host's own, or the run is over: the program sees none of it
            self.failed = None if self.is_over.is_set() else error
            raise _Stop(None) from None

    def _ask(self, call: Coroutine[Any, Any, Reply], reply: Future[Reply]) -> None:
        """Begin a call on the event loop, unless the run is over."""
        if self.is_over.is_set():
            call.close()
            reply.cancel()
            return
        self._asked = self._loop.create_task(call)
        self._asked.add_done_callback(partial(_pass_on, reply))

    def _print(self, *values: Any, sep: str | None = None, end: str | None = None, **more: Any) -> None:
        if more.get("file") is not None:
            print(*values, sep=sep, end=end, **more)
            return
        text = (" " if sep is None else sep).join(map(str, values)) + ("\n" if end is None else end)
        try:
            self.output.add(text, "stdout")
        except ProgramEnded as ended:
            raise _Stop(ended.error) from None
        self._loop.call_soon_threadsafe(self._host.output, text, "stdout")


def _pass_on(reply: Future[Reply], call: asyncio.Task[Reply]) -> None:
    """Hand the reply of a call, or its error, to the thread that waits for it."""
    if call.cancelled():
        reply.cancel()
    elif (error := call.exception()) is not None:
        reply.set_exception(error)
    else:
        reply.set_result(call.result())


class _Stop(BaseException):
    """Ends a program; the program's `except Exception` does not catch it."""

    def __init__(self, error: ProgramError | None) -> None:
        super().__init__(error)
        self.error = error
