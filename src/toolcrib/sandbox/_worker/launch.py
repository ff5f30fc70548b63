"""Start of a guest: its command, its environment, and the first messages on its channel, which both ends use.

A message is four bytes of length, most significant first, and a JSON object. The guest sends the first one, when it
has loaded all that programs need: `ready` (a state for each layer) and `broken` (why, for each layer that does not
hold), or `failed` (why); and `version`, that of `version()`. The answer is the `cpu` and `memory` of a worker. Then the
channel has the frames of programs.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import sys
import time
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, cast

__all__ = ["ENVIRONMENT", "FOLDER", "command", "encoded_message", "read_message", "send_message", "version"]

FOLDER: Final = os.path.dirname(os.path.abspath(__file__))
"""The folder of the guest, which needs nothing but a Python."""

_POOLS: Final = ("ARROW_IO", "BLIS_NUM", "MKL_NUM", "NUMEXPR_MAX", "OMP_NUM", "OPENBLAS_NUM", "POLARS_MAX")
ENVIRONMENT: Final = {
    **{"PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8", "MPLBACKEND": "Agg", "ARROW_DEFAULT_MEMORY_POOL": "system"},
    **{f"{pool}_THREADS": "1" for pool in _POOLS},
}
_FLAGS: Final = ("-P", "-s", "-S", "-X", "utf8")  # not -I, which would ignore the fixed seed of hashes
_HEAD: Final = 4
_MOST: Final = 1 << 16  # bytes of a message


def command(options: Mapping[str, Any], python: str | None = None, folder: str = FOLDER) -> list[str]:
    """Return the command that starts a guest.

    Args:
        options: See `__main__`.
        python: The interpreter; None for that of this process.
        folder: Where the folder of the guest is seen.
    """
    flags = [*_FLAGS, "-B"] if sys.dont_write_bytecode else [*_FLAGS]
    return [python or sys.executable, *flags, folder, json.dumps(options)]


@cache
def version() -> str:
    """Return the version of Python and of this folder: both ends of a channel must have the same."""
    digest = hashlib.sha256()
    for name in sorted(name for name in os.listdir(FOLDER) if name.endswith(".py")):
        with open(os.path.join(FOLDER, name), "rb") as file:
            digest.update(file.read())
    return f"Python {sys.version_info.major}.{sys.version_info.minor}, guest {digest.hexdigest()[:12]}"


def encoded_message(message: Mapping[str, Any]) -> bytes:
    """Return the bytes of a message."""
    body = json.dumps(message).encode()
    return len(body).to_bytes(_HEAD, "big") + body


def send_message(channel: socket.socket, message: Mapping[str, Any]) -> None:
    """Send a message."""
    channel.sendall(encoded_message(message))


def read_message(channel: socket.socket, seconds: float | None = None) -> dict[str, Any]:
    """Return the next message, and leave what comes after it unread.

    Args:
        seconds: How long the whole message may take; None for ever.

    Raises:
        EOFError: The channel was closed.
        TimeoutError: It took too long.
        ValueError: The bytes are not a message.
    """
    until = None if seconds is None else time.monotonic() + seconds
    size = int.from_bytes(_exactly(channel, _HEAD, until), "big")
    if size > _MOST:
        raise ValueError(f"a message of {size} bytes")
    message = json.loads(_exactly(channel, size, until))
    if not isinstance(message, dict):
        raise ValueError("a message that is not an object")
    return cast("dict[str, Any]", message)


def _exactly(channel: socket.socket, size: int, until: float | None) -> bytes:
    data = b""
    while len(data) < size:
        if until is not None:
            seconds = until - time.monotonic()
            if seconds <= 0:
                raise TimeoutError("it took too long")
            channel.settimeout(seconds)
        piece = channel.recv(size - len(data))
        if not piece:
            raise EOFError("the channel was closed")
        data += piece
    channel.settimeout(None)
    return data
