"""Landlock rules: no file, no TCP port, no signal and no abstract socket outside of this process."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Final

from ._syscalls import prctl, syscall

# How many rights on files each version of the kernel's interface knows; later ones know as many as the last here.
_FILE_RIGHTS: Final = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
_BIND_AND_CONNECT: Final = 0b11  # from version 4
_ABSTRACT_SOCKETS_AND_SIGNALS: Final = 0b11  # from version 6
_EXECUTE_AND_READ: Final = 0b101


def version() -> int:
    """Return the version of the interface, from 1.

    Raises:
        OSError: The kernel has no Landlock, or it is switched off.
    """
    return syscall("landlock_create_ruleset", 0, 0, 1)


def attributes(known: int) -> bytes:
    """Return the description of a ruleset that handles every right of a version, in the length it expects."""
    files = (1 << _FILE_RIGHTS[min(known, max(_FILE_RIGHTS))]) - 1
    if known < 4:
        return struct.pack("=Q", files)
    if known < 6:
        return struct.pack("=QQ", files, _BIND_AND_CONNECT)
    return struct.pack("=QQQ", files, _BIND_AND_CONNECT, _ABSTRACT_SOCKETS_AND_SIGNALS)


def make_ruleset(files: Sequence[int] = ()) -> int:
    """Return a descriptor of a ruleset that handles everything, and allows to read and execute these open files alone.

    Raises:
        OSError: The kernel has no Landlock, or it is switched off.
    """
    described = attributes(version())
    ruleset = syscall("landlock_create_ruleset", ctypes.c_char_p(described), len(described), 0)
    for file in files:
        rule, beneath = struct.pack("=Qi", _EXECUTE_AND_READ, file), 1
        syscall("landlock_add_rule", ruleset, beneath, ctypes.c_char_p(rule), 0)
    return ruleset


def restrict(ruleset: int) -> None:
    """Put this process under a ruleset, in a domain of its own: it cannot signal even those under the same ruleset.

    Raises:
        OSError: The kernel refused.
    """
    prctl(38, 1)  # required of a user who is not root
    syscall("landlock_restrict_self", ruleset, 0)
