"""The host's end of a zygote: start one, ask it for workers, and end it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from toolcrib.errors import SandboxUnavailable
from toolcrib.sandbox.worker._requests import ANSWER, FORK, KILL, REQUEST

__all__ = ["Confined", "Ready", "Zygote"]

_WORKER: Final = Path(__file__).parent / "worker"
_ENVIRONMENT: Final = {"PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"}
_BOOT: Final = """\
import importlib.util as u, sys
_, folder, descriptor, options = sys.argv
spec = u.spec_from_file_location("toolcrib_worker", folder + "/__init__.py", submodule_search_locations=[folder])
sys.modules[spec.name] = package = u.module_from_spec(spec)
spec.loader.exec_module(package)
from toolcrib_worker._zygote import main
main(descriptor, options)
"""

_STARTS_WITHIN: Final = 30.0
_ENDS_WITHIN: Final = 5.0
_ANSWERS_WITHIN: Final = 5.0
_NO_SIGNAL: Final[int] = getattr(socket, "MSG_NOSIGNAL", 0)


@dataclass(frozen=True, slots=True)
class Ready:
    """What a zygote says of itself: each layer with its state, what the self-test found broken, its Python."""

    layers: dict[str, str]
    broken: dict[str, str]
    python: str


class Confined:
    """A worker under its seal, waiting on `socket` for the first frame.

    Attributes:
        socket: The host's end of the worker's one channel, a blocking stream socket. Once the worker is dead it is at
            its end, or raises ConnectionResetError where the worker left something unread.
        afterwards: Called once it is closed.
    """

    __slots__ = ("__weakref__", "_handle", "_number", "_zygote", "afterwards", "socket")

    def __init__(self, zygote: Zygote, channel: socket.socket) -> None:
        self.socket = channel
        self.afterwards: Callable[[], None] | None = None
        self._zygote: Zygote | None = zygote
        self._number: int | None = None
        self._handle: int | None = None

    def kill(self) -> None:
        """End the worker at once, whatever it does; nothing happens when it has ended."""
        if self._zygote is None:
            return
        if self._number is None:
            self._zygote.hear(until=self)
        if self._number is not None and not self._signal():
            self._zygote.kill(self._number)

    def _signal(self) -> bool:
        """Tell whether the host itself could signal it: it has a handle, and the right to."""
        if self._handle is None:
            return False
        try:
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        return True

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if self._zygote is None:
            return
        if is_finalizing():  # modules may be gone already; the worker ends with its zygote, which ends with us
            self.socket.close()
            return
        self._signal()  # nobody closed it
        self.forget()

    def close(self) -> None:
        """Kill the worker and give back what it held of the host; more than once is fine."""
        zygote = self._zygote
        if zygote is None:
            return
        self.kill()
        self.forget()
        zygote.gone(self)
        if self.afterwards is not None:
            self.afterwards()

    def forget(self) -> None:
        """Close the descriptors and leave the worker as it is: another process has it."""
        self._zygote = None
        self.socket.close()
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    @property
    def alive(self) -> bool:
        """Whether it still waits for its first frame; it says nothing before."""
        return not _readable(self.socket)

    def born(self, number: int | None, handle: int | None) -> None:
        """Take what the zygote says of it; no number when it could not be forked."""
        self._number, self._handle = number, handle


class Zygote:
    """A running zygote; its methods may be called from any thread.

    Attributes:
        forks: How many workers were asked of it.
        served: It has answered at least once.
        resident: Bytes of memory it takes, as it said last.
    """

    def __init__(self, skip: frozenset[str], guest: Path | None) -> None:
        self.forks = 0
        self.served = False
        self.resident = 0
        self._first_size = 0
        self._lock = threading.RLock()
        self._unanswered: deque[Confined] = deque()
        self._workers: weakref.WeakSet[Confined] = weakref.WeakSet()
        self._retired = False
        self._control, theirs = socket.socketpair()
        options = {"skip": sorted(skip), "guest": None if guest is None else str(guest)}
        try:
            self._process = _start(theirs.fileno(), json.dumps(options))
        except SandboxUnavailable:
            self._control.close()
            raise
        finally:
            theirs.close()
        self._end = weakref.finalize(self, _end, self._control, self._process)

    # --- its life ---------------------------------------------------------------------------------------------------

    @property
    def spoke(self) -> bool:
        """Whether there is something to hear from it, its end included."""
        return _readable(self._control)

    @property
    def alive(self) -> bool:
        """Whether it still holds its end of the socket."""
        return not _hung_up(self._control)

    def ready(self) -> Ready:
        """Wait for its first message and return it.

        Raises:
            SandboxUnavailable: It failed to start.
        """
        self._control.settimeout(_STARTS_WITHIN)
        try:
            data = self._control.recv(1 << 16)
        except TimeoutError:
            self._process.kill()
            self.end()
            raise SandboxUnavailable(f"the sandbox did not start within {_STARTS_WITHIN:.0f} s") from None
        except ConnectionError:
            data = b""
        message: dict[str, Any] = json.loads(data) if data else {"failed": "its process ended at once"}
        if "failed" in message:
            self.end()
            raise SandboxUnavailable(f"the sandbox did not start: {message['failed']}")
        self._control.settimeout(_ANSWERS_WITHIN)
        return Ready(message["ready"], message["broken"], message["python"])

    def retire(self) -> None:
        """End once the last of its workers is gone."""
        with self._lock:
            self._retired = True
            if not self._workers:
                self.end()

    def end(self) -> None:
        """End it and all of its workers, and wait until they are gone."""
        self._end()

    def forget(self) -> None:
        """Close what this process has of it, and leave it running: it is another process's."""
        self._end.detach()
        self._control.close()
        self._process.returncode = 0  # not this process's child, so there is nothing to wait for
        for worker in list(self._workers):
            worker.forget()

    # --- its workers ------------------------------------------------------------------------------------------------

    def fork(self, cpu: int, memory: int) -> Confined:
        """Ask for a worker and return it without waiting for it.

        Raises:
            ConnectionError: The zygote is dead.
        """
        ours, theirs = socket.socketpair()
        with theirs, self._lock:
            try:
                request = [REQUEST.pack(FORK, cpu, memory)]
                socket.send_fds(self._control, request, [theirs.fileno()], _NO_SIGNAL)
            except OSError as error:
                ours.close()
                raise ConnectionError(f"the zygote does not answer: {error}") from error
            worker = Confined(self, ours)
            self._unanswered.append(worker)
            self._workers.add(worker)
            self.forks += 1
            return worker

    def hear(self, until: Confined | None = None) -> None:
        """Take the answers that are there; with `until`, wait for that worker's. A dead zygote has none."""
        with self._lock:
            while self._unanswered and self._control.fileno() >= 0 and (until in self._unanswered or self.spoke):
                try:
                    data, handles, _, _ = socket.recv_fds(self._control, ANSWER.size, 1)
                except TimeoutError:
                    self._process.kill()  # it hangs, and whatever it forked ends with it
                    return
                except OSError:  # it died, or was ended from another thread
                    return
                if len(data) != ANSWER.size:
                    return
                number: int
                number, self.resident = ANSWER.unpack(data)
                self._first_size = self._first_size or self.resident
                self.served = self.served or number > 0
                self._unanswered.popleft().born(number if number > 0 else None, handles[0] if handles else None)

    @property
    def growth(self) -> int:
        """Bytes of memory it has taken since its first fork."""
        return self.resident - self._first_size

    def kill(self, number: int) -> None:
        """Let the zygote kill a worker, where the host cannot."""
        with self._lock, contextlib.suppress(OSError):
            self._control.sendall(REQUEST.pack(KILL, number, 0))

    def gone(self, worker: Confined) -> None:
        """Hear that a worker was closed."""
        with self._lock:
            self._workers.discard(worker)
            if self._retired and not self._workers:
                self.end()


