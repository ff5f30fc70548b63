"""The host's end of a zygote: starts it, asks it for workers, and ends it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO, Any, Final

from toolcrib.errors import SandboxUnavailable
from toolcrib.sandbox._control_group import CONTROL_GROUP, ControlGroup
from toolcrib.sandbox._worker.launch import ENVIRONMENT, command, read_message, version
from toolcrib.sandbox._worker.messages import ANSWER, ENDED, FORK, REQUEST, SIGNAL
from toolcrib.sandbox._worker_end import LOST_WITH_ALL, NOTHING, Usage, WorkerEnd, usage_of, worker_end

_START_SECONDS: Final = 60.0  # packages take a while, also where they are loaded behind a wall
_END_SECONDS: Final = 5.0
_ANSWER_SECONDS: Final = 5.0
_NO_SIGNAL: Final[int] = getattr(socket, "MSG_NOSIGNAL", 0)


@dataclass(frozen=True, slots=True)
class Ready:
    """The first message of a guest.

    Attributes:
        layers: The states of layers.
        broken: Those that the self-test found broken.
        joined: `on` when it has joined the control group, or why not.
    """

    layers: dict[str, str]
    broken: dict[str, str]
    joined: str = ""


def ready(channel: socket.socket, *, is_own: bool = False, seconds: float = _START_SECONDS) -> Ready:
    """Wait for the first message of a guest and return it.

    Args:
        is_own: Whether it is of this very process's Python and files.
        seconds: How long that may take.

    Raises:
        SandboxUnavailable: The guest failed to start, or is another version.
    """
    try:
        message = read_message(channel, seconds)
    except TimeoutError:
        raise SandboxUnavailable(f"the sandbox did not start within {seconds:.0f} s") from None
    except (EOFError, OSError):
        raise SandboxUnavailable("the sandbox did not start: its process ended at once") from None
    except ValueError as error:
        raise SandboxUnavailable(
            f"the sandbox did not start: it sent something that is not a message of a guest ({error})"
        ) from None
    if "failed" in message:
        raise SandboxUnavailable(f"the sandbox did not start: {message['failed']}", remedy=message.get("remedy", ""))
    if not is_own and message.get("version") != version():
        raise SandboxUnavailable(
            f"the guest is {message.get('version')}, and this is {version()}",
            remedy="Give the guest the same version of Python, and the folder toolcrib.sandbox.GUEST as it is here",
        )
    return Ready(message["ready"], message["broken"], message.get("joined", ""))


class WorkerProcess:
    """A worker under its seal, which waits on `socket` for the first frame.

    Attributes:
        socket: The host's end of the worker's one channel, a blocking stream socket. Once the worker is dead it is at
            its end, or raises ConnectionResetError where the worker left something unread.
        on_close: Called once the worker is closed.
        ready: Its first message, once that was read, where it sends one itself.
    """

    __slots__ = ("__weakref__", "_end", "_handle", "_number", "_zygote", "on_close", "ready", "socket")

    def __init__(self, zygote: Zygote, channel: socket.socket) -> None:
        self.socket = channel
        self.on_close: Callable[[], None] | None = None
        self.ready: Ready | None = None
        self._zygote: Zygote | None = zygote
        self._number: int | None = None
        self._handle: int | None = None
        self._end: WorkerEnd | None = None

    def kill(self) -> None:
        """End the worker at once; nothing happens when it has ended."""
        self._send(signal.SIGKILL)

    def stop(self) -> None:
        """Stop all threads of the worker where they are, until it is to go on."""
        self._send(signal.SIGSTOP)

    def go_on(self) -> None:
        """Resume a stopped worker."""
        self._send(signal.SIGCONT)

    def usage(self) -> Usage:
        """Return the processor seconds and the number of threads of the worker; `NOTHING` for a command."""
        if self._zygote is not None and self._zygote.signals_trees:
            return NOTHING
        if self._zygote is not None and self._number is None:
            self._zygote.read_answers(until=self)
        return NOTHING if self._handle is None else usage_of(self._handle)

    def ending(self) -> WorkerEnd | None:
        """Return how the worker ended; None while it lives, or as long as that is not known."""
        zygote = self._zygote
        if self._end is None and zygote is not None:
            is_lost = not zygote.alive
            zygote.read_answers()
            if is_lost and self._end is None:
                return LOST_WITH_ALL
        return self._end

    def _send(self, number: int) -> None:
        if self._zygote is None:
            return
        if self._number is None:
            self._zygote.read_answers(until=self)
        if self._number is not None and (self._zygote.signals_trees or not self._signal(number)):
            self._zygote.signal(self._number, number)

    def _signal(self, number: int) -> bool:
        """Signal the worker; return False where the host has no handle of it, or no right to."""
        if self._handle is None:
            return False
        try:
            signal.pidfd_send_signal(self._handle, number)
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
        self._signal(signal.SIGKILL)  # it was not closed
        self.forget()

    def close(self) -> None:
        """Kill the worker and give back what it held of the host; more than once is fine."""
        zygote = self._zygote
        if zygote is None:
            return
        self.kill()
        self.forget()
        zygote.remove(self)
        if self.on_close is not None:
            self.on_close()

    def forget(self) -> None:
        """Close the descriptors and leave the worker alone: it is another process's."""
        self._zygote = None
        self.socket.close()
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    @property
    def alive(self) -> bool:
        """True while the worker holds its end of the socket."""
        return not _hung_up(self.socket)

    def started(self, number: int | None, handle: int | None) -> None:
        """Read the zygote's answer; no number when the worker could not be forked."""
        self._number, self._handle = number, handle

    def set_end(self, end: WorkerEnd) -> None:
        """Set how the worker ended, as the zygote reports it."""
        self._end = end


