"""Control groups of a zygote: made and joined before it is sealed, removed when the last zygote in them has ended."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import time

_REMOVED_WITHIN = 5.0  # seconds in which the kernel ends what is killed


def joined(channel: socket.socket, groups: dict[str, dict[str, int]]) -> str:
    """Move this process into groups, each a folder with limits by the names of their files; return `on`, or why not.

    A group with limits is made, or was made by another zygote of the same host, and is removed when the last one is
    gone.

    Args:
        channel: This process's end of the host's socket.
    """
    if created := [folder for folder, limits in groups.items() if limits]:
        _leave_remover(created, channel)
    try:
        for folder, limits in groups.items():
            _join(folder, limits)
    except OSError as error:
        return f"unavailable: {error}"
    return "on"


def _join(folder: str, limits: dict[str, int]) -> None:
    for is_last in (False, True):
        if limits:
            with contextlib.suppress(FileExistsError):
                os.mkdir(folder)
        try:
            for name, value in {**limits, "cgroup.procs": 0}.items():  # 0 is this process
                descriptor = os.open(f"{folder}/{name}", os.O_WRONLY)
                try:
                    os.write(descriptor, str(value).encode())
                finally:
                    os.close(descriptor)
        except FileNotFoundError:  # it may have been removed just now, after the last zygote in it
            if is_last or not limits:
                raise
        else:
            return


def _leave_remover(folders: list[str], channel: socket.socket) -> None:
    """Fork a process that removes groups once this one and its workers are gone, also when the host was killed."""
    zygote = os.pidfd_open(os.getpid())
    if os.fork() != 0:
        os.close(zygote)
        return
    try:
        channel.close()
        select.select([zygote], [], [])
        until = time.monotonic() + _REMOVED_WITHIN
        while (folders := [folder for folder in folders if not _is_removed(folder)]) and time.monotonic() < until:
            time.sleep(0.01)
    finally:
        os._exit(0)


def _is_removed(folder: str) -> bool:
    try:
        os.rmdir(folder)
    except OSError:
        return not os.path.isdir(folder)  # else there are processes in it yet, perhaps of another zygote
    return True
