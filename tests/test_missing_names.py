"""Attributes by the names of other frameworks: the AttributeError says what is meant here, and nothing else changes."""

from __future__ import annotations

import copy
import inspect
import pickle
from dataclasses import replace
from typing import Any

import pytest

from toolcrib.adapters.mcp_server import HttpOptions, ServerOptions
from toolcrib.budgets import Budgets, Cost, Limit
from toolcrib.calls import ApprovalRequest, Completed, Suspended
from toolcrib.errors import explain_missing
from toolcrib.pipeline import CallLimits
from toolcrib.rounds import Session, decode
from toolcrib.serving import GuardPolicy
from toolcrib.testing import ScriptedModel, wire_reply
from toolcrib.tools import tool
from toolcrib.toolsets import Toolset
from toolcrib.turns import Agent


@tool(register=False)
async def add(a: int) -> int:
    return a


ASKED = ApprovalRequest("ask_1", "1", "add", {}, "d")


@pytest.mark.parametrize(
    ("found", "name", "here"),
    [
        (Session(ScriptedModel()), "stream", "session.run(on_text=...)"),
        (Session(ScriptedModel()), "messages", "session.transcript"),
        (Session(ScriptedModel()), "batch", "`await session.copy().say(text).run()`"),
        (Session(ScriptedModel()), "get_state", "`session.to_json()`"),
        (Session(ScriptedModel()), "with_config", "an option of `Session(...)`"),
        (ASKED, "edit", "`request.grant(by, override_args={...})`"),
        (ASKED, "approve", "with `override_args={...}` for other arguments"),
        (Toolset([add]), "get_tools", "`toolset.tools()`"),
        (Toolset([add]), "name", "`as_tools(toolset)` of its adapter in `toolcrib.adapters`"),
        (Toolset([add]), "__name__", "`as_tools(toolset)` of its adapter in `toolcrib.adapters`"),
        (Toolset([add]), "to_openai", "toolset.definitions(format='openai')"),
        (Agent("trips", "Plans trips.", [add], register=False), "run_sync", "`Session(model, system=..., tools=...)`"),
        (Agent("trips", "Plans trips.", [add], register=False), "tool", "`Agent(name, description, tools)`"),
        (
            Suspended("add", "1", ASKED),
            "approve",
            "suspended.request.grant(by)",
        ),
        (Toolset([add]), "add_tool", "Toolset.combined(toolset, [fn])"),
        (decode([add], wire_reply("openai")), "is_finished", "`not round`"),
        (decode([add], wire_reply("openai")), "calls", "`tool_calls`"),
        (Session(ScriptedModel()), "ask", "after `session.say(text)`"),
        (add, "json_schema", "`tool.parameters`"),
        (add, "invoke", "await tool(...)"),
        (Completed("add", "1", 2), "output", "`value`"),
        (Completed, "output", "`value`"),
    ],
)
def test_a_name_of_another_framework_is_told_by_ours(found: Any, name: str, here: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(found, name)

    assert f"has no attribute '{name}'. Here it is" in str(caught.value)
    assert here in str(caught.value)
    assert not hasattr(found, name)
    assert getattr(found, name, None) is None


@pytest.mark.parametrize(
    ("cls", "given", "said"),
    [
        (GuardPolicy, {"interrupt_on": ["refund"]}, "`interrupt_on`. Did you mean `approve`?"),
        (GuardPolicy, {"aprove": ["refund"]}, "`aprove`. Did you mean `approve`?"),
        (Budgets, {"per_tool": 1}, "`per_tool`. Here it is Budgets([Limit(calls=10, by='tool')])."),
        (Limit, {"amount": 1}, "`amount`. Did you mean `spend`?"),
        (Limit, {"spend": 1, "currncy": "EUR"}, "`currncy`. Did you mean `currency`?"),
        (Cost, {"price": 1, "currency": "EUR"}, "`price`. Did you mean `amount`?"),
        (CallLimits, {"max_calls": 1}, "`max_calls`. Did you mean `total`?"),
        (HttpOptions, {"token": "x"}, "`token`. Did you mean `tokens`?"),
        (ServerOptions, {"port": 1}, "`port`. Here it is HttpOptions(port=...)."),
    ],
)
def test_an_option_of_another_framework_is_told_by_ours(cls: Any, given: dict[str, Any], said: str) -> None:
    with pytest.raises(TypeError) as caught:
        cls(**given)

    assert f"{cls.__name__} has no option {said}" in str(caught.value)


def test_a_class_whose_options_are_explained_is_what_it_was() -> None:
    limits = CallLimits(2, per_tool={"refund": 1})

    assert replace(limits, total=3) == CallLimits(total=3, per_tool={"refund": 1})
    assert pickle.loads(pickle.dumps(limits)) == limits
    assert [*inspect.signature(CallLimits).parameters] == ["total", "per_tool", "concurrency", "requirements"]


async def test_the_answer_of_a_session_says_so_too() -> None:
    answer: Any = await Session(ScriptedModel("Oslo.")).say("Where?").run()

    with pytest.raises(AttributeError, match=r"'Finished' has no attribute 'output'. Here it is `result`"):
        _ = answer.output


async def test_a_session_that_is_iterated_says_how_its_text_comes_in_pieces() -> None:
    session: Any = Session(ScriptedModel())

    with pytest.raises(TypeError, match=r"not a stream: `await session\.run\(on_text=\.\.\.\)`"):
        async for _ in session.say("Hi."):
            pass


@explain_missing({"output": "`value`"})
class Base:
    def __init__(self) -> None:
        self.value = 1

    @property
    def broken(self) -> int:
        raise AttributeError("a fault of its own")


class Below(Base):
    output = 3


def test_all_else_is_as_without_it() -> None:
    base: Any = Base()

    with pytest.raises(AttributeError, match="a fault of its own"):
        _ = base.broken
    assert pickle.loads(pickle.dumps(base)).value == copy.deepcopy(base).value == copy.copy(base).value == 1
    assert (Below().output, "output" in dict(inspect.getmembers(base))) == (3, False)
    base.output = 2
    assert base.output == 2


def test_a_toolset_may_have_a_tool_of_such_a_name() -> None:
    class Sums(Toolset):
        add = add

    assert Sums.add.name == "add"
    assert [entry.name for entry in Toolset.of(Sums)] == ["add"]
