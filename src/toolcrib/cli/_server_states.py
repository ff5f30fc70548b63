"""States of the servers behind `toolcrib serve`, kept for the console while it runs."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import asdict
from datetime import timedelta
from functools import partial
from typing import Any

from toolcrib.adapters.mcp_client import ServerStatus, server_statuses
from toolcrib.calls import now
from toolcrib.database import SqliteError
from toolcrib.serving import ServerStates
from toolcrib.toolsets import Toolset, sources_of

_log = logging.getLogger("toolcrib.adapters")
_LOOK_SECONDS, _SAY_SECONDS = 1.0, 10.0  # between two looks at the servers; between two signs of life


class GatewayStates:
    """The states of this process's servers, kept in a database.

    Args:
        toolsets: The tools that it serves, at each of its endpoints.
        name: The name of the gateway.
        states: The store of the states; None where the console cannot read it.
    """

    def __init__(self, toolsets: Sequence[Toolset], name: str, states: ServerStates | None) -> None:
        self._toolsets, self._states = toolsets, states if any(map(sources_of, toolsets)) else None
        self._gateway = f"{name} (process {os.getpid()} on {socket.gethostname()})"

    async def during(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` to its end, and keep the states meanwhile."""
        saying = asyncio.create_task(self._say_always(), name="toolcrib: states of servers")
        try:
            await work
        finally:
            saying.cancel()
            await asyncio.wait({saying})
            self.forget()

    def forget(self) -> None:
        """Remove the state of the gateway, as it ends."""
        if self._states is not None:
            self._try(partial(self._states.forget, self._gateway))

    async def _say_always(self) -> None:
        last, waited = list[dict[str, Any]](), _SAY_SECONDS
        while self._states is not None:
            found = [_view(status) for toolset in self._toolsets for status in server_statuses(toolset)]
            if found != last or waited >= _SAY_SECONDS:
                await asyncio.to_thread(self._try, partial(self._states.keep, self._gateway, found))
                last, waited = found, 0.0
            await asyncio.sleep(_LOOK_SECONDS)
            waited += _LOOK_SECONDS

    def _try(self, work: Callable[[], None]) -> None:
        try:
            work()
        except SqliteError as error:  # the console shows old states; the calls go on
            _log.warning("the states of the servers are not kept for the console: %s", error)


def _view(status: ServerStatus) -> dict[str, Any]:
    """Return a status as JSON shapes."""
    since = None if status.since is None else status.since.isoformat()
    next_try = (now() + timedelta(seconds=status.retry_in)).isoformat(timespec="seconds") if status.retry_in else None
    view = {**asdict(status), "since": since, "changed": list(status.changed), "next_try": next_try}
    del view["retry_in"]
    return view
