"""Open calls: calls that outlive their request, in one registry; equal calls are let through one after another."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from typing import Any, Literal, TypeAlias
from weakref import WeakValueDictionary

from toolcrib.approvals import SuspendedCallStore
from toolcrib.calls import CallEvent, now
from toolcrib.errors import ClientUnavailable

OpenCallState: TypeAlias = Literal["running", "asking", "suspended", "ended"]
"""The state of an open call: its work goes on, waits for its client, waits for a person, or has ended."""

_STOP_SECONDS = 5.0  # for calls to end when they are cancelled


@dataclass(frozen=True, slots=True)
class ClientQuestion:
    """A question of a call to its client.

    Attributes:
        request: The request, as the protocol has it.
        feature: The subject of the question, in a word.
        accepts: The types that an answer may have, the most general last.
    """

    request: Any
    feature: str
    accepts: tuple[type[Any], ...]
    answer: asyncio.Future[Any] = field(repr=False)


@dataclass(slots=True, eq=False)
class OpenCall:
    """A call that outlives its request, or may.

    Attributes:
        id: The name by which its client comes back to it; only requests of its principal find it.
        kind: How the client comes back; the limits of the registry are by kind.
        owner: The open tools that it is made with, and ends with.
        ctx: The request that it is handled in now; None while no request is open.
        job: The work on it, while there is any.
        questions: The questions without an answer, by the keys that the client answers by.
        waits_for: The ids of the approval requests that it was suspended for last.
        message: The text of its state, for a person.
        updated: The time of its last change.
        since: The time from which it has waited for its client, on the clock of the event loop.
        changed: Set at the next change.
        listener: Called at each change of its state while it is in a registry.
        on_forget: Called when the registry forgets it, but not when its owner closes.
    """

    kind: str
    principal: str
    tool: str
    owner: object = None
    ctx: Any = None
    id: str = ""
    job: asyncio.Task[Any] | None = None
    questions: dict[str, ClientQuestion] = field(default_factory=dict[str, ClientQuestion])
    waits_for: tuple[str, ...] = ()
    message: str = ""
    result: Any = None
    error: BaseException | None = None
    updated: datetime = field(default_factory=now)
    since: float = 0.0
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    timer: asyncio.TimerHandle | None = None
    listener: Callable[[], object] | None = None
    on_forget: Callable[[], object] | None = None
    _numbers: count[int] = field(default_factory=lambda: count(1), init=False)

    @property
    def state(self) -> OpenCallState:
        """Its state: one that waits for nothing and has no work left is suspended."""
        if self.result is not None or self.error is not None:
            return "ended"
        if self.questions:
            return "asking"
        return "suspended" if self.job is None else "running"

    def start(self, work: Coroutine[Any, Any, Any], name: str = "") -> None:
        """Start the work on it; a result of None leaves it suspended."""
        self.message = ""
        self.job = asyncio.create_task(work, name=name or None)
        self.job.add_done_callback(self._end)

    async def stop(self) -> None:
        """Cancel the work on it, and wait until it has ended."""
        if (job := self.job) is not None:
            job.cancel()
            await asyncio.wait({job}, timeout=_STOP_SECONDS)

    async def wait(self, seconds: float | None = None) -> None:
        """Wait while it is running, for at most so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.state == "running":
                    await self.changed.wait()

    def change(self, message: str | None = None) -> None:
        """Wake those who wait for a change.

        Args:
            message: The new text of its state.
        """
        self.message = self.message if message is None else message
        self.updated = now()
        event, self.changed = self.changed, asyncio.Event()
        event.set()

    def move(self) -> None:
        """Wake those who wait for a change, and call the listener: its state is another one."""
        self.change()
        if self.listener is not None:
            self.listener()

    def _end(self, job: asyncio.Task[Any]) -> None:
        self.job = None
        error = asyncio.CancelledError() if job.cancelled() else job.exception()
        self.end(None if error is not None else job.result(), error)

    def end(self, result: Any, error: BaseException | None) -> None:
        """Set its result or its error."""
        self.result, self.error = result, error
        self.move()

    # --- questions

    async def ask(self, request: Any, feature: str, accepts: tuple[type[Any], ...], key: str = "") -> Any:
        """Return the client's answer to a request, which it fetches and answers by later requests of its own.

        Args:
            key: The key that the client answers by, unless another question has it.
        """
        numbered = f"{feature}_{next(self._numbers)}"
        key = key if key and key not in self.questions else numbered
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.questions[key] = ClientQuestion(request, feature, accepts, answer)
        self.move()
        try:
            return await answer
        finally:
            if self.questions.pop(key, None) is not None:
                self.move()

    def answer(self, responses: Mapping[str, Any]) -> bool:
        """Answer questions by their keys, and return whether there was one; what does not fit is left out."""
        found = False
        for key, response in responses.items():
            question = self.questions.get(key)
            if question is None or question.answer.done() or not isinstance(response, question.accepts):
                continue
            question.answer.set_result(response)
            del self.questions[key]
            found = True
        if found:
            self.move()
        return found

    def refuse(self, why: str) -> None:
        """Fail its questions."""
        for question in self.questions.values():
            if not question.answer.done():
                question.answer.set_exception(ClientUnavailable(self.tool, question.feature, why))
        self.questions.clear()


