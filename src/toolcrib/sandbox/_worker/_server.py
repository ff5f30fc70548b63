"""The server of workers at an address, for hosts elsewhere: one worker for each connection that shows the token.

Options: `host` and `port`; `most`, the workers at a time; `idle`, the seconds of silence after which a connection ends;
`certificate` and `key`, files for TLS; `plain`, to listen without TLS where others can connect; and those of a zygote.
The token is in the environment variable TOOLCRIB_TOKEN. No worker has it, nor anything that it could be found out
from: workers are forked from another process than the one that listens.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
from contextlib import suppress
from typing import Any

from .launch import ENVIRONMENT, command, encoded_message, read_message, version
from .messages import ANSWER, ENDED, FORK, REQUEST
from .relay import PROOF_SIZE, is_loopback, keep_alive, proof_of, relay

__all__ = ["main"]

_TOKEN_SIZE = 16
_GREETING = 10.0  # seconds that a connection has until it has shown the token and its limits
_GREETINGS = 64  # connections that have not shown the token, at a time
_START = 60.0
_ANSWER = 10.0
_MESSAGE = 4096


def main(options: dict[str, Any]) -> None:
    """Serve until this process is ended."""
    token = os.environ.pop("TOOLCRIB_TOKEN", "")
    if len(token) < _TOKEN_SIZE:
        sys.exit(f"TOOLCRIB_TOKEN must be a secret of at least {_TOKEN_SIZE} characters")
    address = options.get("host", "127.0.0.1")
    certificate = options.get("certificate")
    if certificate is None and not options.get("plain") and not is_loopback(address):
        sys.exit(
            f"without TLS, {address} would show token and programs to the network: give `certificate` and `key`, or "
            'listen on 127.0.0.1 behind a tunnel, or say `"plain": true` where the network is yours alone'
        )
    tls = None
    if certificate is not None:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(certificate, options.get("key"))
    server = _Server(options, proof_of(token))
    asyncio.run(server.run(address, options.get("port", 0), tls))


class _Server:
    """Takes connections, and has a zygote fork a worker for each that may have one."""

    def __init__(self, options: dict[str, Any], proof: bytes) -> None:
        self._proof = proof
        self._most, self._idle = options.get("most", 64), options.get("idle", 3600.0)
        self._strangers: dict[asyncio.Timeout, None] = {}  # connections that have not shown the token, in order
        self._workers = 0
        self._control, theirs = socket.socketpair()
        asked = {name: value for name, value in options.items() if name in ("skip", "packages", "folders")}
        self._zygote = subprocess.Popen(
            command({**asked, "serve": "zygote", "groups": {}, "control": theirs.fileno()}),
            env=ENVIRONMENT,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(),),
            start_new_session=True,
        )
        theirs.close()
        first = read_message(self._control, _START)
        if "failed" in first:
            sys.exit(f"the guest did not start: {first['failed']}")
        self._control.settimeout(_ANSWER)
        self._first = {**first, "version": version()}

    async def run(self, host: str, port: int, tls: ssl.SSLContext | None) -> None:
        """Listen, and write the address as a line of JSON."""
        patience = None if tls is None else _GREETING
        server = await asyncio.start_server(self._serve, host, port, ssl=tls, ssl_handshake_timeout=patience)
        address = server.sockets[0].getsockname()[:2]
        print(json.dumps({"address": list(address), "layers": self._first["ready"]}), flush=True)
        await server.serve_forever()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            keep_alive(writer.get_extra_info("socket"))
            limits = await self._greeted(reader, writer)
            if limits is not None:
                await self._run_worker(limits, reader, writer)
        except (TimeoutError, EOFError, OSError, ValueError, KeyError, TypeError):
            pass  # the peer's doing: its connection ends
        finally:
            writer.close()

    async def _greeted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[int, int] | None:
        """Return the limits that a host wants for its worker; None for a peer that may have none."""
        async with asyncio.timeout(_GREETING) as patience:
            if not hmac.compare_digest(await self._shown_proof(reader, patience), self._proof):
                return await _refuse(writer, "the token is another one than the server's")
            if self._workers >= self._most:
                return await _refuse(writer, f"all of its {self._most} workers are taken (`most`)")
            writer.write(encoded_message(self._first))
            await writer.drain()
            size = int.from_bytes(await reader.readexactly(4), "big")
            if size > _MESSAGE:
                return None
            limits = json.loads(await reader.readexactly(size))
            return int(limits["cpu"]), int(limits["memory"])

    async def _shown_proof(self, reader: asyncio.StreamReader, patience: asyncio.Timeout) -> bytes:
        """Return the proof that a peer shows; where too many have shown none yet, the one longest silent makes room."""
        if len(self._strangers) >= _GREETINGS:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            if not oldest.expired():
                oldest.reschedule(asyncio.get_running_loop().time())
        self._strangers[patience] = None
        try:
            return await reader.readexactly(PROOF_SIZE)
        finally:
            self._strangers.pop(patience, None)

    async def _run_worker(
        self, limits: tuple[int, int], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            handle = self._fork(limits, theirs)
        self._workers += 1
        try:
            await relay(reader, writer, ours, self._idle)
        finally:
            self._workers -= 1
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
            os.close(handle)

    def _fork(self, limits: tuple[int, int], channel: socket.socket) -> int:
        """Fork a worker, and return a descriptor of its process."""
        try:
            socket.send_fds(self._control, [REQUEST.pack(FORK, *limits)], [channel.fileno()])
            data, handles, _, _ = socket.recv_fds(self._control, ANSWER.size, 1)
            while data and ANSWER.unpack(data)[0] == ENDED:  # of a worker before
                data, handles, _, _ = socket.recv_fds(self._control, ANSWER.size, 1)
        except OSError:
            data, handles = b"", []
        if not data:
            sys.stderr.write("the zygote is gone\n")
            os._exit(1)  # what supervises this process starts it again
        if not handles:
            raise OSError("no worker could be forked")
        return handles[0]


async def _refuse(writer: asyncio.StreamWriter, why: str) -> None:
    writer.write(encoded_message({"failed": why}))
    await writer.drain()
