"""A worker that is another program: this process puts the seal on and becomes it."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Final

from ._limits import Limits, end_first
from ._seal import ON, NextProgram, Seal
from ._selftest import broken_layers
from .messages import CHECK

_LIMITS: Final = Limits(cpu=24 * 3600, memory=16 << 30)  # for a broken engine: of each program it limits both itself


def main(options: dict[str, Any]) -> None:
    """Become the program, with the further arguments of this process. Does not return.

    Args:
        options: `program` and `libraries`, by path; the layers to `skip`; and `layers`, without which it ends.
    """
    arguments = sys.argv[2:]
    file = os.open(options["program"], os.O_RDONLY | os.O_CLOEXEC)  # by path, a user without rights may not find it
    silent = os.open(os.devnull, os.O_WRONLY)
    end_first()
    seal = Seal(frozenset(options["skip"]), NextProgram(file, tuple(options["libraries"])))
    seal.separate()
    seal.surround()
    if arguments[:1] == [CHECK]:
        del arguments[0]
        os.write(1, json.dumps({"ready": seal.report, "broken": broken_layers(seal)}).encode())
    elif any(state == ON and not seal.on(layer) for layer, state in options["layers"].items()):
        os._exit(1)
    else:
        os.dup2(silent, 2)
    seal.restrict_to(0, 1, 2, file)
    seal.limit(_LIMITS, 0)
    seal.filter()
    os.execve(file, [options["program"], *arguments], {})
