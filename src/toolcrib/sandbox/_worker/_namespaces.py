"""Namespaces and identity of the process: namespaces of its own, an empty root, a user that owns nothing."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import struct
from collections.abc import Sequence
from typing import Final

from ._syscalls import function, prctl, syscall

NOBODY: Final = 65534

_USER: Final = 0x10000000
_PROCESSES: Final = 0x20000000
_ALL_OTHERS: Final = 0x00020000 | 0x04000000 | 0x08000000 | 0x40000000 | 0x02000000
"""Mounts, host name, IPC, network, control groups."""

_RECURSIVELY_PRIVATE: Final = 0x4000 | 0x40000
_READ_ONLY: Final = 0x1
_PLAIN: Final = 0x2 | 0x4 | 0x8  # no set-uid, no devices, no execution
_BIND: Final = 0x1000
_REMOUNT: Final = 0x20
_DETACH: Final = 2
_LAST_CAPABILITY_EVER: Final = 63
_COUNTS_IN_NAMESPACES: Final = [5, 14]  # the first kernel that counts the threads of a user in each namespace


def set_dumpable(allowed: bool) -> None:
    """Allow other processes of the same user to look into this one, or not."""
    prctl(4, int(allowed))


def try_to_separate(*, processes: bool) -> None:
    """Try in a child whether `separate` succeeds: what it did before it failed could not be undone.

    Raises:
        OSError: It does not.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            separate(processes=processes)
            os._exit(0)
        except OSError as error:
            os.write(writer, str(error).encode())
        finally:
            os._exit(1)
    os.close(writer)
    error_text = os.read(reader, 1000).decode(errors="replace")
    os.close(reader)
    if os.waitpid(child, 0)[1] != 0:
        raise OSError(error_text)


def separate(*, processes: bool) -> bool:
    """Enter namespaces of its own.

    As root, the process changes its user first and keeps the way back, so that it enters the user namespace as a user
    that owns nothing; where no user namespace is available, root makes the others without.

    Args:
        processes: Whether this process's next child is the first of a new process namespace.

    Returns:
        Whether users are among them, so that other processes of its user are not counted here.

    Raises:
        OSError: They are not allowed here, as in many containers.
    """
    others = _ALL_OTHERS | (_PROCESSES if processes else 0)
    was_root = os.geteuid() == 0
    if was_root and _lend_to_nobody():
        try:
            _enter_as_user(others)
        except OSError:
            os.seteuid(0)
        else:
            return True
    try:
        _enter_as_user(others)
    except OSError:
        if not was_root:
            raise
        function("unshare", others)
        return False
    return True


def _lend_to_nobody() -> bool:
    """Switch to a user that owns nothing, and keep the way back to root; False where there is no such user."""
    try:
        os.setgroups([])
        os.setegid(NOBODY)
        os.seteuid(NOBODY)
    except OSError:
        return False
    return True


def _enter_as_user(others: int) -> None:
    user, group = os.geteuid(), os.getegid()
    set_dumpable(True)  # else the maps below belong to root
    function("unshare", _USER | others)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{NOBODY} {user} 1"), ("gid_map", f"{NOBODY} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def empty_root(shown: Sequence[str] = ()) -> None:
    """Make a read-only directory the root, in which there is nothing but files to be shown; needs its own namespaces.

    Raises:
        OSError: Mounting is not allowed here.
    """
    function("mount", b"none", b"/", None, _RECURSIVELY_PRIVATE, None)
    somewhere = next((path for path in ("/tmp", "/proc", "/dev") if os.path.isdir(path)), "/")
    function("mount", b"none", somewhere.encode(), b"tmpfs", _PLAIN, b"size=4k,mode=555")
    for path in shown:
        place = somewhere + path
        os.makedirs(os.path.dirname(place), exist_ok=True)
        os.close(os.open(place, os.O_CREAT | os.O_RDONLY))
        function("mount", path.encode(), place.encode(), None, _BIND, None)
    function("mount", b"none", somewhere.encode(), None, _REMOUNT | _READ_ONLY | _PLAIN, None)
    os.chdir(somewhere)
    syscall("pivot_root", ctypes.c_char_p(b"."), ctypes.c_char_p(b"."))  # the old root now lies over the new one
    function("umount2", b".", _DETACH)
    os.chdir("/")


def become_nobody() -> None:
    """Drop root for good, and any way back to it; a user who is not root stays the same.

    Raises:
        OSError: There is no other user here, as in some user namespaces.
    """
    user, group = os.geteuid() or NOBODY, os.getegid() or NOBODY
    with contextlib.suppress(OSError):  # forbidden in a user namespace, and to a user who is not root
        os.setgroups([])
    os.setresgid(group, group, group)
    os.setresuid(user, user, user)


def count_threads_apart() -> None:
    """Enter a user namespace of its own, in which the kernel counts the threads of this process alone.

    Raises:
        OSError: The kernel counts all threads of a user together, or there are too many namespaces.
    """
    kernel = [int(number) for number in re.findall(r"\d+", os.uname().release)[:2]]
    if kernel < _COUNTS_IN_NAMESPACES:
        raise OSError("the kernel counts all threads of a user together")
    function("unshare", _USER)
    _give_up_capabilities()  # it got them all, over nothing


def drop_capabilities() -> None:
    """Drop every capability, and any way of getting one.

    Raises:
        OSError: The kernel refused.
    """
    for capability in range(_LAST_CAPABILITY_EVER + 1):
        try:
            prctl(24, capability)
        except OSError:
            break  # past the last one this kernel has, or none to give up with
    _give_up_capabilities()


def _give_up_capabilities() -> None:
    version_3, this_process = 0x20080522, 0
    header = struct.pack("=Ii", version_3, this_process)
    syscall("capset", ctypes.c_char_p(header), ctypes.c_char_p(bytes(24)))
