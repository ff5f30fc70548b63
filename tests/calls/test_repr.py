"""What is shown of a call where it is printed or logged as an object: nothing that may be secret."""

from __future__ import annotations

import json
from typing import Annotated, Any

import pytest
from pydantic import SecretStr

from toolcrib.calls import CallMetadata, Grant, RunNormally, ToolCall
from toolcrib.pipeline import Pipeline, is_call
from toolcrib.rounds import CallProgress, decode
from toolcrib.schema import Redacted, RunContext
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset

SECRET = "hunter2"
GIVEN = {"user": "ann", "password": SECRET, "code": SECRET}


@ez_tool
async def login(user: str, password: SecretStr, code: Annotated[str, Redacted] | None = None) -> str:
    """Log in."""
    return "in"


@ez_tool(name="book", requires_approval=True)
async def login_later(user: str, password: SecretStr, code: Annotated[str, Redacted] | None = None) -> str:
    """Log in, later."""
    return "in"


def reply(*calls: tuple[str, Any], stop: str = "tool_calls") -> dict[str, Any]:
    sent = [
        {"id": f"c{at}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
        for at, (name, given) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": None, "tool_calls": sent}
    return {"choices": [{"message": message, "finish_reason": stop}]}


@pytest.mark.parametrize(
    "value",
    [
        ToolCall("login", GIVEN),
        CallMetadata("c1", "login", json.dumps(GIVEN)),
        Grant("login", override_args=GIVEN, user_input=SECRET),
        RunNormally(GIVEN),
        CallProgress(0, "c1", "login", GIVEN),
        RunContext(None, "c1", "login", "r1", user_input=SECRET),
    ],
    ids=lambda value: type(value).__name__,
)
def test_arguments_as_they_came_are_in_no_repr(value: Any) -> None:
    assert SECRET not in repr(value)


async def test_a_plan_shows_no_secret_of_its_calls() -> None:
    unfit = {**GIVEN, "password": {"of": SECRET}}
    calls = ("login", GIVEN), ("login", unfit), ("book", GIVEN), ("log_in", GIVEN)

    round = decode(Toolset([login, login_later]), reply(*calls))
    plan = await round.apply_hooks()

    shown = [round, plan, plan.pending, plan.suspended, plan.issues, [call.metadata for call in plan.pending]]
    assert [len(group) for group in (plan.pending, plan.suspended, plan.issues)] == [1, 1, 2]
    assert SECRET not in repr([*shown, [call.input for call in plan.pending]])


async def test_a_call_shows_no_secret() -> None:
    call = await Pipeline([login]).admit(ToolCall("login", GIVEN))

    assert is_call(call)
    assert SECRET not in repr([call, call.parse()])


@pytest.mark.parametrize(("tool", "quoted"), [("login", False), ("greet", True)])
async def test_a_call_that_was_cut_is_quoted_where_nothing_is_secret(tool: str, quoted: bool) -> None:
    @ez_tool
    async def greet(user: str) -> str:
        return user

    plan = await decode(Toolset([login, greet]), reply((tool, {"user": SECRET}), stop="length")).apply_hooks()

    [issue] = plan.issues
    assert (SECRET in issue.reason) is quoted
    assert issue.reason.endswith("Nothing ran; if it is still wanted, make the call again, whole")
