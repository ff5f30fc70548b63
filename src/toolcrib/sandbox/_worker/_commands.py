"""The starter of commands: runs a command for each worker, each with the worker's channel as standard input.

Options: `control`, the descriptor of the host's requests; `command`, whose arguments may have `{folder}` in them, a
folder of the worker's own that is removed with it, and `{name}`, the name of that folder; `files`, texts by their
names in that folder; `folders_in`, where these folders are; `environment`. What a command says is written to this
process's standard error.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from ._control_groups import joined
from ._limits import Limits
from ._syscalls import prctl
from ._zygote import Requests, own_channel
from .launch import send_message

_DEATH_SIGNAL = 1


def main(options: dict[str, Any]) -> None:
    """Start commands until the host is gone; then all of them end. Does not return."""
    control = own_channel(options["control"])
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # both are inherited, and may be anything
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    send_message(control, {"ready": {}, "broken": {}, "joined": joined(control, options["groups"])})
    _Commands(control, options).run()


class _Commands(Requests):
    """Starts the commands, and ends what they started with them."""

    def __init__(self, control: Any, options: dict[str, Any]) -> None:
        super().__init__(control)
        self._command: list[str] = options["command"]
        self._files: dict[str, str] = options["files"]
        self._environment: dict[str, str] = options["environment"]
        self._base = tempfile.mkdtemp(prefix="toolcrib-", dir=options["folders_in"])
        self._folders: dict[int, str] = {}

    def start(self, limits: Limits, channel: int) -> int:
        folder = tempfile.mkdtemp(dir=self._base)
        for name, text in self._files.items():
            place = Path(folder, name)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text.replace("{folder}", folder))
        name = os.path.basename(folder)
        command = [part.replace("{folder}", folder).replace("{name}", name) for part in self._command]
        starter = os.getpid()
        worker = os.fork()
        if worker == 0:
            self._run_command(command, channel, starter)
        self._folders[worker] = folder
        return worker

    def _run_command(self, command: list[str], channel: int, starter: int) -> None:
        """Run a command; never returns."""
        try:
            os.setsid()
            with suppress(OSError, AttributeError):
                prctl(_DEATH_SIGNAL, signal.SIGKILL)
            if os.getppid() != starter:
                os._exit(1)
            for number in (signal.SIGTERM, signal.SIGPIPE):
                signal.signal(number, signal.SIG_DFL)
            os.dup2(channel, 0)
            os.closerange(3, 1024)
            os.execvpe(command[0], command, self._environment)
        except OSError as error:
            os.write(2, f"{command[0]}: {error.strerror}\n".encode())
        finally:
            os._exit(127)

    def signal(self, worker: int, number: int) -> None:
        """Signal a command and all that it started.

        Those at the bottom go on first: gVisor traces processes below its own, attaches to new threads of them as soon
        as it goes on, and dies of a signal that comes meanwhile.
        """
        found = _stopped_tree(worker) if number == signal.SIGKILL else list(_tree(worker))
        for process in reversed(found) if number == signal.SIGCONT else found:
            with suppress(OSError):
                os.kill(process, number)

    def ended(self, worker: int) -> None:
        shutil.rmtree(self._folders.pop(worker), ignore_errors=True)

    def end(self) -> None:
        for worker in self._living:
            with suppress(ChildProcessError):
                os.waitpid(worker, 0)
        shutil.rmtree(self._base, ignore_errors=True)
        super().end()


def _stopped_tree(root: int) -> list[int]:
    """Stop all processes below one, which then start no more, and return them."""
    found: list[int] = []
    while len(now := list(_tree(root))) > len(found):
        found = now
        for process in found:
            with suppress(OSError):
                os.kill(process, signal.SIGSTOP)
    return found


def _tree(root: int) -> Iterator[int]:
    """Yield a process and all below it, from the top."""
    children: dict[int, list[int]] = {}
    with suppress(OSError):  # a system without it
        for name in os.listdir("/proc"):
            if name.isdigit():
                with suppress(OSError):
                    stat = Path("/proc", name, "stat").read_text()
                    children.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(name))
    found = [root]
    for process in found:
        yield process
        found += children.get(process, [])
