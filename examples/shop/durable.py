"""The shop's tools as a durable agent: a large refund waits for a person, and whoever is there goes on with it.

toolcrib worker examples/shop/durable.py
toolcrib enqueue examples/shop/durable.py refund '{"order_id": 1002, "amount": 96.5, "reason": "late"}'
toolcrib approvals list
"""

from __future__ import annotations

from tools import shop

from toolcrib import Agent
from toolcrib.adapters.dbos import DurableAgent, Queue

agent = DurableAgent(Agent("shop", "The back office of a shop.", shop), Queue("shop", worker_concurrency=4))
