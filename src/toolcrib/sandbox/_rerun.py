"""The replay of programs in a sandbox that cannot resume them: they are run again from their start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from toolcrib.sandbox._protocol import Dialect, HasDialect, Host, Program, Resumable, Sandbox, SandboxResult


class ReplaySandbox:
    """Runs programs in another sandbox, and resumes one by running it from its start.

    The host gives the calls that were made the replies that they had. A program that does something else then, because
    of the time or of random numbers, is ended.

    Args:
        sandbox: Where the programs run.
    """

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    @property
    def engine(self) -> str:
        """The sandbox's own name and version, or its class."""
        name = self._sandbox.engine if isinstance(self._sandbox, Resumable) else type(self._sandbox).__name__
        return f"{name} again"

    @property
    def replays(self) -> bool:
        """True: a resumed program asks for every call once more."""
        return True

    @property
    def dialect(self) -> Dialect:
        """The dialect of the other sandbox."""
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
    """Return a sandbox whose programs can be resumed after a crash: this one, or one around it."""
    return sandbox if isinstance(sandbox, Resumable) and sandbox.replays else ReplaySandbox(sandbox)
