"""Health of a worker over HTTP: whether it lives, whether it takes work, and numbers for Prometheus.

It is served without the server of `serving.http`, since a worker has the extra `durable` alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeVar

import sqlalchemy as sa

from toolcrib.adapters.dbos._client import Client
from toolcrib.adapters.dbos._engine import Engine
from toolcrib.adapters.dbos._workers import database_time, last_seen, workers
from toolcrib.database import error_text
from toolcrib.errors import EngineError

T = TypeVar("T")

_log = logging.getLogger("toolcrib.durable")
_MOST = 64  # connections at a time; another is closed at once
_REQUEST_SECONDS = 5.0  # for a client to send its request and take the answer
_REQUEST_BYTES = 8_192
_DATABASE_SECONDS = 2.0  # after which a database that has not answered counts as away
_TEXT = "text/plain; charset=utf-8"
_METRICS = "text/plain; version=0.0.4; charset=utf-8"
_NOT_READY = {
    "starting": "the worker starts",
    "leaving": "the worker stops, and takes no more work",
    "lost": "the work of this worker was handed over to others",
}


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    text: str
    kind: str = _TEXT


@asynccontextmanager
async def serve_health(engine: Engine, host: str = "127.0.0.1", port: int = 0) -> AsyncGenerator[int]:
    """Answer `/healthz`, `/readyz` and `/metrics` about an engine, and give the port.

    Enter it before the engine and leave it after, so that a worker which drains says that it is not ready.

    Raises:
        OSError: The port is taken.
    """
    health = _Health(engine)
    server = await asyncio.start_server(health.answer, host, port, limit=_REQUEST_BYTES)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        health.close()


class _Health:
    """The answers about one engine. One thread asks the database: one that hangs keeps no thread of the work's."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._thread = ThreadPoolExecutor(1, "toolcrib-health")
        self._open = 0
        self._unanswered = False  # whether the last question to the database failed, which the log said

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request, and close the connection."""
        self._open += 1
        try:
            if self._open <= _MOST:
                async with asyncio.timeout(_REQUEST_SECONDS):
                    head = await reader.readuntil(b"\r\n\r\n")
                    writer.write(_http(await self._answer_to(head)))
                    await writer.drain()
        except (OSError, EOFError, TimeoutError, asyncio.LimitOverrunError):
            pass  # the client sent no request, or has gone
        finally:
            self._open -= 1
            with suppress(OSError):
                writer.close()

    async def _answer_to(self, head: bytes) -> _Answer:
        method, _, rest = head.split(b"\r\n", 1)[0].decode("latin-1").partition(" ")
        path = rest.partition(" ")[0].partition("?")[0]
        if method != "GET":
            return _Answer(405, "only GET is answered here\n")
        if path == "/healthz":
            lost = self._engine.state == "lost"
            return _Answer(503, f"{_NOT_READY['lost']}\n") if lost else _Answer(200, "ok\n")
        if path == "/readyz":
            return await self._readiness()
        if path == "/metrics":
            return await self._metrics()
        return _Answer(404, "there are /healthz, /readyz and /metrics\n")

    async def _readiness(self) -> _Answer:
        if self._engine.state != "working":
            return _Answer(503, f"{_NOT_READY[self._engine.state]}\n")
        if stalled := self._engine.stalled:  # a new connection may work where those of the queues are lost
            return _Answer(503, f"no work is taken from {', '.join(stalled)}: the database does not answer there\n")
        last_time = await self._asked_database(lambda client: last_seen(client, self._engine.worker_id))
        return _Answer(200, "ready\n") if last_time is not None else _Answer(503, "the database does not answer\n")

    async def _metrics(self) -> _Answer:
        engine = self._engine
        lines = [
            *_metric("worker_takes_work", "Whether this worker takes work", int(engine.state == "working")),
            *_metric("event_lag_seconds", "How long the oldest event of this worker waits", engine.event_lag),
        ]
        if engine.state in ("working", "leaving"):
            names = [queue.name for queue in engine.queues]
            found = await self._asked_database(lambda client: _numbers(client, names))
            lines += _metric("database_up", "Whether the database answers this worker", int(found is not None))
            lines += found or ()
        return _Answer(200, "".join(f"{line}\n" for line in lines), _METRICS)

    async def _asked_database(self, question: Callable[[Client], T]) -> T | None:
        """Return the database's answer; None when it does not answer in time."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_DATABASE_SECONDS):
                answer = await loop.run_in_executor(self._thread, question, self._engine.client)
        except EngineError:  # the engine has ended
            return None
        except Exception as error:  # the driver's: there is no answer
            if not self._unanswered:
                why = error_text(error) or f"no answer within {_DATABASE_SECONDS:g} s"
                _log.error("a question about the health of this worker failed in the database: %s", why)
            self._unanswered = True
            return None
        self._unanswered = False
        return answer


