"""Pace of what a server sends without being asked: a storm of it costs bounded memory, and delays nothing."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, Final, Protocol, Self

import mcp_types as types
from mcp.shared.message import SessionMessage

from toolcrib.clock import Clock
from toolcrib.schema import Progress

_REPORTS, _REPORTS_A_SECOND = 100, 20.0  # of the progress of one call
_MAX_LINE: Final = 10_000  # characters of a line of a log, and of what progress says


class Pace:
    """Limit of how often something happens: so many times at once, and then so many times a second."""

    def __init__(self, clock: Clock, at_once: int, each_second: float) -> None:
        self._clock, self._at_once, self._each_second = clock, at_once, each_second
        self._room, self._since = float(at_once), clock.monotonic()

    def has_room(self) -> bool:
        """Return whether it may happen once more now, and count it if so."""
        now = self._clock.monotonic()
        self._room = min(self._at_once, self._room + (now - self._since) * self._each_second)
        self._since = now
        if self._room < 1:
            return False
        self._room -= 1
        return True


class ProgressReport:
    """Progress of one call, passed on as it comes; in a storm the newest is passed on at a pace."""

    def __init__(self, report: Callable[[Any], None] | None, clock: Clock) -> None:
        self._report, self._pace = report, Pace(clock, _REPORTS, _REPORTS_A_SECOND)
        self._newest: Progress | None = None  # that is not passed on

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        self._newest = Progress(progress, total, cut_line(message))
        if self._pace.has_room():
            self.end()

    def end(self) -> None:
        """Pass on the newest, if it is not passed on."""
        newest, self._newest = self._newest, None
        if newest is not None and self._report is not None:
            self._report(newest)


def cut_line(data: Any) -> Any:
    """Return one line of a server, as a text of 10,000 characters where it is longer."""
    text = data if isinstance(data, str) else str(data)
    return data if len(text) <= _MAX_LINE else text[: _MAX_LINE - 1] + "…"


_log = logging.getLogger("toolcrib.mcp")
_AT_ONCE, _A_SECOND = 1_000, 100.0  # messages of one kind that nobody asked for
_MOST_TOKENS: Final = 1_000  # calls whose newest progress is kept
_PROGRESS: Final = "notifications/progress"
_KINDS: Final[Mapping[str, str]] = {
    "notifications/message": "lines of its log",
    _PROGRESS: "progress",
    "notifications/tools/list_changed": "changes of its tools",
    "notifications/resources/list_changed": "changes of its resources",
    "notifications/prompts/list_changed": "changes of its prompts",
    "notifications/resources/updated": "updates of resources",
    "notifications/elicitation/complete": "visits of pages",
}
"""Kinds of notifications; each has a pace of its own, so that a storm of one takes nothing from the others."""


class Announcements(Protocol):
    """The announcements that a server makes on a connection without being asked."""

    def list_changed(self) -> None:
        """Record that it has other tools, resources or prompts."""

    def updated(self, uri: str) -> None:
        """Record that a resource is updated."""

    def elicitation_completed(self, elicitation_id: str) -> None:
        """Record that a person has done what the server asked for at an address."""


class PacedMessages:
    """A stream of messages, in which there are so many of each kind a second that nobody asked for.

    The SDK starts a task for each. Of those left out the newest progress of a call is passed on before its answer, and
    what has changed is announced. Progress whose number no float can hold is left out: the SDK ends a connection at it.
    """

    def __init__(self, stream: Any, server: str, announced: Announcements, clock: Clock) -> None:
        self._stream, self._server, self._announced, self._clock = stream, server, announced, clock
        self._next: deque[SessionMessage | Exception] = deque()
        self._paces: dict[str, Pace] = {}
        self._warned: set[str] = set()  # kinds of which some were left out
        self._progress: dict[str, SessionMessage] = {}  # the newest that was left out, by its token

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._stream.__aexit__(*error)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        while not self._next:
            self._next.extend(self._wanted(await self._stream.__anext__()))
        return self._next.popleft()

    def _wanted(self, item: SessionMessage | Exception) -> list[SessionMessage | Exception]:
        """Return a message, after progress that belongs before it; nothing of one that comes too fast."""
        if isinstance(item, Exception):
            if not self._has_room("lines that are not messages"):
                return []
            _log.warning("%s: %.500s", self._server, item)
            return [item]
        match item.message:
            case types.JSONRPCNotification(method=method, params=params):
                return [item] if self._takes(item, method, params or {}) else []
            case types.JSONRPCRequest():
                return [item] if self._has_room("requests") else []
            case answer:
                newest = self._progress.pop(str(answer.id), None)
                return [item] if newest is None else [newest, item]

    def _takes(self, item: SessionMessage, method: str, params: dict[str, Any]) -> bool:
        if method == _PROGRESS and not _is_finite(params.get("progress")):
            return False
        if method == _PROGRESS and not _is_finite(params.get("total")):
            del params["total"]
        has_room, token = self._has_room(_KINDS.get(method, "notifications")), str(params.get("progressToken"))
        if method == _PROGRESS:
            self._progress.pop(token, None)
            if not has_room and len(self._progress) < _MOST_TOKENS:
                self._progress[token] = item
        elif not has_room:
            self._announce(method, params)
        return has_room

    def _announce(self, method: str, params: Mapping[str, Any]) -> None:
        uri, page = params.get("uri"), params.get("elicitationId")
        if method.endswith("/list_changed"):
            self._announced.list_changed()
        elif method == "notifications/resources/updated" and isinstance(uri, str):
            self._announced.updated(uri)
        elif method == "notifications/elicitation/complete" and isinstance(page, str):
            self._announced.elicitation_completed(page)

    def _has_room(self, kind: str) -> bool:
        if kind not in self._paces:
            self._paces[kind] = Pace(self._clock, _AT_ONCE, _A_SECOND)
        has_room = self._paces[kind].has_room()
        if not has_room and kind not in self._warned:
            self._warned.add(kind)
            text = "%s: its %s arrive too fast: of more than %d a second the rest is left out"
            _log.warning(text, self._server, kind, _A_SECOND)
        return has_room


def _is_finite(number: object) -> bool:
    """Return whether a float can hold a number; what is not a number is left to its reader."""
    try:
        return not isinstance(number, int | float) or isfinite(number)
    except OverflowError:
        return False
