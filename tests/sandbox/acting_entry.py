"""An entry for workers in tests of the seal: evaluates the text it is sent, with all of `os`, `socket` and `ctypes`."""

from __future__ import annotations

import ctypes
import os
import resource
import socket
import sys
import threading


def warm_up() -> None:
    ctypes.CDLL(None, use_errno=True)


def serve(descriptor: int) -> None:
    names: dict[str, object] = {
        "is_open": _is_open,
        "ctypes": ctypes,
        "os": os,
        "resource": resource,
        "socket": socket,
        "sys": sys,
        "take_threads": _take_threads,
        "threading": threading,
    }
    waiting = b""
    while data := os.read(descriptor, 1 << 16):
        *sources, waiting = (waiting + data).split(b"\0")
        for source in sources:
            os.write(descriptor, _answer(source.decode(), names).encode() + b"\0")


def _answer(source: str, names: dict[str, object]) -> str:
    try:
        return repr(eval(source, names))
    except BaseException as error:
        return f"{type(error).__name__}: {error}"


def _is_open(descriptor: int) -> bool:
    try:
        os.get_inheritable(descriptor)
    except OSError:
        return False
    return True


def _take_threads() -> int:
    """Start threads that wait for ever, until there are no more to be had, and return how many there are."""
    threading.stack_size(65_536)
    started = 0
    try:
        while started < 3_000:
            threading.Thread(target=threading.Event().wait, daemon=True).start()
            started += 1
    except RuntimeError:
        pass
    return started
