"""Identity of a process, whether the process of an identity still runs, and the user that this one belongs to."""

from __future__ import annotations

import getpass
import os
import platform
import sys
import time
from functools import cache
from pathlib import Path
from uuid import getnode

_IMPORTED = f"{time.time():.2f}"
_HAS_PROC = Path("/proc/self/stat").exists()


def local_user() -> str:
    """Return the name of the user that this process belongs to: of a run without a principal."""
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):  # a container's user may have no name
        return "local"


def this_process() -> str:
    """Return the identity of this process, which no other process has: machine, number, and when it started."""
    return _identity(os.getpid())


def is_running(process: str) -> bool | None:
    """Return whether the process of an identity runs; None where that cannot be known, as it is of another machine."""
    if process == this_process():
        return True
    machine, _, rest = process.rpartition(":")[0].partition(":")
    number = rest or "0"
    if machine != _machine() or not number.isdecimal():
        return None
    started = _started(int(number))
    if started is not None:
        return f"{machine}:{number}:{started}" == process
    if not _has_number(int(number)):
        return False
    return None if _HAS_PROC else True  # another user's, which `/proc` may hide


@cache
def _identity(number: int) -> str:
    return f"{_machine()}:{number}:{_started(number) or _IMPORTED}"


if sys.platform != "win32":  # a child may have the number of an ancestor that has ended
    os.register_at_fork(after_in_child=_identity.cache_clear)


@cache
def _machine() -> str:
    """Return an id that all processes with the same process numbers share: the boot and the namespace of processes."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return f"{platform.node()}/{getnode():x}".replace(":", "-")


def _started(number: int) -> str | None:
    """Return when a process started, in ticks; empty for one that has ended, None where none is seen."""
    try:
        text = Path(f"/proc/{number}/stat").read_text()
    except OSError:
        return None
    state, *fields = text.rpartition(")")[2].split()
    return "" if state in ("Z", "X") else fields[18]


def _has_number(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
