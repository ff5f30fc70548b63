"""Tools in `pydantic_ai.Agent(tools=[...])`, which takes them for functions: the host's own calls."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

from toolcrib.schema import Injectable
from toolcrib.tools import Tool, ez_tool, tool


class Store(Injectable): ...


async def double(number: int) -> int:
    """Double a number."""
    return number * 2


def shout(text: str = "hey") -> str:
    """Shout."""
    return text.upper()


async def fetch(path: str, key: str, store: Store | None) -> str:
    """Fetch a file."""
    return f"{path} with {key} from {store}"


@pytest.mark.parametrize(
    ("made", "answer"),
    [
        (tool(register=False)(double), '{"double":0}'),
        (ez_tool(double), '{"double":0}'),
        (ez_tool(shout), '{"shout":"HEY"}'),
        (tool(register=False, key="k")(fetch), '{"fetch":"a with k from None"}'),
        (ez_tool(key="k")(fetch), '{"fetch":"a with k from None"}'),
    ],
    ids=["tool", "ez_tool", "sync", "fixed and filled", "fixed and filled ez_tool"],
)
async def test_an_agent_takes_a_tool_where_it_takes_a_function(made: Tool[..., Any], answer: str) -> None:
    agent = Agent(TestModel(), tools=[made])

    result = await agent.run("go")

    assert result.output == answer
