"""The guest of a wall: one worker, on the channel that its command was given as standard input.

Options: `entry` and `skip`, as for a zygote. Namespaces and users are the wall's.
"""

from __future__ import annotations

import math
import os
import sys
import time
from contextlib import suppress
from typing import Any

from ._limits import Limits
from ._seal import CHANNEL
from ._zygote import own_channel, sealed
from .launch import ENVIRONMENT, command, read_message, version

_OF_THE_WALL = ("namespaces", "empty_root", "dropped_root")


def main(options: dict[str, Any]) -> None:
    """Put on what the wall leaves of the seal, and serve the programs of one host. Does not return."""
    begin_as_planned()
    channel = own_channel(0)
    silence()
    options["skip"] = [*options.get("skip", ()), *_OF_THE_WALL]
    seal, entry = sealed(channel, options, version=version())
    mapped = seal.mapped.read()
    try:
        limits = read_message(channel)
        seal.count_threads_apart()
        seal.restrict(channel.fileno())
        used = math.ceil(time.process_time())  # a worker of a zygote begins at 0
        seal.limit(Limits(limits["cpu"] + used, limits["memory"]), mapped)
        seal.filter()
        entry.serve(CHANNEL)
        os._exit(0)
    finally:
        os._exit(1)


def begin_as_planned() -> None:
    """Begin anew unless this interpreter has the flags and the environment of every guest."""
    flags = sys.flags
    if flags.hash_randomization or not (flags.no_site and flags.safe_path and flags.utf8_mode):
        from_now_on = command({})
        os.execve(sys.executable, [*from_now_on[:-1], sys.argv[1]], os.environ | ENVIRONMENT)


def silence() -> None:
    """Leave the streams of the command: they may be the channel."""
    with suppress(OSError):
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nothing, stream)
        os.close(nothing)
