"""ReplaySandbox: a sandbox whose programs are taken up by running them from their start, whatever it does by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from toolcrib.sandbox._protocol import Dialect, HasDialect, Host, Program, Resumable, Sandbox, SandboxResult

__all__ = ["ReplaySandbox", "replayable"]


class ReplaySandbox:
    """Runs programs in another sandbox, and takes one up by running it from its start.

    The host answers the calls that were made as they were answered then. A program that does something else then,
    because of the time or of chance, is ended.

    Args:
        sandbox: Where they run.
    """

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    @property
    def engine(self) -> str:
        """The sandbox's own name and version, or its class."""
        named = self._sandbox.engine if isinstance(self._sandbox, Resumable) else type(self._sandbox).__name__
        return f"{named} again"

    @property
    def replays(self) -> bool:
        """Every call is asked for once more."""
        return True

    @property
    def dialect(self) -> Dialect:
        """What programs find there."""
        return self._sandbox.dialect if isinstance(self._sandbox, HasDialect) else Dialect()

    async def run(self, program: Program, host: Host) -> SandboxResult:
        """Run a program to its end; see `Sandbox.run`."""
        ended = await self._sandbox.run(program, host)
        is_paused = ended.error is not None and ended.error.kind == "paused"
        return replace(ended, state={} if is_paused else None)

    async def resume(self, program: Program, state: Mapping[str, Any], host: Host) -> SandboxResult:
        """Run a program again from its start."""
        return await self.run(program, host)


def replayable(sandbox: Sandbox) -> Sandbox:
    """Return a sandbox whose programs can be taken up after a crash: this one, or one around it."""
    return sandbox if isinstance(sandbox, Resumable) and sandbox.replays else ReplaySandbox(sandbox)
