"""A host for programs in tests: a table of functions, and a list of what they were asked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from toolcrib.calls import charged
from toolcrib.sandbox import (
    Emit,
    Program,
    Raised,
    Reply,
    Sandbox,
    SandboxLimits,
    SandboxResult,
    SuspendedReply,
    Value,
)

Answer = Callable[..., Any]


class Run(Protocol):
    """Runs code in a sandbox, with limits by name, which count no seconds that are `waited`."""

    def __call__(
        self,
        code: str,
        host: TableHost | None = None,
        waited: Callable[[], float] | None = None,
        **limits: float | None,
    ) -> Awaitable[SandboxResult]: ...


def add(*numbers: int, more: int = 0) -> int:
    return sum(numbers) + more


def fail(kind: str, message: str) -> Reply:
    return Raised(kind, message)


def stop(reason: str = "it waits for a person") -> Reply:
    return SuspendedReply(reason)


async def costly(*args: int) -> None:
    """Cost the host at least a tenth of a second of computing, for which the program pays."""
    charged(_compute)


def _compute() -> None:
    began = time.thread_time()
    while time.thread_time() < began + 0.1:
        pass


async def slow(seconds: float, value: Any = None) -> Any:
    await asyncio.sleep(seconds)
    return value


class TableHost:
    """Answers calls with functions by name: `add`, `fail`, `stop` and `slow` unless others are given."""

    def __init__(self, **table: Answer) -> None:
        self.table: dict[str, Answer] = table or {"add": add, "fail": fail, "stop": stop, "slow": slow}
        self.calls: list[tuple[str, list[Any], dict[str, Any]]] = []
        self.printed: list[tuple[str, str]] = []
        self.cancelled: list[str] = []
        self.called = asyncio.Event()

    async def call(self, name: str, args: list[Any], kwargs: dict[str, Any], emit: Emit | None = None) -> Reply:
        self.calls.append((name, args, kwargs))
        self.called.set()
        try:
            made = self.table[name](*args, **kwargs)
            made = await made if isinstance(made, Awaitable) else made
        except asyncio.CancelledError:
            self.cancelled.append(name)
            raise
        return made if isinstance(made, Value | Raised | SuspendedReply) else Value(made)

    def output(self, text: str, stream: str) -> None:
        self.printed.append((stream, text))

    @property
    def names(self) -> list[str]:
        return [name for name, _, _ in self.calls]


def runs_in(sandbox: Sandbox, *, may_block: bool) -> Run:
    """Return what runs code in a sandbox against a host, with limits by name."""

    async def run(
        code: str,
        host: TableHost | None = None,
        waited: Callable[[], float] | None = None,
        **limits: float | None,
    ) -> SandboxResult:
        host, most = host or TableHost(), SandboxLimits(**limits)  # type: ignore[arg-type]
        program = Program(code, tuple(host.table), most, may_block=may_block, waited=waited)
        return await sandbox.run(program, host)

    return run
