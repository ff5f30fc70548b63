"""Streams of a model, which are closed however their reading ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from toolcrib.rounds import Session


class OpenStream:
    """A stream of a provider's client, which holds a connection until it is closed."""

    def __init__(self, stop: Callable[[], object]) -> None:
        self.closed, self._stop = 0, stop

    async def __aiter__(self) -> AsyncIterator[object]:
        yield {"choices": [{"index": 0, "delta": {"content": "Hello"}}]}
        self._stop()
        await asyncio.sleep(0)
        yield {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


class ClosedByACoroutine(OpenStream):
    async def close(self) -> None:
        self.closed += 1


class ClosedByAFunction(OpenStream):
    def close(self) -> None:
        self.closed += 1


class ClosedAsAGenerator(OpenStream):
    async def aclose(self) -> None:
        self.closed += 1


class Broken(Exception):
    pass


def breaks(*args: object) -> None:
    raise Broken


@pytest.mark.parametrize("kind", [ClosedByACoroutine, ClosedByAFunction, ClosedAsAGenerator])
@pytest.mark.parametrize("end", ["at its end", "on_text", "on_chunk", "the stream itself", "cancelled"])
async def test_a_stream_of_a_model_is_closed_however_its_reading_ends(kind: type[Any], end: str) -> None:
    def stop() -> None:
        if end == "the stream itself":
            raise Broken
        if end == "cancelled":
            step.cancel()

    class Streaming:
        async def reply(self, request: Any) -> Any:
            return stream

    stream = kind(stop)
    listeners: dict[str, Any] = {end: breaks} if end.startswith("on_") else {}
    step = asyncio.ensure_future(Session(Streaming()).step(**listeners))
    await asyncio.wait([step])

    assert step.cancelled() == (end == "cancelled")
    assert step.cancelled() or isinstance(step.exception(), Broken) == (end not in ("at its end", "cancelled"))
    assert stream.closed == 1


async def test_a_model_that_is_a_generator_is_closed_when_on_text_raises() -> None:
    closed: list[bool] = []

    class Streaming:
        async def reply(self, request: Any) -> Any:
            try:
                yield {"choices": [{"index": 0, "delta": {"content": "Hello"}}]}
            finally:
                closed.append(True)

    with pytest.raises(Broken):
        await Session(Streaming()).step(on_text=breaks)

    assert closed == [True]
