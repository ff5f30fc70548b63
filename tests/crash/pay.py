"""The tool that every way calls, and the points in it and in its hooks; `toolcrib serve` takes this file."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from tests.crash.points import database, effect, kill_at, wait_for_release
from toolcrib.approvals import SqliteApprovalStore
from toolcrib.calls import ApprovalRequest, CallEvent, Denial, Grant
from toolcrib.hooks import GlobalHooks
from toolcrib.pipeline import Channel, Durability, Run
from toolcrib.record import SqliteSink
from toolcrib.tools import tool
from toolcrib.toolsets import Toolset


async def pay(cents: int) -> str:
    """Pay a bill."""
    kill_at("before the effect")
    await asyncio.to_thread(wait_for_release)
    result = effect()
    kill_at("after the effect")
    return result


async def _before(ctx: Any, tool_name: str, args: dict[str, Any], metadata: dict[str, Any]) -> dict[str, Any]:
    kill_at("pre hook")
    return args


async def _after(ctx: Any, tool_name: str, result: Any, metadata: dict[str, Any]) -> Any:
    kill_at("post hook")
    return result


_HOOKS = GlobalHooks(pre=_before, post=_after)
tools = Toolset([tool(pay, requires_approval=True, register=False)], global_hooks=_HOOKS)
unasked = Toolset([tool(pay, register=False)], global_hooks=_HOOKS)


class EventPoints:
    """A sink whose points are the events of a call."""

    def emit(self, event: CallEvent) -> None:
        """Reach the point of the event."""
        kill_at(f"event {event.kind}")


class PromptSink(SqliteSink):
    """A sink that has written that a call begins before the tool can be killed: others do so 20 ms later."""

    def emit(self, event: Any) -> None:
        """Write an event."""
        super().emit(event)
        if isinstance(event, CallEvent) and event.kind == "started":
            self.flush()


def open_run(*about: Any) -> Run:
    """Return a run as a host opens it whose calls may outlive its process."""
    return Run(
        principal="ann",
        channel=Channel(conversation_id="bill"),
        approvals=SqliteApprovalStore(database()),
        sinks=_sinks(),
    )


def open_run_unasked() -> Run:
    """Return a run whose calls are noted in its store though they need no approval."""
    return Run(principal="ann", durability=Durability(store=SqliteApprovalStore(database())), sinks=_sinks())


def _sinks() -> tuple[Any, ...]:
    return (PromptSink(database()), EventPoints())


async def stored_answers(requests: Iterable[ApprovalRequest]) -> list[Grant | Denial] | None:
    """Return the answers that people gave in the store; None while one is missing."""
    store = SqliteApprovalStore(database())
    found = [(await store.show(request.id)).answer for request in requests]
    answers = [answer for answer in found if answer is not None]
    return answers if len(answers) == len(found) else None
