"""Ends of a worker's process by its exit status: by what its program did, or from outside."""

from __future__ import annotations

import os
import re
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

Cause: TypeAlias = Literal["program", "time", "outside"]

_FROM_OUTSIDE: Final = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT")
"""Signals by which supervisors and persons end a process, other than SIGKILL; a program can send itself these."""

_OF_SIGNALS: Final = 128  # plus a signal's number: the status of a command that ran what the signal ended
_OF_WALLS: Final = 125  # and up: what gVisor and docker end with when they could not run it, or not to its end


@dataclass(frozen=True, slots=True)
class WorkerEnd:
    """The end of a worker's process.

    Attributes:
        cause: `program`: the program ended or crashed it. `time`: it computed longer than the kernel let it. `outside`:
            another process or the kernel killed it, or it may have been so.
        how: A text of what happened to it, for messages.
    """

    cause: Cause
    how: str


_NO_MEMORY: Final = "the machine may have had no memory left"
LOST_WITH_ALL: Final = WorkerEnd("outside", f"it was killed from outside, with all other workers; {_NO_MEMORY}")
"""The end of a worker whose zygote was killed, and all of its workers with it."""


def worker_end(code: int, *, is_command: bool = False, is_sealed: bool = True) -> WorkerEnd:
    """Return how a process ended, by its exit code: a status, or below 0 the number of a signal.

    Args:
        is_command: Whether it is a wall around the worker, which passes on how the worker ended as its own status.
        is_sealed: Whether it could not send itself a SIGKILL.
    """
    if is_command and _OF_WALLS <= code <= _OF_SIGNALS:
        return WorkerEnd("outside", f"its wall ended with the status {code}")
    if is_command and code > _OF_SIGNALS:
        code = _OF_SIGNALS - code
    if code >= 0:
        return WorkerEnd("program", f"it ended itself with the status {code}")
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    if name == "SIGXCPU":
        return WorkerEnd("time", name)
    if name == "SIGKILL":
        by = f"killed from outside ({name})" if is_sealed else f"ended by {name}, perhaps from outside"
        return WorkerEnd("outside", f"it was {by}; {_NO_MEMORY}")
    if name in _FROM_OUTSIDE:
        return WorkerEnd("outside", f"it was ended by {name}, perhaps from outside")
    return WorkerEnd("program", f"it crashed ({name}), or took more memory than it may")


# --- what a worker used

_AFTER_NAME: Final = re.compile(r".*\) ", re.DOTALL)  # the name of a process may hold anything


class Usage(NamedTuple):
    """The seconds that a process has computed so far, and the number of its threads now."""

    seconds: float
    threads: int


NOTHING: Final = Usage(0.0, 1)


def usage_of(handle: int) -> Usage:
    """Return the usage of the process that a descriptor refers to; `NOTHING` of one that is not there."""
    try:
        about = Path(f"/proc/self/fdinfo/{handle}").read_text()
        number = int(about.partition("\nPid:")[2].split(maxsplit=1)[0])
        fields = _AFTER_NAME.sub("", Path(f"/proc/{number}/stat").read_text(), count=1).split()
        ticks = int(fields[11]) + int(fields[12])
        return Usage(ticks / os.sysconf("SC_CLK_TCK"), int(fields[17]))
    except (OSError, ValueError, IndexError):
        return NOTHING