def _start(descriptor: int, options: str) -> subprocess.Popen[bytes]:
    if not sys.executable:
        raise SandboxUnavailable(
            "there is no Python to start a sandbox with: sys.executable is empty",
            remedy="Set sys.executable to the path of the interpreter before the first program",
        )
    flags = ["-P", "-s", "-S", "-X", "utf8"]  # not -I, which would ignore the fixed seed of hashes
    flags += ["-B"] if sys.dont_write_bytecode else []
    command = [sys.executable, *flags, "-c", _BOOT, str(_WORKER), str(descriptor), options]
    try:
        return subprocess.Popen(
            command,
            env=_ENVIRONMENT,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(descriptor,),
            start_new_session=True,
        )
    except OSError as error:
        raise SandboxUnavailable(f"the sandbox's Python could not be started: {error}") from error


def _end(control: socket.socket, process: subprocess.Popen[bytes]) -> None:
    control.close()
    try:
        process.wait(_ENDS_WITHIN)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _readable(channel: socket.socket) -> bool:
    return bool(_poll(channel, select.POLLIN))


def _hung_up(channel: socket.socket) -> bool:
    return bool(_poll(channel, 0) & (select.POLLHUP | select.POLLERR | select.POLLNVAL))


def _poll(channel: socket.socket, events: int) -> int:
    poll = select.poll()
    poll.register(channel, events)
    found = poll.poll(0)
    return found[0][1] if found else 0
