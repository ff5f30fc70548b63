"""The zygote: a sealed process with all modules loaded, which forks a worker for each program and runs none itself.

Its first message is described in `launch`, the host's requests in `messages`.
"""

from __future__ import annotations

import array
import contextlib
import errno
import gc
import importlib
import importlib.util
import os
import select
import signal
import socket
import sys
from types import FrameType, ModuleType
from typing import Any

from ._control_groups import joined
from ._limits import Limits, end_first
from ._packages import PackageMissing, load_packages, room_for_caches
from ._paths import forget_paths
from ._seal import CHANNEL, Seal
from ._selftest import broken_layers
from ._syscalls import prctl
from .launch import send_message
from .messages import ANSWER, ENDED, FORK, REQUEST, SIGNAL


def main(options: dict[str, Any]) -> None:
    """Put the seal on, and fork workers until the host is gone. Does not return."""
    control = own_channel(options["control"])
    seal, entry = sealed(control, options, joined=joined(control, options["groups"]))
    _Zygote(control, seal, entry).run()


def own_channel(descriptor: int) -> socket.socket:
    """Return a channel by the number that it was passed as, under another number."""
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, os.dup(descriptor))
    channel.setblocking(True)  # gVisor passes on what it makes non-blocking for itself
    os.close(descriptor)  # the new number is low, however many the host has: see Seal.restrict
    return channel


def sealed(channel: socket.socket, options: dict[str, Any], **more: str) -> tuple[Seal, ModuleType]:
    """Load what programs use, put the seal on, and send the first message, with `more` in it."""
    gc.disable()  # nothing of what is loaded now is ever garbage
    try:
        seal, entry, broken = _seal_off(channel, options)
        send_message(channel, {"ready": seal.report, "broken": broken, **more})
    except PackageMissing as missing:
        send_message(channel, {"failed": str(missing), "remedy": missing.remedy})
        os._exit(1)
    except Exception as error:  # of the interpreter or of the entry's modules
        send_message(channel, {"failed": f"{type(error).__name__}: {error}"})
        os._exit(1)
    return seal, entry


def _seal_off(channel: socket.socket, options: dict[str, Any]) -> tuple[Seal, ModuleType, dict[str, str]]:
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # both are inherited, and may be anything
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # one to all processes of a service: the host ends in good order
    end_first()
    entry = _load(options.get("entry"))
    packages = options.get("packages", ())
    with room_for_caches() if packages else contextlib.nullcontext():
        load_packages(packages, options.get("folders", ()))
        entry.warm_up()
    sys.argv, sys.orig_argv = [""], [""]
    seal = Seal(frozenset(options.get("skip", ())))
    has_threads = _has_threads()
    if has_threads:  # of packages; a fork has none, and with threads no user namespace can be entered
        _wait_for_inner(channel)
    if seal.separate():
        _wait_for_inner(channel, is_inner=has_threads)
    seal.surround()
    with contextlib.suppress(OSError):
        prctl(1, signal.SIGKILL)  # die with the outer process, if there is one; a change of user would have undone it
    broken = broken_layers(seal)
    if seal.on("landlock") or seal.on("empty_root") or options["serve"] == "channel":
        forget_paths()
    gc.collect()
    gc.freeze()  # so that a worker's collections touch no page that it shares
    gc.enable()
    return seal, entry, broken


def _load(entry: str | None) -> ModuleType:
    """Return the module that serves in the workers: the one of this package, or the one in a file."""
    if entry is None:
        return importlib.import_module("._entry", __package__)
    spec = importlib.util.spec_from_file_location("entry", entry)
    if spec is None or spec.loader is None:
        raise ImportError(f"{entry} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _has_threads() -> bool:
    try:
        return len(os.listdir("/proc/self/task")) > 1
    except OSError:  # not Linux
        return False


def _wait_for_inner(channel: socket.socket, *, is_inner: bool = False) -> None:
    """Continue in a child, which is the first of its process namespace; this process only waits for it, and ends.

    Args:
        is_inner: Whether this process is itself one that another waits for, with which it dies.
    """
    inner = os.fork()
    if inner == 0:
        return
    channel.close()
    with contextlib.suppress(OSError):
        prctl(4, 0)
        if is_inner:
            prctl(1, signal.SIGKILL)
    _, status = os.waitpid(inner, 0)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)  # as a shell says it


