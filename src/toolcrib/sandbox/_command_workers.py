"""Workers behind a wall that a program puts up: bubblewrap, gVisor, or any command that keeps its standard input."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from toolcrib.errors import SandboxError, SandboxUnavailable, explain_options
from toolcrib.sandbox._control_group import named_group
from toolcrib.sandbox._layers import LayerCheck
from toolcrib.sandbox._packages import Packages
from toolcrib.sandbox._program_queue import ProgramQueue
from toolcrib.sandbox._worker.launch import ENVIRONMENT, send_message
from toolcrib.sandbox._worker_pool import WorkerStock
from toolcrib.sandbox._worker_sandbox import WorkerSandbox
from toolcrib.sandbox._workers import GUEST, guest_command
from toolcrib.sandbox._zygote import WorkerProcess, ready

_SAID: Final = 2_000  # bytes of what a command said that are shown
_LIBRARIES: Final = ("/usr", "/lib", "/lib64")
_ENVIRONMENTS: Final = ("site-packages", "dist-packages")
_NOBODY: Final = 65534


@explain_options()
class CommandWorkers(WorkerStock):
    """Workers that are each started by a command, which puts up a wall and runs `guest_command()` inside.

    The worker's channel is the command's standard input. Every command ends with its worker, with the pool, and with
    the process of the host. In its arguments `{folder}` is a folder of its own, which is removed after its end, and
    `{name}` is the name of that folder.

    Args:
        command: The program and its arguments.
        files: Texts by their names in `{folder}`, in which that is replaced, too.
        environment: Variables of the command, beside a PATH.
        require: Layers inside the wall without which nothing runs; `a|b` is either.
        spares: How many workers are started ahead.
        cgroup: The folder of a control group that you have made, with its limits: all workers belong to it.
        remedy: The advice for a host where the program is not installed.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        files: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        require: Iterable[str] = ("rlimits",),
        spares: int = 2,
        cgroup: str | Path | None = None,
        remedy: str = "Install it, or give its path",
    ) -> None:
        output = tempfile.TemporaryFile("a+b")  # noqa: SIM115 -- for as long as the pool is there
        weakref.finalize(self, output.close)
        self._program, self._remedy, self._output = command[0], remedy, output
        path = {"PATH": os.environ.get("PATH", os.defpath)}
        options = {
            "serve": "commands",
            "command": [*command],
            "files": dict(files or {}),
            "folders_in": tempfile.gettempdir(),
            "environment": path | ENVIRONMENT | dict(environment or {}),
        }
        group = partial(named_group, cgroup)
        super().__init__(options, LayerCheck(frozenset(require)), spares, for_limits=False, group=group, errors=output)

    def start(self) -> None:
        """Start a first worker, unless that was done.

        Raises:
            SandboxUnavailable: The program is not there, or starts no worker; the message says what it said.
        """
        if self.layers:
            return
        if shutil.which(self._program) is None:
            raise SandboxUnavailable(f"there is no program `{self._program}` here", remedy=self._remedy)
        worker = super().take(1, 1)
        self._await(worker)
        self._spares.append(worker)

    def take(self, cpu: int, memory: int) -> WorkerProcess:
        """Return a worker that has started, a spare one if there is one.

        Raises:
            SandboxError: The pool was closed, or workers die before they are used.
            SandboxUnavailable: The wall cannot be put up.
        """
        for _ in range(self._stock + 1):  # spares may have died together, for instance when memory ran out
            worker = super().take(cpu, memory)
            self._await(worker)
            try:
                send_message(worker.socket, {"cpu": cpu, "memory": memory})
            except OSError:
                worker.close()
            else:
                return worker
        raise SandboxError(f"the workers of `{self._program}` die before they are used{self._said_last()}")

    def _await(self, worker: WorkerProcess) -> None:
        """Wait until a worker has started and said what holds."""
        if worker.ready is not None:
            return
        try:
            worker.ready = ready(worker.socket)
            self._check.take(worker.ready)
        except SandboxUnavailable as error:
            worker.close()
            raise SandboxUnavailable(f"{error.problem}{self._said_last()}", error.layer, error.remedy) from None

    def last_words(self) -> str:
        """Return the end of what the commands said since this was asked last; empty for nothing."""
        size = self._output.seek(0, os.SEEK_END)
        text = os.pread(self._output.fileno(), _SAID, max(0, size - _SAID)).decode(errors="replace").strip("\0 \n")
        self._output.truncate(0)
        return text

    def _said_last(self) -> str:
        words = self.last_words()
        return f". `{self._program}` said: {words}" if words else ""


