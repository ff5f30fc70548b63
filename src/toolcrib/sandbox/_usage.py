"""Usage of a worker's process, as the kernel counts it: seconds that its threads computed, and how many there are."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final, NamedTuple

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
