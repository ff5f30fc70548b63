"""What somebody writes who knows other frameworks: the error says what is meant here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from toolcrib.approvals import MemoryApprovalStore
from toolcrib.approvers import ApproverRule, ApproverRules, Groups
from toolcrib.budgets import Budgets, Limit
from toolcrib.calls import ApprovalRequest, ToolCall
from toolcrib.code import Toolkit
from toolcrib.errors import ToolConstraintError
from toolcrib.pipeline import CallLimits, Pipeline, Run
from toolcrib.rounds import Session, decode
from toolcrib.schema import RunContext
from toolcrib.serving import GuardPolicy
from toolcrib.serving.frameworks import FrameworkRuns, GuardedTools
from toolcrib.testing import ScriptedModel
from toolcrib.tools import Cost, ez_tool, tool
from toolcrib.toolsets import Toolset
from toolcrib.turns import Agent, Turn


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


TOOLS = Toolset([ez_tool(pay)])
REQUEST = ApprovalRequest("ask_1", "1", "pay", {"cents": 1}, "d")


class Unopened:
    """A source whose tools are not known before it is opened."""

    def open_source(self, ctx: RunContext[Any]) -> Any:
        raise AssertionError("nothing opens it")


@pytest.mark.parametrize(
    ("write", "mend"),
    [
        (lambda: ToolCall({"cents": 1}, "pay"), "the name comes first"),
        (lambda: ToolCall(ez_tool(pay), {"cents": 1}), "give the name of the tool: 'pay'"),
        (lambda: ToolCall("pay", None), "give the arguments by name, as a dict or as its JSON"),
        (lambda: ToolCall("pay", [1]), "give the arguments by name, as a dict or as its JSON"),
        (lambda: ToolCall("pay", {}, 7), "id is 7; give a text"),
        (lambda: ToolCall("pay", {}, origin="user"), "origin is 'user'; give 'model' or 'host'"),
        (lambda: REQUEST.grant({"cents": 2}), r"grant\('ann', override_args=\{...\}\)"),
        (lambda: ez_tool(requires_approval="always")(pay), "requires_approval is 'always'; give True, False, or a"),
        (lambda: ez_tool(lambda cents: cents), "give one, as in name='add'"),
        (lambda: TOOLS.with_approval("pay"), r"with_approval\(names=\[...\]\)"),
        (lambda: TOOLS.with_approval(["pay"]), r"with_approval\(names=\[...\]\)"),
        (lambda: TOOLS.with_approval(lambda: True), r"is called with \(arguments, ctx\)"),
        (lambda: TOOLS.with_hooks(print), r"with_hooks: hooks is .* give a HookSet\(\)"),
        (lambda: Toolset([pay], hooks=print), r"a toolset: hooks is .* give a HookSet\(\)"),
        (lambda: Toolset([pay], pre_hooks=[print]), r"as in pre_hooks=\{'refund': fn\}"),
        (lambda: Toolset([pay], post_hooks=print), r"as in post_hooks=\{'refund': fn\}"),
        (lambda: Toolset(pay, pay), r"Toolset\(\[first, second\]\)"),
        (lambda: Toolset([Unopened()]).names(), "open it: `async with toolset.open"),
        (lambda: Toolset([Unopened()]).definitions(), "open it: `async with toolset.open"),
        (lambda: Run(approver=lambda: True), r"approver is not .* a function of the request"),
        (lambda: Session(ScriptedModel("Hi."), run=Run), r"give a run, as in run=Run\("),
        (lambda: Session(ScriptedModel("Hi."), store="a.db", id=5), "the id of a session is printable text"),
        (lambda: FrameworkRuns("x", lambda ctx: {"user": 1}, None).find("k", None), r"give a run, as in run=Run\("),
        (lambda: GuardPolicy(approve=ez_tool(pay)), r"is called with \(arguments, ctx\)"),
        (lambda: GuardPolicy(approve=lambda: True), r"is called with \(arguments, ctx\)"),
        (lambda: GuardPolicy(["pay"], CallLimits(total=1)), r"run=lambda ctx: Run\("),
        (lambda: GuardPolicy(run="ann"), r"run=lambda ctx: Run\("),
        (lambda: GuardPolicy(run=pay), r"run=lambda ctx: Run\("),
        (lambda: GuardPolicy(run=Run), r"run=lambda ctx: Run\("),
        (lambda: GuardPolicy(sinks=[print]), r"sinks=\[ListSink\(\)\]"),
        (lambda: GuardPolicy(hooks=print), r"GuardPolicy: hooks is .* give a HookSet\(\)"),
        (lambda: GuardPolicy(limits=3), r"CallLimits\(total=3\)"),
        (lambda: GuardPolicy(limits={"pay": 1}), r"CallLimits\(per_tool=\{'pay': 1\}\)"),
        (lambda: Run(limits={"pay": 1}), r"CallLimits\(per_tool=\{'pay': 1\}\)"),
        (lambda: CallLimits({"pay": 1}), r"per_tool=\{'pay': 1\}"),
        (lambda: CallLimits(per_tool=["pay"]), r"give numbers by name, as in per_tool=\{'pay': 1\}"),
        (lambda: Run(durability=MemoryApprovalStore()), r"Durability\(store=...\)"),
        (lambda: Run(gates=[Limit(calls=1)]), r"Budgets\(\[Limit\(...\)\]\)"),
        (lambda: Run(gates=[CallLimits(total=1)]), r"Run\(limits=CallLimits\(...\)\)"),
        (lambda: Run(gates=[ApproverRule(name="x")]), r"ApproverRules\(\[ApproverRule\(...\)\], groups\)"),
        (lambda: Run(approver=lambda ctx, args: True), "it is a function of the request"),
        (lambda: GuardPolicy(approve=lambda ctx, args: args["cents"] > 3), r"write \(arguments, ctx\)"),
        (lambda: TOOLS.with_approval(lambda context, arguments: True), r"write \(arguments, ctx\)"),
        (lambda: ez_tool(requires_approval=lambda run_context, _: True)(pay), "and not the `ctx`"),
        (lambda: Toolset([pay], pre_hooks={"pay": lambda args, ctx, metadata: args}), "is given the `ctx`"),
        (lambda: Budgets([Limit(calls=1)], store="u.db"), r"SqliteUsageStore\('usage.db'\)"),
        (lambda: Budgets([Limit(calls=1)], store=MemoryApprovalStore()), r"SqliteUsageStore\('usage.db'\)"),
        (lambda: Budgets([], costs=[Cost(1, "EUR")]), r"costs=\{'pay': Cost\(30, 'EUR'\)\}"),
        (lambda: Limit(3), "Limit takes its options by name: calls=..., spend=..."),
        (lambda: ApproverRule("x", ["pay"]), "ApproverRule takes its options by name: name=..., of=..."),
        (lambda: CallLimits(1, 2, 3, (), 5), "CallLimits takes total, per_tool, concurrency, requirements by position"),
        (lambda: ApproverRule(name="x", of=["finance"]), r"of=\{'finance': 1\}"),
        (lambda: ApproverRule(name="x", over=1000), r"over=\{'amount': 1000\}"),
        (lambda: Groups(["ann"]), r"Groups\(\{'finance': \['ann'\]\}\)"),
        (lambda: ApproverRules([ApproverRule(name="x")], {"f": ["ann"]}), r"give Groups\(\{'finance': \['ann'\]\}\)"),
        (lambda: Toolkit(TOOLS, limits=CallLimits(total=1)), r"run=Run\(limits=CallLimits\(...\)\)"),
    ],
)
def test_a_value_of_another_kind_is_refused_where_it_is_given(write: Callable[[], Any], mend: str) -> None:
    with pytest.raises((TypeError, ValueError), match=mend):
        write()


@pytest.mark.parametrize(
    "opened",
    [
        Run(),
        TOOLS,
        Pipeline(TOOLS),
        Session(ScriptedModel("Hi.")),
        Agent("trips", "Plans trips.", [], register=False),
        Toolkit(TOOLS),
        MemoryApprovalStore(),
        Toolset([Unopened()]),
    ],
    ids=lambda opened: type(opened).__name__,
)
async def test_what_needs_no_with_says_what_to_write(opened: Any) -> None:
    with pytest.raises(AttributeError, match="Here it is"), opened:
        pass
    with pytest.raises(AttributeError, match="Here it is"):
        async with opened:
            pass


def test_toolsets_are_added_by_combined() -> None:
    with pytest.raises(AttributeError, match=r"`Toolset\.combined\(first, second\)`"):
        _ = TOOLS + TOOLS  # type: ignore[operator]


def test_a_parameter_without_a_type_is_named_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    @ez_tool
    def add(a, b=1, *, c: int = 2):  # type: ignore[no-untyped-def]
        """Add."""

    properties = add.parameters["properties"]

    assert properties == {"a": {}, "b": {"default": 1}, "c": {"default": 2, "type": "integer"}}
    assert "`add` takes any value for `a`, `b`, which have no type annotation" in caplog.text


def test_a_policy_of_two_guards_knows_the_tools_of_each() -> None:
    policy = GuardPolicy(approve=["pay"])
    first, second = GuardedTools("x", policy, None), GuardedTools("x", policy, None)
    first.check_names(["pay"], are_all=True)

    with pytest.raises(ToolConstraintError):
        second.check_names(["play"], are_all=True)


def test_what_is_meant_is_taken() -> None:
    class Shop:
        @staticmethod
        @tool(register=False)
        async def pay(ctx: RunContext, cents: int) -> str:
            """Pay."""
            return f"paid {cents}"

    assert [entry.name for entry in Toolset([Shop.pay])] == ["pay"]