def _seen_inside(packages: Packages) -> list[str]:
    """Return the folders that a Python inside a wall needs to see."""
    environments = [folder for folder in packages.folders if Path(folder).name in _ENVIRONMENTS]
    found: list[str] = []
    for folder in (*_LIBRARIES, sys.base_prefix, str(GUEST), *environments):
        if os.path.isdir(folder) and not any(Path(folder).is_relative_to(other) for other in found):
            found.append(folder)
    return found


def _guest(packages: Packages) -> list[str]:
    python = os.path.realpath(sys.executable)
    return guest_command(python, packages=packages.names, folders=packages.folders)


@explain_options()
def bubblewrap(*, packages: Iterable[str] = (), queue: ProgramQueue | None = None, **options: Any) -> WorkerSandbox:
    """Return a sandbox whose programs each run in a container of bubblewrap's, which sees no file but those of Python.

    It needs Linux and `bwrap`. Inside, the worker puts on the layers of `ProcessSandbox` that the wall leaves to it.

    Args:
        packages: Modules of installed packages that programs may import; see `ProcessSandbox`.
        queue: The places for programs.
        options: Those of `CommandWorkers`.
    """
    chosen = Packages.of(packages, None)
    mounts = [part for folder in _seen_inside(chosen) for part in ("--ro-bind", folder, folder)]
    variables = [part for name, value in ENVIRONMENT.items() for part in ("--setenv", name, value)]
    user = ("--unshare-user", "--uid", str(_NOBODY), "--gid", str(_NOBODY), "--cap-drop", "ALL")
    apart = ("--unshare-all", *user, "--die-with-parent", "--new-session", "--clearenv", *variables)
    files = ("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", *mounts, "--remount-ro", "/", "--chdir", "/")
    remedy = "Install it, for instance with: apt install bubblewrap"
    workers = CommandWorkers(["bwrap", *apart, *files, "--", *_guest(chosen)], remedy=remedy, **options)
    return WorkerSandbox(workers, "bubblewrap", packages=chosen.tops, queue=queue)


@explain_options()
def gvisor(
    *,
    packages: Iterable[str] = (),
    flags: Iterable[str] = (),
    queue: ProgramQueue | None = None,
    **options: Any,
) -> WorkerSandbox:
    """Return a sandbox whose programs each have a kernel of gVisor's, and no network and no file but those of Python.

    It needs Linux and `runsc`, and no daemon. Inside, the worker puts on the layers that gVisor knows.

    Args:
        packages: Modules of installed packages that programs may import; see `ProcessSandbox`.
        flags: Flags of `runsc`, such as `--platform=kvm`.
        queue: The places for programs.
        options: Those of `CommandWorkers`.
    """
    chosen = Packages.of(packages, None)
    rootless = [] if os.geteuid() == 0 else ["--rootless"]
    command = ["runsc", "--root", "{folder}/state", "--network=none", "--ignore-cgroups", *rootless, *flags]
    files = {"config.json": json.dumps(_container(_guest(chosen), _seen_inside(chosen))), "root/empty": ""}
    remedy = "Install gVisor, for instance with: apt install runsc"
    workers = CommandWorkers([*command, "run", "--bundle", "{folder}", "{name}"], files=files, remedy=remedy, **options)
    return WorkerSandbox(workers, "gvisor", packages=chosen.tops, queue=queue)


def _container(command: list[str], folders: list[str]) -> dict[str, Any]:
    """Return the description of a container in the format of the Open Container Initiative."""
    mounts = [
        {"destination": folder, "source": folder, "type": "bind", "options": ["ro", "rbind"]} for folder in folders
    ]
    return {
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": _NOBODY, "gid": _NOBODY},
            "args": command,
            "env": [f"{name}={value}" for name, value in ENVIRONMENT.items()],
            "cwd": "/",
            "capabilities": {},
            "noNewPrivileges": True,
        },
        "root": {"path": "{folder}/root", "readonly": True},
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["mode=1777"]},
            *mounts,
        ],
        "linux": {"namespaces": [{"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount")]},
    }