@dataclass(frozen=True, slots=True)
class OpenLimit:
    """The limit of calls of a kind that are open at a time.

    Attributes:
        per_principal: Of one principal.
        total: Of all principals.
    """

    per_principal: int
    total: int


class OpenCalls:
    """The calls of one server that outlive their requests: in memory while they run or ask, in a store else.

    Args:
        suspended: The store of suspended calls.
        limits: The limits by kind.
    """

    def __init__(self, suspended: SuspendedCallStore, limits: Mapping[str, OpenLimit]) -> None:
        self.suspended, self.limits = suspended, limits
        self._calls: dict[str, dict[str, OpenCall]] = {}  # by principal and id
        self._counts: Counter[tuple[str | None, str]] = Counter()  # by principal, or None, and kind
        self._ending: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        return sum(map(len, self._calls.values()))

    def is_full(self, principal: str, kind: str) -> bool:
        """Return whether no more calls of a kind may be open for a principal."""
        limit = self.limits[kind]
        return self._counts[principal, kind] >= limit.per_principal or self._counts[None, kind] >= limit.total

    def add(self, call: OpenCall, seconds: float) -> None:
        """Add a call under its id; it is forgotten after so many seconds."""
        self._calls.setdefault(call.principal, {})[call.id] = call
        self._counts.update([(call.principal, call.kind), (None, call.kind)])
        self.keep_for(call, seconds)

    def keep_for(self, call: OpenCall, seconds: float) -> None:
        """Forget a call so many seconds from now, and not before."""
        if call.timer is not None:
            call.timer.cancel()
        call.timer = asyncio.get_running_loop().call_later(max(0.0, seconds), self.forget, call)

    def find(self, principal: str, id: str) -> OpenCall | None:
        """Return a call of a principal."""
        return self._calls.get(principal, {}).get(id)

    def of(self, principal: str, kind: str) -> list[OpenCall]:
        """Return the calls of a kind of a principal, the oldest first."""
        return [call for call in self._calls.get(principal, {}).values() if call.kind == kind]

    def take(self, call: OpenCall) -> bool:
        """Remove a call, which goes on; return False for one that was removed before."""
        mine = self._calls.get(call.principal, {})
        if mine.pop(call.id, None) is None:
            return False
        if not mine:
            del self._calls[call.principal]
        for key in ((call.principal, call.kind), (None, call.kind)):
            self._counts[key] -= 1
            if not self._counts[key]:
                del self._counts[key]
        if call.timer is not None:
            call.timer.cancel()
            call.timer = None
        return True

    def forget(self, call: OpenCall) -> None:
        """Remove a call, and cancel the work on it."""
        if self._drop(call) and call.on_forget is not None:
            call.on_forget()

    def _drop(self, call: OpenCall) -> bool:
        call.listener = None
        if call.job is not None:
            call.job.cancel()
            self._wait_for(call.job)
        return self.take(call)

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Start work that `close` waits for."""
        self._wait_for(asyncio.create_task(work))

    def _wait_for(self, job: asyncio.Task[Any]) -> None:
        self._ending.add(job)
        job.add_done_callback(self._ending.discard)

    async def close(self, owner: object) -> None:
        """Cancel the calls of an owner, and wait until they have ended; what is in the store stays there."""
        for call in [call for calls in self._calls.values() for call in calls.values() if call.owner is owner]:
            self._drop(call)
        if self._ending:
            await asyncio.wait(self._ending, timeout=_STOP_SECONDS)


class Flight:
    """One of several equal calls, which holds the others back; a sink that lets them through when its tool starts."""

    def __init__(self, lock: asyncio.Lock) -> None:
        self._lock: asyncio.Lock | None = lock

    def emit(self, event: CallEvent) -> None:
        """Land when the tool starts: its call waits for no approval."""
        if event.kind == "started":
            self.land()

    def land(self) -> None:
        """Release the next of the equal calls."""
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.release()


class SingleFlight:
    """Holds equal calls back while it is not known whether the one before them is suspended."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def flight(self, key: str) -> AsyncGenerator[Flight]:
        """Hold the other calls with this key back until the body ends or the flight lands."""
        lock = self._locks.setdefault(key, asyncio.Lock())
        await lock.acquire()
        flight = Flight(lock)
        try:
            yield flight
        finally:
            flight.land()
