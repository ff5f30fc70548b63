"""The shop's tools as a durable agent: a large refund waits for a person, and another process goes on with it.

python examples/durable_refund/refund.py ask
toolcrib approvals list
toolcrib approvals approve ID --by ann    (at a terminal; `refund.py token ann` makes the token of a script)
python examples/durable_refund/refund.py go-on TURN

The same with a worker that runs until it is stopped: toolcrib worker examples/durable_refund/refund.py
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from toolcrib import Agent, Turn
from toolcrib.adapters.dbos import DurableAgent, Engine, Queue
from toolcrib.approvals import SqliteApprovalStore
from toolcrib.calls import Suspended

sys.path.insert(0, str(Path(__file__).parents[1] / "shop"))

from tools import refund, shop  # found since the line above

# For `toolcrib worker`, too: it looks for durable agents in the file.
agent = DurableAgent(
    Agent("shop", "The back office of a shop.", shop), Queue("shop", polling=0.1, worker_concurrency=4)
)


async def ask() -> None:
    """Put a refund on the queue, see it wait for a person, and leave."""
    async with Engine(worker_id="friday", queues=[agent.queue], record=True):
        handle = await agent.put(Turn(refund, kwargs={"order_id": 1002, "amount": 84.5, "reason": "parcel lost"}))
        asked = await handle.outcome()
    print(asked.request.text() if isinstance(asked, Suspended) else asked.text())
    print(f"turn {handle.id}")


async def go_on(turn: str) -> None:
    """Wait for the answer, however long that takes, and say what came of the turn."""
    async with Engine(worker_id="monday", queues=[agent.queue], record=True):
        outcome = await agent.handle(turn).outcome(through=True)
        print(outcome.text())


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["ask"]:
            asyncio.run(ask())
        case ["go-on", turn]:
            asyncio.run(go_on(turn))
        case ["token", approver]:
            print(asyncio.run(SqliteApprovalStore(os.environ["TOOLCRIB_DATABASE"]).issue_token(approver)))
        case _:
            sys.exit(__doc__)
