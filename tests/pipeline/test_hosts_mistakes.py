"""Mistakes of a host: refused where they are made, with the mend, and never told to a model."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from toolcrib.calls import Consent, Failed, Suspended, ToolCall
from toolcrib.pipeline import CallLimits, Channel, Pipeline, Run
from toolcrib.tools import BaseTool, ez_tool
from toolcrib.toolsets import Toolset


@ez_tool(requires_approval=True)
def pay(cents: int) -> str:
    """Pay."""
    return f"paid {cents}"


class Paying(BaseTool):
    """Pay, with consent."""

    name = "paying"

    def get_consent(self, ctx: Any) -> Consent | None:
        return Consent("ann has not consented", "https://example.org", "ann", "pay")

    async def call(self, ctx: Any, cents: int) -> str:
        return f"paid {cents}"


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
@pytest.mark.parametrize("view", [False, True], ids=["run", "view"])
def test_a_run_is_not_copied(duplicate: Callable[[Any], Any], view: bool) -> None:
    run = Run(limits=CallLimits(total=1))

    with pytest.raises(TypeError, match=r"run\.view"):
        duplicate(run.view(principal="ann") if view else run)


@pytest.mark.parametrize(
    ("options", "words"),
    [({"errors": "hide"}, "'masked'"), ({"hook_errors": "ignore"}, "'fail'"), ({"errors": None}, "'message'")],
)
def test_a_word_that_a_channel_does_not_know_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Channel(**options)
    with pytest.raises(ValueError, match=words):
        Run().view(**options)


@pytest.mark.parametrize("answer", [True, "yes", {"approved": True}, ToolCall("pay")])
async def test_what_is_no_answer_is_refused_and_the_call_waits_on(answer: Any) -> None:
    pipeline = Pipeline([pay])
    suspended = await pipeline.run(ToolCall("pay", {"cents": 1}))
    assert isinstance(suspended, Suspended)

    with pytest.raises(TypeError, match=r"request\.grant"):
        await pipeline.run(suspended, grant=answer)

    done = await pipeline.run(suspended, grant=suspended.request.grant("ann"))
    assert done.value == "paid 1"


@pytest.mark.parametrize("answer", [True, False, "yes", {"approved": True}])
async def test_an_approver_without_an_answer_fails_the_call_and_the_log_has_the_mend(
    answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def ask(request: Any) -> Any:
        return answer

    outcomes = [
        await Pipeline([one]).run(ToolCall(one.name, {"cents": 1}), Run(approver=ask))
        for one in Toolset([pay, Paying()]).tools()
    ]

    for outcome, record in zip(outcomes, caplog.records, strict=True):
        assert isinstance(outcome, Failed)
        assert outcome.code == "hook_error"
        assert outcome.message.startswith(f"the host's approver for `{outcome.tool}` failed")
        assert f"it returned {answer!r}; return request.grant" in str(outcome.exception)
        assert record.exc_info is not None


@pytest.mark.parametrize("also", [(), ("ben",)])
async def test_an_approver_that_answers_for_fewer_people_than_the_tool_needs_is_the_hosts_mistake(
    also: tuple[str, ...],
) -> None:
    @ez_tool(requires_approval=True, approvals_needed=2)
    async def transfer() -> str:
        return "sent"

    outcome = await Pipeline([transfer]).run(
        ToolCall("transfer"), Run(approver=lambda request: request.grant("ann", also=also))
    )

    if also:
        assert outcome.text() == "sent"
    else:
        assert isinstance(outcome, Failed)
        assert (outcome.code, "2 approvers" in outcome.text()) == ("hook_error", False)
        assert "does not fit the request: it needs 2 approvers" in str(outcome.exception)


def test_an_approver_that_is_no_function_is_refused_with_an_example() -> None:
    yes: Any = True

    with pytest.raises(TypeError, match=r"approver is not True; .* return request\.grant\(by='ann'\)`"):
        Run(approver=yes)


def test_reprs_say_in_a_line_what_is_given_and_no_values_of_a_run() -> None:
    run = Run("r1", deps={"password": "secret"}, principal="ann", limits=CallLimits(total=3))
    suspended = Pipeline([pay]).run_sync(ToolCall("pay", {"cents": 1}))
    assert isinstance(suspended, Suspended)

    assert repr(run) == "<Run r1 of ann: deps, limits>"
    assert repr(Run("r2")) == "<Run r2>"
    assert repr(Pipeline([pay])) == "<Pipeline of <Toolset of 1 tool>>"
    assert "None" not in repr(suspended.request)
    assert "None" not in repr(suspended.request.grant("ann"))
