"""Relay between a network connection and a worker's channel, and the token that comes first on a connection."""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import socket
from contextlib import suppress
from typing import Final

__all__ = ["PROOF_SIZE", "is_loopback", "keep_alive", "proof_of", "relay"]

_PIECE: Final = 1 << 16
_CLOSING: Final = 2.0  # seconds
_SILENCE: Final = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 30_000}

PROOF_SIZE: Final = 32
"""The bytes that a host sends before anything else."""


def proof_of(token: str) -> bytes:
    """Return what a host sends to show that it has the token: of the same length for each token."""
    return hashlib.sha256(b"toolcrib guest\0" + token.encode()).digest()


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def keep_alive(connection: socket.socket) -> None:
    """Ask the kernel to end a connection half a minute after the other machine is gone."""
    if connection.family not in (socket.AF_INET, socket.AF_INET6):
        return
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _SILENCE.items():
        option: int | None = getattr(socket, name, None)  # some are Linux's only
        if option is not None:
            with suppress(OSError):  # gVisor does not know them all
                connection.setsockopt(socket.IPPROTO_TCP, option, value)


async def relay(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, channel: socket.socket, idle: float | None = None
) -> None:
    """Pass everything on in both directions, until either end closes; both are closed then.

    Args:
        idle: Seconds without a byte in either direction after which that is the end, too.
    """
    worker_reader, worker_writer = await asyncio.open_connection(sock=channel)
    try:
        with suppress(TimeoutError, OSError):
            async with asyncio.timeout(idle) as quiet:
                ways = [
                    asyncio.ensure_future(_pass_on(reader, worker_writer, quiet, idle)),
                    asyncio.ensure_future(_pass_on(worker_reader, writer, quiet, idle)),
                ]
                try:
                    await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for way in ways:
                        way.cancel()
                    await asyncio.gather(*ways, return_exceptions=True)
    finally:
        for each in (worker_writer, writer):
            each.close()
            await _closed(each)


async def _closed(writer: asyncio.StreamWriter) -> None:
    """Wait until the rest is sent, for a little while."""
    try:
        with suppress(OSError):
            async with asyncio.timeout(_CLOSING):
                await writer.wait_closed()
    except TimeoutError:
        writer.transport.abort()


async def _pass_on(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, quiet: asyncio.Timeout, idle: float | None
) -> None:
    loop = asyncio.get_running_loop()
    while data := await reader.read(_PIECE):
        if idle is not None:
            quiet.reschedule(loop.time() + idle)
        writer.write(data)
        await writer.drain()
