"""A research assistant over the shop's tools: why are parcels late, and what does it cost?

It has no model: what to do next is decided by tools, which return turns. What they learn they return as context items.

make demo-agent
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.prompt import Confirm

from toolcrib import Agent, ApprovalRequest, Denial, Grant, Toolset, Turn, tool
from toolcrib.cli import LiveView
from toolcrib.turns import ContextItem, ContextPool, ContextQueue

sys.path.insert(0, str(Path(__file__).parents[1] / "shop"))

from tools import lines, orders, refund, shop, stock, track  # found since the line above

console = Console()


# A stream whose values go three ways: to the pool, to the queue of turns, and to the caller that runs the agent.
@tool()
async def survey() -> AsyncIterator[ContextItem[Any] | Turn[Any] | str]:
    """Find the orders that are late, and have each looked into."""
    late = await orders("late")
    for order in late:
        yield ContextItem(order, f"ordered by {order['customer']} on {order['placed']}", f"order {order['id']}")
        yield Turn(trace, kwargs={"order_id": order["id"]})
    yield f"{len(late)} orders are late"


@tool()
async def trace(order_id: int) -> AsyncIterator[ContextItem[str] | Turn[Any] | str]:
    """Follow a parcel, and have the damage assessed where it will not arrive."""
    event = place = "nowhere"
    async for scan in track(order_id):
        event, place = scan["event"], scan["place"]
        yield f"{scan['at']} {place}: {event}"
    yield ContextItem(f"order {order_id} is {event} in {place}")
    if event in ("lost", "damaged"):
        yield Turn(assess, kwargs={"order_id": order_id, "event": event})


# The pool is the running agent's: it is in no schema, and no caller passes it.
@tool()
async def assess(order_id: int, event: str, pool: ContextPool) -> AsyncIterator[ContextItem[str] | Turn[Any]]:
    """Find out what can be sent again; what cannot is paid back, if a person agrees."""
    customer, owed = pool.get(f"order {order_id}").content["customer"], 0.0
    for line in await lines(order_id):
        there = stock(line["sku"]) >= line["quantity"]
        owed += 0 if there else line["quantity"] * line["price"]
        yield ContextItem(f"{customer} {'gets' if there else 'cannot get'} {line['quantity']} x {line['title']} again")
    if owed:
        yield Turn(refund, kwargs={"order_id": order_id, "amount": owed, "reason": f"your parcel was {event}"})


@tool()
async def report(notes: ContextQueue, pool: ContextPool) -> str:
    """Put together what was found out."""
    found = "\n".join(f"- {item.content}" for item in notes)
    return f"What was found out\n{found}\n\nOrders looked into\n{pool.catalogue()}"


async def ask(request: ApprovalRequest) -> Grant | Denial | None:
    """Ask at the terminal; without one the turn is kept until a person answers."""
    if not sys.stdin.isatty():
        return None
    with view.paused():
        console.print(f"\n{request.text()}", markup=False)
        yes = await asyncio.to_thread(Confirm.ask, "Pay?", console=console)
    return request.grant("you") if yes else request.deny(message="not now", by="you")


view = LiveView()


async def main() -> None:
    tools = Toolset([shop, survey, trace, assess, report])
    agent = Agent("researcher", "Finds out why parcels are late", tools, approver=ask, sinks=[view])

    with view:
        await agent.put(Turn(survey))
        async for _ in agent.run(max_concurrency=3):
            pass  # the view shows it
    await agent.put(Turn(report))
    async for _, text in agent.run():
        console.print(f"\n{text}", markup=False, highlight=False)
    for request in agent.requests:
        console.print(f"\nStill to be answered: {request.text()}", markup=False, highlight=False)


if __name__ == "__main__":
    asyncio.run(main())
