"""The protocol of workers: where programs run, whichever wall is around them."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any, Final, Protocol, runtime_checkable

from toolcrib.sandbox._worker.launch import FOLDER, command
from toolcrib.sandbox._worker_end import Usage, WorkerEnd

GUEST: Final = Path(FOLDER)
"""The folder of the guest, all that must be seen inside a wall beside a Python of the same version."""


def guest_command(python: str | None = None, folder: str | Path = GUEST, **options: Any) -> list[str]:
    """Return the command that serves programs on its standard input, which has to be a worker's socket.

    Args:
        python: The interpreter inside the wall; None for that of this process.
        folder: Where `GUEST` is inside the wall.
        options: `skip`: names of layers that are not to be put on.
    """
    return command({"serve": "channel", **options}, python, str(folder))


class Worker(Protocol):
    """A guest that waits for the first frame of a program."""

    @property
    def socket(self) -> socket.socket:
        """The host's end of its channel: a blocking stream socket, which is at its end once the worker is dead."""
        ...

    def kill(self) -> None:
        """End the worker at once, from any thread; nothing happens when it has ended."""
        ...

    def close(self) -> None:
        """Kill the worker and give back what it held of the host; more than once is fine."""
        ...


@runtime_checkable
class StoppableWorker(Protocol):
    """A worker whose threads can be stopped between the programs of a session; of others they go on."""

    def stop(self) -> None:
        """Stop all threads of the worker where they are, until it is to go on."""
        ...

    def go_on(self) -> None:
        """Resume a stopped worker."""
        ...


@runtime_checkable
class MeasuredWorker(Protocol):
    """A worker of which the host sees what its threads compute while the program waits; others have their own limit."""

    def usage(self) -> Usage:
        """Return the seconds that the worker has computed so far, and how many threads it has."""
        ...


@runtime_checkable
class ReportingWorker(Protocol):
    """A worker of which the host learns how its process ended; the end of others may be from outside."""

    def ending(self) -> WorkerEnd | None:
        """Return how the worker ended; None while it lives, or as long as that is not known."""
        ...


@runtime_checkable
class SpeakingWorkers(Protocol):
    """Workers whose wall writes what goes wrong to its standard error, which the host keeps."""

    def last_words(self) -> str:
        """Return the end of what the wall said since this was asked last; empty for nothing."""
        ...


class Workers(Protocol):
    """Workers of one kind, one for each program; its methods are called from any thread, and may block."""

    @property
    def layers(self) -> tuple[str, ...]:
        """The layers that hold in each worker beside the wall itself, by name; known after the start."""
        ...

    def start(self) -> None:
        """Start, unless that was done.

        Raises:
            SandboxUnavailable: There can be no workers here; the message names the remedy.
        """
        ...

    def take(self, cpu: int, memory: int) -> Worker:
        """Return a worker.

        Args:
            cpu: Seconds it may compute.
            memory: Bytes it may take on top of what it has at its start.

        Raises:
            SandboxError: No worker can be started.
        """
        ...

    def close(self) -> None:
        """End all workers, those that were taken included."""
        ...
