"""Engines by name, each loaded when it is first asked for, and the sandboxes that this process shares.

A process has one sandbox of each name, so that the workers of its engine stay warm.
"""

from __future__ import annotations

import sys
import threading
from importlib import import_module
from typing import Any, Final, Literal, TypeAlias

from toolcrib.errors import MissingExtraError, SandboxUnavailable, closest
from toolcrib.sandbox._protocol import Sandbox, TypeChecker

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
