"""The shop's tools as a durable agent: a large refund waits for a person, and whoever is there goes on with it.

toolcrib worker examples/shop/durable.py --database crib.db
toolcrib enqueue examples/shop/durable.py refund '{"order_id": 1002, "amount": 129.0, "reason": "late"}' --database crib.db
toolcrib approvals list --database crib.db
"""

from __future__ import annotations

from tools import shop

from toolcrib import Agent
from toolcrib.adapters.dbos import DurableAgent, Queue

agent = DurableAgent(Agent("shop", "The back office of a shop.", shop), Queue("shop", worker_concurrency=4))
