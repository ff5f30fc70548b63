"""Engines by name, each loaded when it is first asked for, and the sandboxes that this process shares.

A process has one sandbox of each name, so that the workers of its engine stay warm.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any, Final, Literal, TypeAlias

from toolcrib.errors import MissingExtraError, SandboxUnavailable, closest
from toolcrib.sandbox._protocol import (
    Dialect,
    HasDialect,
    Host,
    Program,
    Resumable,
    Sandbox,
    SandboxResult,
    TypeChecker,
)

SandboxName: TypeAlias = Literal["process", "monty", "bubblewrap", "gvisor", "subprocess", "unsafe_inline"]
"""A sandbox by name; the page about the sandbox says what each stops."""

_ENGINES: Final[dict[str, tuple[str, str]]] = {  # the class of each, and its module
    "process": ("ProcessSandbox", "_process"),
    "monty": ("MontySandbox", "_monty"),
    "bubblewrap": ("bubblewrap", "_command_workers"),
    "gvisor": ("gvisor", "_command_workers"),
    "subprocess": ("SubprocessSandbox", "_process"),
    "unsafe_inline": ("UnsafeInlineSandbox", "_inline"),
}
_lock = threading.RLock()
_shared: dict[str, Any] = {}


def default_sandbox() -> Sandbox:
    """Return the process's own sandbox, made when it is first asked for: `process` on Linux, `monty` on other systems.

    There is no other to fall back to. Where the kernel lacks what `process` needs, its first program raises
    SandboxUnavailable.

    Raises:
        SandboxUnavailable: Nothing that isolates is installed.
    """
    return sandbox_named("process" if sys.platform == "linux" else "monty")


def sandbox_named(name: str) -> Sandbox:
    """Return the process's own sandbox of that name, made when it is first asked for.

    Args:
        name: `process`, `monty`, `bubblewrap`, `gvisor`; or `subprocess`, `unsafe_inline`, which do not keep a program
            from files and network.

    Raises:
        SandboxUnavailable: This system lacks what the sandbox needs.
        ValueError: There is no sandbox of that name.
    """
    if name not in _ENGINES:
        raise ValueError(f"there is no sandbox called {name!r}. {closest(name, tuple(_ENGINES))}")
    if name not in ("monty", "unsafe_inline") and sys.platform != "linux":
        raise SandboxUnavailable(
            f"the sandbox {name!r} needs Linux, and this is {sys.platform}. Use MontySandbox: "
            "pip install 'toolcrib[monty]', or run in a Linux container or virtual machine"
        )
    try:
        return _shared_engine(name, *_ENGINES[name])
    except ImportError as error:
        raise SandboxUnavailable(
            f"there is nothing here to run programs in ({error}). Install Monty: pip install 'toolcrib[monty]'"
        ) from error


def type_checker() -> TypeChecker:
    """Return the process's own type checker, the one of Monty, made when it is first asked for.

    Raises:
        MissingExtraError: Monty is not installed.
    """
    try:
        return _shared_engine("type checker", *_ENGINES["monty"], workers=4)
    except ImportError as error:
        raise MissingExtraError("checking the types of programs", "monty") from error


def _shared_engine(name: str, kind: str, module: str, **options: Any) -> Any:
    """Return the object that this process shares under a name, created at the first request."""
    with _lock:
        if name not in _shared:
            _shared[name] = getattr(import_module(f"toolcrib.sandbox.{module}"), kind)(**options)
        return _shared[name]


# --- programs that are run again from their start


class ReplaySandbox:
    """Runs programs in another sandbox, and resumes one by running it from its start.

    The host gives the calls that were made the replies that they had. A program that does something else then, because
    of the time or of random numbers, is ended.

    Args:
        sandbox: Where the programs run.
    """

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    @property
    def engine(self) -> str:
        """The sandbox's own name and version, or its class."""
        name = self._sandbox.engine if isinstance(self._sandbox, Resumable) else type(self._sandbox).__name__
        return f"{name} again"

    @property
    def replays(self) -> bool:
        """True: a resumed program asks for every call once more."""
        return True

    @property
    def dialect(self) -> Dialect:
        """The dialect of the other sandbox."""
        return self._sandbox.dialect if isinstance(self._sandbox, HasDialect) else Dialect()

    async def run(self, program: Program, host: Host) -> SandboxResult:
        """Run a program to its end; see `Sandbox.run`."""
        ended = await self._sandbox.run(program, host)
        is_paused = ended.error is not None and ended.error.kind == "paused"
        return replace(ended, state={} if is_paused else None)

    async def resume(self, program: Program, state: Mapping[str, Any], host: Host) -> SandboxResult:
        """Run a program again from its start."""
        return await self.run(program, host)


def replayable(sandbox: Sandbox) -> Sandbox:
    """Return a sandbox whose programs can be resumed after a crash: this one, or one around it."""
    return sandbox if isinstance(sandbox, Resumable) and sandbox.replays else ReplaySandbox(sandbox)
