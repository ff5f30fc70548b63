"""The interpreter of programs: compiles one, runs it with the tools, and returns the value of its last expression."""

from __future__ import annotations

import ast
import asyncio
import builtins
import inspect
import linecache
import sys
import types
from typing import Any, NoReturn

from . import _seeded_random
from ._clock import CLOCK
from ._errors import Sources, failure, syntax_failure, unreadable
from ._exchange import Exchange
from ._figures import save_open
from ._files import FILES
from ._frames import Frame
from ._optional_await import AWAITABLE, DEFERRED, awaitable, marked, run_in_loop
from ._snapshot import data_values, read_values
from ._stubs import Stubs, ValueStream
from .export import ValueRefused, exported_result
from .imports import guarded_import
from .tables import PackedTable

_FUTURES = 0x1FF0000  # what `from __future__ import ...` sets in the flags of code
_FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


class Interpreter:
    """Runs programs, one after another, each with the names that the last one left."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._stubs = Stubs(exchange)
        self._sources = Sources()
        self._names: dict[str, Any] = {
            "__name__": "__main__",
            "__builtins__": {
                **vars(builtins),
                "__import__": guarded_import,
                "open": open,
                "input": _no_keyboard,
                "breakpoint": _no_keyboard,
                "help": _help,
                "exit": sys.exit,
                "quit": sys.exit,
                DEFERRED: self._stubs.deferred,
                AWAITABLE: awaitable,
            },
        }
        module = types.ModuleType("__main__")
        module.__dict__.update(self._names)
        self._names = module.__dict__
        sys.modules["__main__"] = module

    def run(self, frame: Frame) -> Frame:
        """Run the program of a `run` frame, and return the `done` frame."""
        code, name = frame["code"], frame["name"]
        file = self._sources.add(name, code)
        linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
        self._exchange.start(frame["value_size"])
        CLOCK.start(frame["clock"])
        _seeded_random.start(frame["seed"])
        FILES.start(dict(zip(frame["files"], frame.get("blobs") or (), strict=False)), *frame["artifacts"])
        self._names.update(read_values(frame.get("names") or {}))
        tools = self._stubs.names(frame["tools"])
        self._names.update(tools)
        sys.stdout, sys.stderr, sys.stdin = self._exchange.printed.out, self._exchange.printed.err, None
        if frame["files"] and frame.get("blobs") is None:
            return {"t": "done", "error": self._failure(MemoryError(), file, frame)}
        try:
            body, last = _compiled(code, file)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            return {"t": "done", "error": syntax_failure(error, self._sources, file, name)}
        try:
            value = self._value(body, last)
            value = list(value) if isinstance(value, ValueStream) else value
            save_open()
            FILES.flush()
            done = self._done(value, frame)
        except BaseException as error:
            done = {"t": "done", "error": self._failure(error, file, frame)}
        for sentence in self._stubs.take_unawaited():
            self._exchange.printed.err.write(f"{sentence}\n")
        if frame.get("names") is not None:
            done["names"], done["left_out"] = self._session_data(tools, frame["value_size"] - self._exchange.size(done))
        self._add_artifacts(done)
        return done

    def _add_artifacts(self, done: Frame) -> None:
        try:
            written = FILES.take()
        except BaseException:  # from what the program did to its files
            return
        if FILES.cut and "error" not in done:
            self._exchange.printed.err.write(f"{FILES.cut}\n")
        if written:
            done["artifacts"] = list(written)
            done["blobs"] = [*done.get("blobs", ()), *written.values()]

    def _session_data(self, tools: dict[str, Any], most: int) -> tuple[dict[str, Any], dict[str, str]]:
        try:
            return data_values(self._names, tools, most)
        except BaseException:  # from a value of the program
            return {}, {}

    def _value(self, body: types.CodeType, last: types.CodeType | None) -> Any:
        if (body.co_flags | (last.co_flags if last else 0)) & inspect.CO_COROUTINE:
            return run_in_loop(self._awaited(body, last))
        exec(body, self._names)
        value = eval(last, self._names) if last else None
        return run_in_loop(value) if asyncio.iscoroutine(value) else value

    async def _awaited(self, body: types.CodeType, last: types.CodeType | None) -> Any:
        done = eval(body, self._names)
        if body.co_flags & inspect.CO_COROUTINE:
            await done
        value = eval(last, self._names) if last else None
        return await value if asyncio.iscoroutine(value) else value

    def _failure(self, error: BaseException, file: str, frame: Frame) -> dict[str, Any]:
        signatures = {tool: about["signature"] for tool, about in frame["tools"].items()}
        try:
            return failure(error, self._sources, file, frame["name"], signatures)
        except BaseException:  # from the error's own class, or from what the program did to Python
            return unreadable()

    def _done(self, value: Any, run: Frame) -> Frame:
        most, tables = run["value_size"], list[PackedTable]()
        try:
            done = {"t": "done", "v": exported_result(value, most, tables)}
            if tables:
                done["tables"] = [{**table.facts, "blob": number} for number, table in enumerate(tables)]
                done["blobs"] = [table.data for table in tables]
            problem = self._too_large(done, sum(table.size for table in tables), run)
            if not problem:
                return done
        except ValueRefused as refused:
            problem = str(refused)
        message = f"the program's last value cannot leave it: {problem}"
        error = {"kind": "exception", "type": "ValueError", "message": message, "line": 0, "traceback": ""}
        return {"t": "done", "error": error}

    def _too_large(self, done: Frame, size: int, run: Frame) -> str:
        if self._exchange.too_large(done):
            return f"it is larger than {run['value_size']} bytes as JSON (SandboxLimits.value_size)"
        artifacts, most = FILES.size, run["artifacts"][1]
        if not size or size + artifacts <= most:
            return ""
        beside = f" beside artifacts of {artifacts}" if artifacts else ""
        return f"its tables take {size} bytes{beside}, and {most} is the most (SandboxLimits.bytes_out)"


def _compiled(code: str, name: str) -> tuple[types.CodeType, types.CodeType | None]:
    """Return a program's code, its last expression apart."""
    tree = marked(ast.parse(code, name), code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    body: types.CodeType = compile(tree, name, "exec", _FLAGS, dont_inherit=True)
    if not isinstance(last, ast.Expr):
        return body, None
    flags = _FLAGS | body.co_flags & _FUTURES
    value: types.CodeType = compile(ast.Expression(last.value), name, "eval", flags, dont_inherit=True)
    return body, value


def _no_keyboard(*args: Any, **kwargs: Any) -> NoReturn:
    raise EOFError("a program has no keyboard")


def _help(thing: Any, /) -> None:
    """Print the documentation of a function or class."""
    print(inspect.getdoc(thing) or repr(thing))
