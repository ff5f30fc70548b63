"""Sandboxes of processes: full Python, each program in a worker that the kernel keeps from everything else."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial
from pathlib import Path
from typing import Final, Literal

from toolcrib.errors import explain_options
from toolcrib.sandbox._control_group import CONTROL_GROUP, named_group
from toolcrib.sandbox._layers import LAYERS
from toolcrib.sandbox._packages import Packages
from toolcrib.sandbox._program_queue import ProgramQueue, queue_of
from toolcrib.sandbox._worker_pool import WorkerPool
from toolcrib.sandbox._worker_sandbox import IDLE, WorkerSandbox

_NO_ISOLATION: Final = "no-isolation: files and network can be reached"


@explain_options()
class ProcessSandbox(WorkerSandbox):
    """Runs programs in full Python, each in a process that cannot reach files, network, or other processes.

    It needs Linux, and no privilege. The processes are forked from one that is kept warm, so that a program begins in
    about a millisecond. The kernel limits a program, and nothing that it finds in the interpreter changes that;
    `SandboxResult.isolation` names the layers in force.

    Args:
        require: The layers without which nothing runs; `a|b` is either, `"all"` is every layer but `cgroup`. None for
            no_new_privs, seccomp, rlimits, and one of landlock and empty_root; what else is lacking is a warning in the
            log.
        skip: Layers to leave off, to try the others alone.
        spares: Processes that are forked ahead.
        queue: The places for programs, by default 64 of its own; several sandboxes may share one.
        session_idle: Seconds after which a session that runs no program ends; None for no such limit.
        packages: Modules of installed packages that programs may import, beside Python's own: `["numpy", "pandas"]`.
            They are loaded before the sandbox is sealed; a part that a package loads late is named too: `scipy.stats`.
        packages_from: The folder of another environment, of the same version of Python, in which the packages lie;
            None for the one of this process.
        cgroup: The folder of a control group that you have made, with its limits: all programs belong to it. By default
            a queue with `most_memory` makes one, where this process may.
        keep_values: Keep the plain values that the programs of a session leave, for the case that its process is lost.
    """

    _takes_at_once = True

    def __init__(
        self,
        *,
        require: Iterable[str] | Literal["all"] | None = None,
        skip: Collection[str] = (),
        spares: int = 2,
        queue: ProgramQueue | None = None,
        session_idle: float | None = IDLE,
        keep_values: bool = False,
        cgroup: str | Path | None = None,
        packages: Iterable[str] = (),
        packages_from: str | Path | None = None,
    ) -> None:
        chosen = Packages.of(packages, packages_from)
        required = LAYERS if require == "all" else require
        queue = queue_of(queue)
        group = None if CONTROL_GROUP in skip else queue.group
        pool = WorkerPool(
            require=None if required is None else frozenset(required),
            skip=frozenset(skip),
            spares=spares,
            warn=True,
            group=group if cgroup is None else partial(named_group, cgroup),
            packages=chosen,
        )
        super().__init__(
            pool, "process", packages=chosen.tops, queue=queue, session_idle=session_idle, keep_values=keep_values
        )


class SubprocessSandbox(WorkerSandbox):
    """Runs programs in a process of their own that is NOT kept in: for programs as trusted as your own code.

    A program that computes too long, needs too much memory, or crashes takes nothing else with it. But it can read and
    write every file that you can, use the network, and start and end processes. It is chosen by name only, and each
    result says so.

    Args:
        spares: Processes that are forked ahead.
    """

    _notes = (_NO_ISOLATION,)
    _takes_at_once = True

    def __init__(self, *, spares: int = 2) -> None:
        pool = WorkerPool(require=frozenset(), skip=frozenset(LAYERS) - {"rlimits"}, spares=spares)
        super().__init__(pool, "subprocess")
