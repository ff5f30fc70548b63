"""What somebody writes who knows other frameworks: the error says what is meant here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from toolcrib.rounds import decode
from toolcrib.schema import RunContext
from toolcrib.tools import ez_tool, tool
from toolcrib.toolsets import Toolset
from toolcrib.turns import Turn


async def pay(cents: int) -> str:
    """Pay."""
    return f"paid {cents}"


async def with_context(ctx, cents: int) -> str:  # type: ignore[no-untyped-def]
    """Pay."""
    return str(ctx)


def message() -> dict[str, Any]:
    return {"role": "assistant", "content": "Hi.", "tool_calls": None}


@pytest.mark.parametrize(
    ("write", "mend"),
    [
        (
            lambda: tool(register=False)(staticmethod(pay)),
            r"`pay` is a staticmethod, .* write @staticmethod above @tool",
        ),
        (lambda: tool(register=False)(with_context), "for the run write `ctx: RunContext`"),
        (lambda: ez_tool(with_context), "for the run write `ctx: RunContext`"),
        (lambda: Turn(ez_tool(pay), args={"cents": 1}), r"`args` of a turn of `pay` is a list; .* kwargs=\{\.\.\.\}"),
        (lambda: Turn(ez_tool(pay), args="1"), r"is a list; .* kwargs=\{\.\.\.\}"),
        (lambda: decode([pay], message()), "is a part of a reply: give the whole of what the client returned"),
        (lambda: decode([pay], '{"choices": []}'), r"`json\.loads\(text\)`"),
        (lambda: decode({"choices": []}, Toolset([pay])), "the toolset comes first: decode\\(tools, reply\\)"),
    ],
    ids=["staticmethod", "ctx", "ctx of ez_tool", "dict of args", "text of args", "message", "JSON", "order"],
)
def test_what_is_written_for_another_framework_is_refused_with_what_is_meant(
    write: Callable[[], Any], mend: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=mend):
        write()


def test_what_is_meant_is_taken() -> None:
    class Shop:
        @staticmethod
        @tool(register=False)
        async def pay(ctx: RunContext, cents: int) -> str:
            """Pay."""
            return f"paid {cents}"

    assert [entry.name for entry in Toolset([Shop.pay])] == ["pay"]
