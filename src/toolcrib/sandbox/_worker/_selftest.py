"""The self-test of the seal: a worker tries what no worker must be able to do."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import socket
from collections.abc import Callable, Iterator
from typing import Final

from ._limits import DESCRIPTORS, Limits
from ._seal import CHANNEL, Seal
from ._syscalls import prctl

_LIMITS: Final = Limits(cpu=5, memory=64 << 20)


def broken_layers(seal: Seal) -> dict[str, str]:
    """Return the breach of each layer in force that does not hold, by layer; empty when all hold."""
    ours, theirs = socket.socketpair()
    zygote = os.getpid()
    mapped = seal.mapped.read()
    child = os.fork()
    if child == 0:
        try:
            _try_all(seal, zygote, theirs.fileno(), mapped)
        finally:
            os._exit(1)
    theirs.close()
    with ours, ours.makefile("rb") as answers:
        lines = answers.read().splitlines()
    _, status = os.waitpid(child, 0)
    found: dict[str, str] = {}
    for line in lines:
        found.update(json.loads(line))
    if os.waitstatus_to_exitcode(status) != 0 and not found:
        found["seccomp"] = f"its self-test ended before its time ({os.waitstatus_to_exitcode(status)})"
    return found


def _try_all(seal: Seal, zygote: int, channel: int, mapped: int) -> None:
    layer = "no_new_privs"
    try:
        seal.detach(zygote)
        layer = "landlock"
        seal.restrict(channel)
        layer = "rlimits"
        seal.limit(_LIMITS, mapped)
        found = dict(_let_through(seal))
        layer = "seccomp"
        seal.filter()
        if seal.on("seccomp"):
            trials: tuple[tuple[str, Callable[[], object]], ...] = (
                ("a file can be opened", lambda: os.open("/", os.O_RDONLY if seal.becomes is None else os.O_RDWR)),
                ("a socket can be made", lambda: socket.socket(socket.AF_UNIX)),
                ("another program can be run", lambda: os.execv("/", ["/"])),
                ("the parent can be signalled", lambda: os.kill(os.getppid(), 0)),
                ("a process can be forked", _fork),
            )
            if let_through := [breach for breach, trial in trials if not _refused(trial)]:
                found["seccomp"] = ", ".join(let_through)
    except OSError as error:
        found = {layer: str(error)}
    os.write(CHANNEL, json.dumps(found).encode())
    os._exit(0)


def _let_through(seal: Seal) -> Iterator[tuple[str, str]]:
    """Yield each breach of the layers under the filter, tried where that layer alone can prevent it."""
    trials: tuple[tuple[str, str, Callable[[], object]], ...] = (
        ("no_new_privs", "privileges can be gained", lambda: prctl(39) == 1),
        ("namespaces", "the processes of the host can be seen", lambda: seal.becomes or os.getppid() == 1),
        ("empty_root", "the files of the host are there", lambda: not os.path.lexists(os.__file__)),
        ("dropped_root", "it is still root", lambda: 0 not in os.getresuid()),
        ("no_capabilities", "it can change its root", lambda: _refused(lambda: os.chroot("/"))),
        ("landlock", "a directory can be opened", lambda: _refused(lambda: os.open("/", os.O_RDONLY))),
        ("rlimits", "files may have a size", lambda: resource.getrlimit(resource.RLIMIT_FSIZE) == (0, 0)),
        ("closed_descriptors", "it has a descriptor too many", _has_one_descriptor),
        ("empty_environment", "there are variables", lambda: not os.environ),
    )
    for layer, breach, holds in trials:
        if seal.on(layer) and not holds():
            yield layer, breach


def _refused(trial: Callable[[], object]) -> bool:
    try:
        trial()
    except PermissionError:
        return True
    except OSError:
        return False  # it was tried, and failed for another reason
    return False


def _fork() -> None:
    if os.fork() == 0:
        os._exit(0)


def _has_one_descriptor() -> bool:
    for descriptor in range(DESCRIPTORS):
        if descriptor != CHANNEL:
            with contextlib.suppress(OSError):
                os.fstat(descriptor)
                return False
    return True
