"""The sandbox that is used where none is named: one for the process, so that its workers stay warm."""

from __future__ import annotations

import importlib
import threading

from toolcrib.code.sandboxes._protocol import Sandbox
from toolcrib.errors import SandboxUnavailable

__all__ = ["default_sandbox"]

_lock = threading.Lock()
_made: list[Sandbox] = []


def default_sandbox() -> Sandbox:
    """Return the process's own sandbox, made when it is first asked for.

    Raises:
        SandboxUnavailable: Nothing that isolates is installed.
    """
    with _lock:
        if not _made:
            _made.append(_make())
        return _made[0]


def _make() -> Sandbox:
    try:
        module = importlib.import_module("toolcrib.code.sandboxes._monty")
    except ImportError as error:
        raise SandboxUnavailable(
            f"there is nothing here to run programs in ({error}). Install Monty: pip install 'toolcrib[monty]'"
        ) from error
    return module.MontySandbox()
