"""Events: each observer is called with what its event declares."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, get_args

from toolcrib.hooks import Hook, HookType, ToolHook, hook
from toolcrib.tools import tool
from toolcrib.turns import Agent, ContextItem, ContextPool, ContextQueue, Turn


async def test_every_event_gives_what_it_declares() -> None:
    events = [event for kind in get_args(HookType) for event in kind if event is not ToolHook.BEFORE_INVOKE]
    told: dict[HookType, int] = {}
    hooks = [noting(event, told) for event in events]

    await use_everything()

    assert len(hooks) == len(events)
    assert told == {event: len([name for name in event.parameters if name != "*"]) for event in events}


def noting(event: HookType, told: dict[HookType, int]) -> Hook[Any]:
    async def note(*args: Any, **kwargs: Any) -> None:
        told[event] = len(args) + len(kwargs)

    note.__name__ = event.value
    return hook(event)(note)


async def use_everything() -> None:
    """Let every event happen."""

    @tool()
    async def work(fail: bool = False, seconds: float = 0.0) -> AsyncIterator[Any]:
        await asyncio.sleep(seconds)
        if fail:
            raise LookupError("gone")
        yield ContextItem("text")
        yield ContextItem("text", "about it", "t1")
        yield ContextItem("text", "about it", "t2")

    agent = Agent("all", "", [work], ContextPool(limit=1), ContextQueue(limit=1))
    for turn in (Turn(work), Turn(work), Turn(work, kwargs={"fail": True}), Turn(work, 0.01, kwargs={"seconds": 60})):
        await agent.put(turn)
    for _ in range(3):
        await asyncio.gather(drained(agent), return_exceptions=True)
    await agent.pause()
    await agent.resume()
    await agent.context_pool.remove("t2")
    await agent.context_pool.clear()
    await agent.context_queue.clear()


async def drained(agent: Agent) -> None:
    async for _ in agent.run():
        pass
