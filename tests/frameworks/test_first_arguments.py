"""Mistakes at the functions that all adapters have: one tool for several, an answer before what stopped."""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any

import pytest

from tests.frameworks.adapters import ADAPTERS
from toolcrib.calls import ApprovalRequest
from toolcrib.tools import ez_tool

REQUEST = ApprovalRequest("ask_1", "1", "pay", {"cents": 1}, "digest")


def adapter(name: str) -> Any:
    return pytest.importorskip(f"toolcrib.adapters.{name}", exc_type=ImportError)


def pay(cents: int) -> str:
    """Pay."""
    return f"paid {cents}"


async def result_of(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


@pytest.mark.parametrize("name", ADAPTERS)
def test_one_tool_in_the_place_of_several_is_refused_with_what_to_write(name: str) -> None:
    with pytest.raises(TypeError, match=r"from_tools takes several tools, as a list: from_tools\(\[pay\]\)"):
        adapter(name).from_tools(pay)


@pytest.mark.parametrize("name", ADAPTERS)
def test_a_tool_of_ours_is_not_wrapped_as_one_of_the_framework(name: str) -> None:
    with pytest.raises(TypeError, match=r"`pay` is one of Toolcrib: Toolset\(\[\.\.\.\]\)"):
        adapter(name).from_tools([ez_tool(pay)])


@pytest.mark.parametrize("first", [REQUEST, REQUEST.grant("ann"), 5], ids=["request", "grant", "number"])
@pytest.mark.parametrize("name", ADAPTERS)
async def test_an_answer_before_what_stopped_is_refused_with_what_comes_first(name: str, first: Any) -> None:
    module = adapter(name)
    session = ["session"] if name == "claude_agent_sdk" else []
    agent = SimpleNamespace(context_providers=[])
    options = {"agent": agent, "session": None} if name == "agent_framework" else {}

    with pytest.raises(TypeError, match=r"(events|interrupts|options|agent|state|output|user_input_requests)\b.* not "):
        await result_of(module.answers(first, *session, REQUEST.grant("ann"), **options))
    with pytest.raises(TypeError, match=r"(events|interrupts|options|agent|state|output|user_input_requests)\b.* not "):
        await result_of(module.approval_requests(first, *session))