def _wake_up(_number: int, _frame: FrameType | None) -> None:
    """Return at once: having a handler is what makes the signal write to the wakeup descriptor."""


class Requests:
    """Answers the host's requests, one after the other, and collects workers that have ended."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._living: dict[int, Limits] = {}

    def run(self) -> None:
        """Answer until the host closes its end or dies; then every worker dies, too. Does not return."""
        try:
            self._run()
        finally:
            os._exit(1)

    def _run(self) -> None:
        awake, wake = socket.socketpair()
        awake.setblocking(False)
        wake.setblocking(False)
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _wake_up)
        poll = select.poll()
        poll.register(awake, select.POLLIN)
        poll.register(self._control, select.POLLIN)
        while True:
            events = dict(poll.poll())
            if awake.fileno() in events:
                self._reap(awake)
            if self._control.fileno() in events and not self._answer():
                break
        for worker in self._living:
            self.signal(worker, signal.SIGKILL)
        self.end()

    def start(self, limits: Limits, channel: int) -> int:
        """Start a worker on a channel, and return its number."""
        raise NotImplementedError

    def signal(self, worker: int, number: int) -> None:
        """Signal a worker that is there."""
        os.kill(worker, number)

    def exit_code(self, status: int, computed: float, limits: Limits) -> int:
        """Return the exit code of a worker that has ended, given its status and the seconds that it computed."""
        return os.waitstatus_to_exitcode(status)

    def ended(self, worker: int) -> None:
        """Clear up after a worker."""

    def end(self) -> None:
        """Clear up, and end this process."""
        os._exit(0)

    def _reap(self, awake: socket.socket) -> None:
        with contextlib.suppress(BlockingIOError):
            awake.recv(4096)
        with contextlib.suppress(ChildProcessError):
            while (ended := os.wait4(-1, os.WNOHANG))[0] != 0:
                worker, status, usage = ended
                limits = self._living.pop(worker, None)
                if limits is not None:
                    code = self.exit_code(status, usage.ru_utime + usage.ru_stime, limits)
                    with contextlib.suppress(OSError):  # the host reads none, and must not hold up what it asks for
                        self._control.send(ANSWER.pack(ENDED, worker, code), socket.MSG_DONTWAIT)
                    self.ended(worker)

    def _answer(self) -> bool:
        try:
            data, descriptors, _, _ = socket.recv_fds(self._control, REQUEST.size, 1)
        except ConnectionError:
            return False
        if len(data) != REQUEST.size:
            return False
        request, first, second = REQUEST.unpack(data)
        if request == SIGNAL:
            if first in self._living:
                self.signal(first, second)
        elif descriptors:
            self._start(Limits(first, second), descriptors[0])
        for descriptor in descriptors:
            os.close(descriptor)
        return True

    def _start(self, limits: Limits, channel: int) -> None:
        try:
            worker = self.start(limits, channel)
        except OSError as error:
            self._control.sendall(ANSWER.pack(FORK, -(error.errno or errno.EAGAIN), 0))
            return
        self._living[worker] = limits
        answer = ANSWER.pack(FORK, worker, 0)
        try:
            handle = os.pidfd_open(worker)
        except (AttributeError, OSError):  # not Linux, or too old
            self._control.sendall(answer)
            return
        rights = array.array("i", [handle])
        self._control.sendmsg([answer], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        os.close(handle)


class _Zygote(Requests):
    """Forks the workers, each under the whole seal."""

    def __init__(self, control: socket.socket, seal: Seal, entry: ModuleType) -> None:
        super().__init__(control)
        self._seal, self._entry = seal, entry
        self._number = os.getpid()

    def start(self, limits: Limits, channel: int) -> int:
        mapped = self._seal.mapped.read()
        worker = os.fork()
        if worker == 0:
            try:
                self._seal.detach(self._number)
                self._seal.restrict(channel)
                self._seal.limit(limits, mapped)
                self._seal.filter()
                self._entry.serve(CHANNEL)
                os._exit(0)
            finally:
                os._exit(1)
        return worker

    def exit_code(self, status: int, computed: float, limits: Limits) -> int:
        code = os.waitstatus_to_exitcode(status)
        is_late = (
            code == -signal.SIGKILL and computed >= limits.cpu
        )  # the kernel's own, after a SIGXCPU that it ignored
        return -signal.SIGXCPU if is_late else code
