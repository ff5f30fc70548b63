"""What a host gives as an answer and is none, or stands where another value does, is told with what is expected."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from toolcrib.approvals import MemoryApprovalStore
from toolcrib.calls import ApprovalRequest, Denial, Grant, Suspended, ToolCall, now
from toolcrib.code import Toolkit
from toolcrib.errors import ApprovalError
from toolcrib.pipeline import Pipeline
from toolcrib.rounds import ToolRoundPlan, decode
from toolcrib.serving.frameworks import answered
from toolcrib.testing import FakeSandbox, wire_reply
from toolcrib.tools import ez_tool
from toolcrib.turns import Turn


@ez_tool(requires_approval=True)
async def pay(euros: int) -> str:
    """Pay."""
    return f"{euros} paid"


async def waiting() -> ToolRoundPlan:
    """Return a plan whose only call waits for a person."""
    return await decode([pay], wire_reply("openai", [ToolCall("pay", {"euros": 1}, "c1")])).apply_hooks()


async def resolve(**answers: Any) -> Any:
    return await (await waiting()).resolve(**answers)


async def resume(**answers: Any) -> Any:
    kit = Toolkit([pay], sandbox=FakeSandbox(("pay", {"euros": 1})))
    paused: Any = (await kit.execute_async("...")).paused
    return await kit.resume_async(paused, **answers)


async def run(grant: Any) -> Any:
    pipeline = Pipeline([pay])
    suspended = await pipeline.run(ToolCall("pay", {"euros": 1}, "c1"))
    assert isinstance(suspended, Suspended)
    return await pipeline.run(suspended, grant=grant)


REQUEST = ApprovalRequest("ask_1", "c1", "pay", {"euros": 1}, "d")
EACH: dict[str, Callable[[Any], Awaitable[Any]]] = {
    "store": MemoryApprovalStore().answer,
    "pipeline": run,
    "turn": lambda answer: Turn(pay, kwargs={"euros": 1}).returning(grant=answer),
    "plan": lambda answer: resolve(grants=[answer]),
    "toolkit": lambda answer: resume(denials=[answer]),
}


@pytest.mark.parametrize("wrong", [True, "ask_1", REQUEST], ids=["bool", "id", "request"])
@pytest.mark.parametrize("give", EACH.values(), ids=EACH)
async def test_what_is_no_answer_is_told_with_what_is(give: Callable[[Any], Awaitable[Any]], wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"give one to its request, as in request\.grant\('ann'\) or request\.deny\("):
        await give(wrong)


@pytest.mark.parametrize("give", [resolve, resume], ids=["plan", "toolkit"])
@pytest.mark.parametrize(("option", "answer"), [("grants", REQUEST.grant("ann")), ("denials", REQUEST.deny(by="ann"))])
async def test_one_answer_in_the_place_of_a_list_is_told(give: Any, option: str, answer: Any) -> None:
    with pytest.raises(TypeError, match=rf"{option}.* list of .*, as in {option}=\["):
        await give(**{option: answer})


OTHERS: dict[str, Callable[[ApprovalRequest], Grant | Denial]] = {
    "person": lambda asked: asked.grant("ben"),
    "edit": lambda asked: asked.grant("ann", override_args={"euros": 2}),
    "input": lambda asked: asked.grant("ann", user_input="two"),
    "expiry": lambda asked: asked.grant("ann", expires_at=now() + timedelta(hours=1)),
    "standing": lambda asked: asked.always("ann"),
    "denial": lambda asked: asked.deny(by="ann"),
}


async def plan_with(*others: Callable[[ApprovalRequest], Grant | Denial]) -> None:
    plan = await waiting()
    await plan.resolve([make(plan.suspended[0].request) for make in others])  # pyright: ignore[reportArgumentType]


async def toolkit_with(*others: Callable[[ApprovalRequest], Grant | Denial]) -> None:
    kit = Toolkit([pay], sandbox=FakeSandbox(("pay", {"euros": 1})))
    result: Any = await kit.execute_async("...")
    await kit.resume_async(result.paused, grants=[make(result.suspended_calls[0].request) for make in others])


async def framework_with(*others: Callable[[ApprovalRequest], Grant | Denial]) -> None:
    [*answered([("first", REQUEST)], [make(REQUEST) for make in others])]


@pytest.mark.parametrize("give", [plan_with, toolkit_with, framework_with], ids=["plan", "toolkit", "frameworks"])
@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
async def test_two_answers_of_one_request_that_differ_are_refused(give: Any, other: Any) -> None:
    def grant(asked: ApprovalRequest) -> Grant:
        return asked.grant("ann")

    for both in ((grant, other), (other, grant), (other, lambda asked: asked.deny(by="eve", message="no"))):
        with pytest.raises(ApprovalError, match="of one request are given; give one of them"):
            await give(*both)
    await give(grant)


async def test_answers_in_the_place_of_the_run_are_told() -> None:
    kit = Toolkit([pay], sandbox=FakeSandbox(("pay", {"euros": 1})))
    result: Any = await kit.execute_async("...")
    grant: Any = result.suspended_calls[0].grant("ann")

    for run in (grant, [grant]):
        with pytest.raises(TypeError, match=r"answers are given by name, as in grants=\[grant\]"):
            await kit.resume_async(result.paused, run)
    with pytest.raises(TypeError, match=r"give `result\.paused`, or PausedProgram\.from_bytes"):
        await kit.resume_async(result, grants=[grant])


def test_plain_code_resolves_a_plan_and_runs_its_round() -> None:
    messages: list[Any] = []
    round = decode([pay], wire_reply("openai", [ToolCall("pay", {"euros": 1}, "c1")]))
    plan = round.run_sync(messages)

    resolved = plan.resolve_sync([plan.suspended[0].request.grant("ann")])
    round.run_sync(messages)

    assert resolved is plan
    assert (round.settled, messages[-1]["content"]) == (True, "1 paid")
