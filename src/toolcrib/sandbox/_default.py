"""Sandboxes by name, and the one where none is named: one of each for the process, so that their workers stay warm."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable
from typing import Final, Literal, TypeAlias

from toolcrib.errors import SandboxUnavailable, closest
from toolcrib.sandbox._protocol import Sandbox

__all__ = ["SandboxName", "default_sandbox", "sandbox_named"]

SandboxName: TypeAlias = Literal["process", "monty", "subprocess", "unsafe_inline"]

_ENGINES: Final = {
    "process": ("_process", "ProcessSandbox"),
    "monty": ("_monty", "MontySandbox"),
    "subprocess": ("_process", "SubprocessSandbox"),
    "unsafe_inline": ("_inline", "UnsafeInlineSandbox"),
}
_lock = threading.RLock()
_made: dict[str, Sandbox] = {}


def default_sandbox() -> Sandbox:
    """Return the process's own sandbox, made when it is first asked for: `process` on Linux, `monty` elsewhere.

    There is no other to fall back to. Where the kernel lacks what `process` needs, its first program says so.

    Raises:
        SandboxUnavailable: Nothing that isolates is installed.
    """
    return sandbox_named("process" if sys.platform == "linux" else "monty")


def sandbox_named(name: str) -> Sandbox:
    """Return the process's own sandbox of that name, made when it is first asked for.

    Args:
        name: `process`, `monty`; or `subprocess`, `unsafe_inline`, which do not keep a program from files and network.

    Raises:
        SandboxUnavailable: What it needs is not here.
        ValueError: There is no sandbox of that name.
    """
    if name not in _ENGINES:
        raise ValueError(f"there is no sandbox called {name!r}. {closest(name, tuple(_ENGINES))}")
    with _lock:
        if name not in _made:
            _made[name] = _make(name)
        return _made[name]


def _make(name: str) -> Sandbox:
    module, kind = _ENGINES[name]
    if name in ("process", "subprocess") and sys.platform != "linux":
        raise SandboxUnavailable(
            f"the sandbox {name!r} needs Linux, and this is {sys.platform}. Use MontySandbox: "
            "pip install 'toolcrib[monty]', or run in a Linux container or virtual machine"
        )
    try:
        engine: Callable[[], Sandbox] = getattr(importlib.import_module(f"toolcrib.sandbox.{module}"), kind)
    except ImportError as error:
        raise SandboxUnavailable(
            f"there is nothing here to run programs in ({error}). Install Monty: pip install 'toolcrib[monty]'"
        ) from error
    return engine()
