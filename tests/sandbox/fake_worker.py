"""Workers that are threads and send what a test wants, above all what breaks the protocol."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from toolcrib.sandbox._worker_end import NOTHING, Usage
from toolcrib.sandbox._worker_sandbox import WorkerSandbox

Act = Callable[["WorkerEnd"], None]


class WorkerEnd:
    """The other end of a worker's channel: sends and reads frames, or raw bytes."""

    def __init__(self, channel: socket.socket) -> None:
        self.channel = channel
        self._file = channel.makefile("rb")

    def read(self) -> dict[str, Any]:
        """Return the next frame of the host's; EOFError when there is none."""
        head = self._file.read(4)
        if len(head) < 4:
            raise EOFError
        return json.loads(self._file.read(int.from_bytes(head, "big")))

    def send(self, kind: str, **fields: Any) -> None:
        self.raw(json.dumps({"t": kind, **fields}).encode())

    def raw(self, body: bytes) -> None:
        self.bytes(len(body).to_bytes(4, "big") + body)

    def bytes(self, data: bytes) -> None:
        self.channel.sendall(data)

    def call(self, number: int, name: str, *args: Any, wait: bool = False, **more: Any) -> None:
        self.send("call", **{"id": number, "name": name, "args": list(args), "kwargs": {}, "wait": wait, **more})

    def until_killed(self) -> None:
        while self.channel.recv(1 << 16):
            pass


class FakeWorker:
    def __init__(self, act: Act, usage: Usage) -> None:
        self._usage = usage
        self.socket, other = socket.socketpair()
        self.was_killed = False
        self._thread = threading.Thread(target=self._act, args=(act, other), daemon=True)
        self._thread.start()

    def _act(self, act: Act, channel: socket.socket) -> None:
        with channel:
            worker = WorkerEnd(channel)
            try:
                act(worker)
            except (EOFError, OSError):
                pass  # it was killed, which is often the point
            finally:
                worker._file.close()  # pyright: ignore[reportPrivateUsage] -- its own

    def kill(self) -> None:
        self.was_killed = True
        if self.socket.fileno() >= 0:
            self.socket.shutdown(socket.SHUT_RDWR)

    def usage(self) -> Usage:
        return self._usage

    def stop(self) -> None:
        pass

    def go_on(self) -> None:
        pass

    def close(self) -> None:
        self.kill()
        self.socket.close()
        self._thread.join(60)


class FakeWorkers:
    """A pool whose workers do what `act` does."""

    layers = ("thread",)

    def __init__(self, act: Act, usage: Usage) -> None:
        self._act, self._usage = act, usage
        self.taken: list[FakeWorker] = []

    def start(self) -> None:
        pass

    def take(self, cpu: int, memory: int) -> FakeWorker:
        self.taken.append(FakeWorker(self._act, self._usage))
        return self.taken[-1]

    def close(self) -> None:
        for worker in self.taken:
            worker.close()


@contextmanager
def faked(act: Act, usage: Usage = NOTHING) -> Generator[WorkerSandbox]:
    """Return a sandbox whose workers do what `act` does, and have the usage of a process."""
    with WorkerSandbox(FakeWorkers(act, usage), "fake") as sandbox:
        yield sandbox
