"""Requests of the host to a zygote over their stream socket, after its first message, which `launch` describes.

Each is a `REQUEST`: what to do, and two numbers. `FORK` has the limits, seconds and bytes, and with it goes the
descriptor that becomes the worker's channel. `SIGNAL` has a worker's number and the number of a signal. Each fork is
answered, in order, by `ANSWER`: `FORK`, the worker's number, or an error number below 0, and 0; with it goes a
descriptor of the process, where there are any. When a worker has ended, an `ANSWER` says so that nobody asked for:
`ENDED`, its number, and its exit code, which is below 0 for a signal. One that finds no room is left out.
"""

from __future__ import annotations

import struct
from typing import Final

__all__ = [
    "ANSWER",
    "CHECK",
    "ENDED",
    "FORK",
    "LAYERS",
    "REQUEST",
    "SIGNAL",
    "THREADS",
    "THREADS_IN_KERNEL",
    "THREADS_OF_WORKER",
]

REQUEST: Final = struct.Struct("=BQQ")
ANSWER: Final = struct.Struct("=Bqi")
FORK: Final = 1
SIGNAL: Final = 2
ENDED: Final = 3

CHECK: Final = "check"
"""The first argument of a program that is to write `ready` and `broken` before it begins; see `_next_program`."""

THREADS: Final = 8192
"""The threads of all workers of one zygote together."""

THREADS_OF_WORKER: Final = 128
"""The threads that Python starts for one program at a time."""

THREADS_IN_KERNEL: Final = 160
"""The threads that a worker may have at a time: those that are ending, which Python counts no more, included."""

LAYERS: Final = (
    "no_new_privs",
    "namespaces",
    "empty_root",
    "dropped_root",
    "no_capabilities",
    "landlock",
    "seccomp",
    "rlimits",
    "closed_descriptors",
    "empty_environment",
)
"""The layers that can keep a worker in, in the order of reports."""
