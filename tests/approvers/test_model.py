"""A second model as an approver: its no is a no, and its yes counts where a rule lists it."""

from __future__ import annotations

from typing import Any

import pytest

from toolcrib import Pipeline, Run, ToolCall, Toolset
from toolcrib.approvals import MemoryApprovalStore, answer_of
from toolcrib.approvers import ApproverRule, ApproverRules, Groups, Identity, ModelVerdict, model_approver
from toolcrib.calls import ApprovalRequest, Consent, Grant, Outcome
from toolcrib.record import ListSink
from toolcrib.tools import ez_tool

RULES = ApproverRules(
    [
        ApproverRule(name="small", tools=["refund"], up_to={"amount": 20}, of="reviewers"),
        ApproverRule(name="large", tools=["refund"], over={"amount": 20}, of="support"),
    ],
    Groups({"reviewers": ["risk-check", "sue"], "support": ["sue"]}),
)


@ez_tool
async def refund(amount: float) -> str:
    """Refund an order."""
    return f"refunded {amount}"


def judge_of(says: Any) -> Any:
    async def judge(request: ApprovalRequest) -> ModelVerdict:
        if isinstance(says, Exception):
            raise says
        return ModelVerdict(says, "as it looks")

    return judge


async def outcome_of(
    says: Any, amount: float, *, otherwise: Any = None, gates: Any = (RULES,), name: str = "risk-check", **run: Any
) -> Outcome:
    tools = Toolset([refund]).with_gates(*gates) if gates else Toolset([refund]).with_approval(names=["refund"])
    approver = model_approver(judge_of(says), name, otherwise)
    return await Pipeline(tools).run(ToolCall("refund", {"amount": amount}), Run(approver=approver, **run))


@pytest.mark.parametrize(
    ("says", "amount", "kind"),
    [
        ("yes", 5, "completed"),
        ("yes", 5000, "suspended"),
        ("no", 5, "rejected"),
        ("no", 5000, "rejected"),
        ("unsure", 5, "suspended"),
        ("YES", 5, "suspended"),
        (TimeoutError("late"), 5, "suspended"),
    ],
)
async def test_a_model_says_no_to_all_and_yes_to_what_a_rule_lists_it_for(says: Any, amount: float, kind: str) -> None:
    for store in (None, MemoryApprovalStore()):
        assert (await outcome_of(says, amount, principal="ada", approvals=store)).kind == kind


async def test_a_request_without_a_rule_is_for_people() -> None:
    assert (await outcome_of("yes", 5, gates=(), principal="ada")).kind == "suspended"


async def test_a_model_of_another_name_and_one_that_acts_for_itself_approve_nothing() -> None:
    other = await outcome_of("yes", 5, principal="ada", name="somebody")
    itself = await outcome_of("yes", 5, principal="risk-check")

    assert (other.kind, itself.kind) == ("suspended", "suspended")


async def test_people_are_asked_about_what_the_model_may_not_approve() -> None:
    async def ask(request: ApprovalRequest) -> Grant:
        return request.grant(Identity("sue", "console"))

    assert (await outcome_of("yes", 5000, otherwise=ask, principal="ada")).kind == "completed"


@pytest.mark.parametrize("says", ["yes", "no"])
async def test_the_record_says_that_a_model_said_it(says: str) -> None:
    sink = ListSink()

    await outcome_of(says, 5, principal="ada", sinks=(sink,))

    approval = sink.records[0].approval
    assert approval is not None
    assert (approval["approver"], approval["message"]) == ("risk-check (model)", "as it looks")


@pytest.mark.parametrize("reply", [None, "yes", True])
async def test_people_are_asked_where_the_model_gives_no_verdict(reply: Any, caplog: pytest.LogCaptureFixture) -> None:
    async def judge(request: ApprovalRequest) -> Any:
        return reply

    request = ApprovalRequest("ask_1", "call_1", "refund", {"amount": 5}, "d")

    assert await answer_of(model_approver(judge, "risk-check"), request) is None
    assert "gave no ModelVerdict" in caplog.text


@pytest.mark.parametrize(
    "about",
    [{"in_doubt": True}, {"asked_by": "server"}, {"consent": Consent("sign in")}],
    ids=lambda about: next(iter(about)),
)
async def test_a_doubt_a_question_of_a_server_and_a_consent_are_not_the_model_s(about: dict[str, Any]) -> None:
    request = ApprovalRequest("ask_1", "call_1", "refund", {"amount": 5}, "d", **about)

    assert await answer_of(model_approver(judge_of("no"), "risk-check"), request) is None