def _http(answer: _Answer) -> bytes:
    body = answer.text.encode()
    head = (
        f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}\r\nContent-Type: {answer.kind}\r\n"
        f"Content-Length: {len(body)}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


# --- what the database knows


def _numbers(client: Client, names: Collection[str]) -> list[str]:
    at, rows = _work(client)
    found: dict[tuple[str, str], tuple[int, float]] = {(row[0] or "", row[1]): (row[2], row[3] / 1000) for row in rows}
    queues = sorted({*names, *(queue for queue, _ in found)})

    def counted(status: str) -> dict[str, float]:
        return {queue: found.get((queue, status), (0, 0.0))[0] for queue in queues}

    oldest = {queue: max(0.0, at - found.get((queue, "ENQUEUED"), (0, at))[1]) for queue in queues}
    known = Counter(worker.state for worker in workers(client))
    states: dict[str, float] = {state: known[state] for state in ("running", "stopped", "lost", "recovered")}
    pending, in_doubt = asyncio.run(client.approvals.count_pending())  # in this thread, which has no loop
    return [
        *_metric("queue_depth", "Work that waits in a queue", counted("ENQUEUED")),
        *_metric("queue_oldest_seconds", "How long the oldest work of a queue waits", oldest),
        *_metric("queue_delayed", "Work that may not begin yet", counted("DELAYED")),
        *_metric("running", "Work that runs, on all workers", counted("PENDING")),
        *_metric("requests_pending", "Requests that wait for an answer", pending),
        *_metric("in_doubt", "Pending requests about calls in doubt", in_doubt),
        *_metric("workers", "Workers by state", states, label="state"),
        *_metric("lost_leases", "Workers that are lost, and whose work waits for them", known["lost"]),
    ]


def _work(client: Client) -> tuple[float, list[Any]]:
    """Return the time, and of each queue and status how much there is and since when, in milliseconds."""
    system = client.dbos._sys_db  # pyright: ignore[reportPrivateUsage] -- the client counts nothing by queue
    work = system.tables.workflow_status.c
    since = sa.case((work.delay_until_epoch_ms > work.created_at, work.delay_until_epoch_ms), else_=work.created_at)
    query = (
        sa.select(work.queue_name, work.status, sa.func.count(), sa.func.min(since))
        .where(work.status.in_(("ENQUEUED", "DELAYED", "PENDING")))
        .where(work.application_name == client.database.application)
        .group_by(work.queue_name, work.status)
    )
    with system.engine.begin() as connection:
        return database_time(connection), list(connection.execute(query))


def _metric(name: str, about: str, value: float | Mapping[str, float], label: str = "queue") -> list[str]:
    """Return the lines of a gauge, of one value or one for each value of a label, in Prometheus's text format."""
    full = f"toolcrib_{name}"
    values = value.items() if isinstance(value, Mapping) else [(None, value)]
    lines = [
        f"{full} {number:g}" if text is None else f'{full}{{{label}="{_escaped(text)}"}} {number:g}'
        for text, number in values
    ]
    return [f"# HELP {full} {about}", f"# TYPE {full} gauge", *lines]


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
