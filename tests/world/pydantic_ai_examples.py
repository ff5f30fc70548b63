"""Examples of Pydantic AI, as its package `pydantic-ai-examples` has them, each with its agent guarded.

    python -m tests.world.pydantic_ai_examples

The model is the framework's own `TestModel`, which calls each tool once.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import sys
from importlib import import_module
from typing import Any

import httpx
from pydantic_ai import DeferredToolRequests
from pydantic_ai.models.test import TestModel

from toolcrib.adapters.pydantic_ai import answers, approval_requests, guard
from toolcrib.serving import GuardPolicy

__all__ = ["main"]


async def roulette() -> tuple[Any, Any, Any]:
    """Return an agent with its tool guarded, what it is asked, and its dependencies."""
    module = import_module("pydantic_ai_examples.roulette_wheel")
    return module.roulette_agent, "Put my money on square eighteen", module.Deps(winning_number=18)


async def bank() -> tuple[Any, Any, Any]:
    """Return as `roulette`."""
    module: Any = import_module("pydantic_ai_examples.bank_support")
    connection = sqlite3.connect(":memory:")
    module.cur = connection.cursor()
    module.cur.execute("CREATE TABLE customers(id, name, balance)")
    module.cur.execute("INSERT INTO customers VALUES (123, 'John', 123.45)")
    database = module.DatabaseConn(sqlite_conn=connection)
    return module.support_agent, "What is my balance?", module.SupportDependencies(customer_id=123, db=database)


async def weather() -> tuple[Any, Any, Any]:
    """Return as `roulette`."""
    module: Any = import_module("pydantic_ai_examples.weather_agent")

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"lat": 1.0, "lng": 2.0})

    client = module.AsyncClient(transport=httpx.MockTransport(answer))
    return module.weather_agent, "What is the weather like in London?", module.Deps(client=client)


async def guarded_run(example: Any) -> None:
    """Run an example whose tools need approval, and approve; AssertionError where nobody is asked."""
    agent, text, deps = await example()
    guarded = guard(agent, GuardPolicy(approve=True))
    model = TestModel()
    run = await guarded.run(text, deps=deps, model=model)
    asked = approval_requests(run.output)
    assert asked, "nobody was asked"
    while isinstance(run.output, DeferredToolRequests):
        grants = [request.grant("ann") for request in approval_requests(run.output)]
        given = await answers(run.output, *grants, toolset=guarded)
        run = await guarded.run(message_history=run.all_messages(), deferred_tool_results=given, deps=deps, model=model)


async def run_examples() -> int:
    """Run all examples; print which fails, and a line with the count, as pytest does."""
    logging.disable(logging.CRITICAL)
    failed = 0
    examples = (roulette, bank, weather)
    for example in examples:
        try:
            await guarded_run(example)
        except Exception as error:
            failed += 1
            print(f"FAILED {example.__name__}: {type(error).__name__}: {error}"[:300])
    print(f"{len(examples) - failed} passed" + (f", {failed} failed" if failed else ""))
    return 1 if failed else 0


def main() -> int:
    """Run all examples; return 1 where one fails."""
    os.environ.update(dict.fromkeys(("OPENAI_API_KEY", "GROQ_API_KEY"), "none"), LOGFIRE_CONSOLE="false")
    return asyncio.run(run_examples())


if __name__ == "__main__":
    sys.exit(main())