class Zygote:
    """A running zygote, or starter of commands; its methods may be called from any thread.

    Args:
        options: The options that it serves with; see `_worker/__main__.py`.
        group: The control group that it joins.
        errors: A file for what it, and what it starts, says.

    Attributes:
        served: Whether it has forked at least one worker.
        signals_trees: Whether a worker is a command, with all that it starts, which only the zygote knows.
    """

    def __init__(
        self, options: Mapping[str, Any], group: ControlGroup | None = None, errors: IO[bytes] | None = None
    ) -> None:
        self.served = self._is_filtered = False
        self.signals_trees = options["serve"] == "commands"
        self._group = group
        options = {**options, "groups": {} if group is None else group.folders}
        self._lock = threading.RLock()
        self._unanswered: deque[WorkerProcess] = deque()
        self._workers: weakref.WeakSet[WorkerProcess] = weakref.WeakSet()
        self._numbered: weakref.WeakValueDictionary[int, WorkerProcess] = weakref.WeakValueDictionary()
        self._control, theirs = socket.socketpair()
        try:
            self._process = _start(theirs.fileno(), options, errors)
        except SandboxUnavailable:
            self._control.close()
            raise
        finally:
            theirs.close()
        self._end = weakref.finalize(self, _end, self._control, self._process)

    # --- start and end ----------------------------------------------------------------------------------------------

    @property
    def alive(self) -> bool:
        """True while the zygote holds its end of the socket."""
        return self._control.fileno() >= 0 and not _hung_up(self._control)

    def ready(self) -> Ready:
        """Wait for the first message and return it.

        Raises:
            SandboxUnavailable: The zygote failed to start.
        """
        try:
            first = ready(self._control, is_own=True)
            self._is_filtered = first.layers.get("seccomp") == "on"
            if self._group is not None:
                first.layers[CONTROL_GROUP] = self._group.checked(first.joined)
        except SandboxUnavailable:
            self._process.kill()
            self.end()
            raise
        self._control.settimeout(_ANSWER_SECONDS)
        return first

    def end(self) -> None:
        """End the zygote and all of its workers, and wait until they are gone."""
        self._end()

    def forget(self) -> None:
        """Close the descriptors and leave the zygote alone: it is another process's."""
        self._end.detach()
        self._control.close()
        self._process.returncode = 0  # not this process's child, so there is nothing to wait for
        for worker in list(self._workers):
            worker.forget()

    # --- its workers ------------------------------------------------------------------------------------------------

    def fork(self, cpu: int, memory: int) -> WorkerProcess:
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
            worker = WorkerProcess(self, ours)
            self._unanswered.append(worker)
            self._workers.add(worker)
            return worker

    def read_answers(self, until: WorkerProcess | None = None) -> None:
        """Read the answers that are there; with `until`, wait for that worker's. A dead zygote has none."""
        with self._lock:
            while self._control.fileno() >= 0 and (until in self._unanswered or _poll(self._control, select.POLLIN)):
                try:
                    data, handles, _, _ = socket.recv_fds(self._control, ANSWER.size, 1)
                except TimeoutError:
                    self._process.kill()  # it hangs, and its workers end with it
                    return
                except OSError:  # it died, or was ended from another thread
                    return
                if len(data) != ANSWER.size:
                    return
                kind, number, code = ANSWER.unpack(data)
                if kind == ENDED:
                    worker = self._numbered.pop(number, None)  # None: it was closed
                    if worker is not None:
                        end = worker_end(code, is_command=self.signals_trees, is_sealed=self._is_filtered)
                        worker.set_end(end)
                    continue
                self.served = self.served or number > 0
                worker = self._unanswered.popleft()
                worker.started(number if number > 0 else None, handles[0] if handles else None)
                if number > 0:
                    self._numbered[number] = worker

    def signal(self, worker: int, number: int) -> None:
        """Ask the zygote to signal a worker that the host cannot signal."""
        with self._lock, contextlib.suppress(OSError):
            self._control.sendall(REQUEST.pack(SIGNAL, worker, number))

    def remove(self, worker: WorkerProcess) -> None:
        """Forget a worker that was closed."""
        with self._lock:
            self._workers.discard(worker)


def _start(descriptor: int, options: Mapping[str, Any], errors: IO[bytes] | None) -> subprocess.Popen[bytes]:
    if not sys.executable:
        raise SandboxUnavailable(
            "there is no Python to start a sandbox with: sys.executable is empty",
            remedy="Set sys.executable to the path of the interpreter before the first program",
        )
    try:
        return subprocess.Popen(
            command({**options, "control": descriptor}),
            env=ENVIRONMENT,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors or subprocess.DEVNULL,
            pass_fds=(descriptor,),
            start_new_session=True,
        )
    except OSError as error:
        raise SandboxUnavailable(f"the sandbox's Python could not be started: {error}") from error


def _end(control: socket.socket, process: subprocess.Popen[bytes]) -> None:
    control.close()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _hung_up(channel: socket.socket) -> bool:
    return bool(_poll(channel, 0) & (select.POLLHUP | select.POLLERR | select.POLLNVAL))


def _poll(channel: socket.socket, events: int) -> int:
    poll = select.poll()
    poll.register(channel, events)
    found = poll.poll(0)
    return found[0][1] if found else 0
