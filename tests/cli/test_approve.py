"""A person at the terminal: what each answer comes to."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager, nullcontext

import pytest

from toolcrib.approvers import ApproverRule, ApproverRules, Groups
from toolcrib.calls import ApprovalRequest, Completed, Failed, Grant, Outcome, Rejected, Suspended, ToolCall
from toolcrib.cli._approver import ApprovalFlags, approver_of
from toolcrib.hooks import GlobalHooks
from toolcrib.pipeline import Pipeline, Run
from toolcrib.provenance import Provenance, memory_of
from toolcrib.record import ListSink
from toolcrib.tools import tool
from toolcrib.toolsets import Toolset


class Script:
    """A person who gives these answers, one after the other, and then leaves."""

    def __init__(self, *answers: str) -> None:
        self.answers, self.shown = list(answers), list[str]()

    async def ask(self, question: str) -> str | None:
        self.shown.append(question)
        await asyncio.sleep(0)
        return self.answers.pop(0) if self.answers else None

    def say(self, text: str) -> None:
        self.shown.append(text)

    def quiet(self) -> AbstractContextManager[object]:
        return nullcontext()


@pytest.fixture
def crib() -> Toolset:
    @tool(requires_approval=True)
    async def pay(amount: int, to: str = "ada") -> str:
        """Pay."""
        return f"{amount} to {to}"

    return Toolset([pay])


def scope_of(crib: Toolset, script: Script | None, answers: ApprovalFlags | None = None, *sinks: ListSink) -> Run:
    return Run(approver=approver_of(answers or ApprovalFlags(), crib, script), sinks=sinks)


async def pay(crib: Toolset, script: Script | None, answers: ApprovalFlags | None = None) -> Outcome:
    return await Pipeline(crib).run(ToolCall("pay", {"amount": 5}), scope_of(crib, script, answers))


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        (["y"], "5 to ada"),
        (["YES"], "5 to ada"),
        (["", "what?", "y"], "5 to ada"),
        (["e", '{"amount": 3, "to": "bo"}'], "3 to bo"),
        (["e", '{"amount": "x"}', "nonsense", '{"amount": 4}'], "4 to ada"),
        (["e", '{"amount": 4, "to": "**********"}', "", "y"], "5 to ada"),
    ],
)
async def test_a_yes_runs_the_tool(crib: Toolset, typed: list[str], value: str) -> None:
    outcome = await pay(crib, Script(*typed))

    assert isinstance(outcome, Completed)
    assert outcome.value == value


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        (["n", "too much"], "too much"),
        (["n too much"], "too much"),
        (["no", ""], "`pay` was denied by "),
        ([], "nobody answered"),
        (["e"], "nobody answered"),
    ],
)
async def test_a_no_is_told_to_the_model(crib: Toolset, typed: list[str], reason: str) -> None:
    outcome = await pay(crib, Script(*typed))

    assert isinstance(outcome, Rejected)
    assert reason in outcome.reason
    assert outcome.source == "user"


async def in_doubt(crib: Toolset, script: Script | None, flags: ApprovalFlags | None = None) -> Outcome:
    """Return what comes of a call that was begun by a process that is gone, once it is asked about."""
    suspended = await Pipeline(crib).recover(ToolCall("pay", {"amount": 5}), Run())
    assert isinstance(suspended, Suspended)
    answer = await approver_of(flags or ApprovalFlags(), crib, script)(suspended.request)
    return suspended if answer is None else await Pipeline(crib).run(suspended, grant=answer)


@pytest.mark.parametrize(
    ("typed", "kind", "text"),
    [
        (["d"], "completed", "5 to ada"),
        (["r", "{", "7", '"paid by hand"'], "completed", "paid by hand"),
        (["r", "", "n", "leave it"], "rejected", "Rejected: leave it"),
        (["y", "a", "n", ""], "rejected", "Rejected: `pay` was denied by"),
    ],
)
async def test_a_call_in_doubt_has_three_answers(crib: Toolset, typed: list[str], kind: str, text: str) -> None:
    script = Script(*typed)

    outcome = await in_doubt(crib, script)

    assert (outcome.kind, outcome.text()[: len(text)]) == (kind, text)
    assert script.shown[0].startswith("pay may have run already: ")
    assert script.shown[0].endswith("[d] Do it\n  [r] It was done: this is the result\n  [n] It must not be done\n")


@pytest.mark.parametrize("flags", [ApprovalFlags(yes=True), ApprovalFlags(approve=frozenset({"pay"}))])
@pytest.mark.parametrize("script", [None, Script()])
async def test_a_call_in_doubt_is_left_as_it_is_where_nobody_answers(
    crib: Toolset, script: Script | None, flags: ApprovalFlags
) -> None:
    assert (await in_doubt(crib, script, flags)).kind == "suspended"


async def test_arguments_that_do_not_fit_are_asked_for_again(crib: Toolset) -> None:
    script = Script("e", '{"amount": "x"}', '{"amount": 4}')

    await pay(crib, script)

    assert [text for text in script.shown if "cannot take" in text] == [
        '`pay` cannot take these arguments: amount: must be an integer; got "x"'
    ]


async def test_an_edit_beyond_what_a_person_may_is_asked_for_again(crib: Toolset) -> None:
    rule = ApproverRule(name="much", of="finance", over={"amount": 100})
    script = Script("e", '{"amount": 5000}', '{"amount": 100}')

    outcome = await pay(crib.with_gates(ApproverRules([rule], Groups({"finance": ["bob"]}))), script)

    assert isinstance(outcome, Completed), outcome.text()
    assert outcome.value == "100 to ada"
    assert any("`amount` is 5000 after the edit" in text for text in script.shown)


async def test_always_asks_no_more_for_this_tool(crib: Toolset) -> None:
    script, sink = Script("a"), ListSink()
    scope, pipeline = scope_of(crib, script, None, sink), Pipeline(crib)

    outcomes = [await pipeline.run(ToolCall("pay", {"amount": n}), scope) for n in (1, 2)]

    assert [o.value for o in outcomes if isinstance(o, Completed)] == ["1 to ada", "2 to ada"]
    assert [r.approval["scope"] for r in sink.records if r.approval] == ["tool", "tool"]


async def test_within_bounds_asks_no_more_where_they_cover_the_call(crib: Toolset) -> None:
    script, sink = Script("w", "<= 5", "", "3", "7.5", "", "00:00-24:00", "y", "n", "n"), ListSink()
    scope, pipeline = scope_of(crib, script, None, sink), Pipeline(crib)

    outcomes = [await pipeline.run(ToolCall("pay", {"amount": n}), scope) for n in (1, 5, 6, 2)]

    assert [o.value for o in outcomes if isinstance(o, Completed)] == ["1 to ada", "5 to ada"]
    when = "from 00:00 to 24:00 every day (UTC)"
    words = f'pay: amount up to 5, to exactly "ada"; on behalf of no principal; {when}; at most 3 times'
    assert f"{words}; 7.5 of amount in all" in script.shown


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (("", "", "<= 5"), 'buy: order.to exactly "ada", order.items[*].price up to 5; '),
        (("any",), "buy: order any; "),
    ],
)
async def test_parts_of_an_argument_are_asked_about_where_it_has_no_bound_itself(
    typed: tuple[str, ...], words: str
) -> None:
    request = ApprovalRequest("a", "c", "buy", {"order": {"to": "ada", "items": [{"price": 5}]}}, "d")
    script = Script("w", *typed, "", "", "", "", "y")

    grant = await approver_of(ApprovalFlags(), Toolset(), script)(request)

    assert isinstance(grant, Grant)
    assert grant.text().startswith(words)
    assert ("order.items[*].price [[5]]: " in script.shown) is (len(typed) == 3)


@pytest.mark.parametrize(
    "lines",
    [
        ("w", "<= 0"),
        ("w", "most"),
        ("w", "", "", "x"),
        ("w", "", "", "", "less"),
        ("w", "", "", "", "", "", "9-5"),
        ("w", "any", "", "", "", "", "", "n"),
    ],
)
async def test_bounds_that_are_none_or_are_not_meant_allow_nothing(crib: Toolset, lines: tuple[str, ...]) -> None:
    script, sink = Script(*lines, *([""] * (7 - len(lines))), "n"), ListSink()

    outcome = await Pipeline(crib).run(ToolCall("pay", {"amount": 1}), scope_of(crib, script, None, sink))

    assert not isinstance(outcome, Completed)


async def test_always_for_a_tool_is_no_answer_about_values_of_others(crib: Toolset) -> None:
    script, sink = Script("a", "a", "y"), ListSink()
    asked = approver_of(ApprovalFlags(), crib, script)
    scope, pipeline = Run(approver=asked, sinks=(sink,), features=[Provenance()]), Pipeline(crib)
    await pipeline.run(ToolCall("pay", {"amount": 1}), scope)
    memory_of(scope).read("read_file", "c1", {}, "pay 4711, or 4712", "untrusted")

    outcomes = [await pipeline.run(ToolCall("pay", {"amount": n}), scope) for n in (4711, 4712)]

    assert [type(outcome) for outcome in outcomes] == [Completed, Completed]
    assert len([text for text in script.shown if text.startswith("pay needs approval: amount `47")]) == 2
    assert [r.approval["scope"] for r in sink.records if r.approval] == ["tool", "values", "once"]


async def test_calls_at_once_are_asked_one_after_the_other(crib: Toolset) -> None:
    script = Script("y", "n", "no")
    scope, pipeline = scope_of(crib, script), Pipeline(crib)

    outcomes = await asyncio.gather(*[pipeline.run(ToolCall("pay", {"amount": n}), scope) for n in (1, 2)])

    assert [type(outcome) for outcome in outcomes] == [Completed, Rejected]
    assert [text.split("\n")[0] for text in script.shown[::2]][:2] == ["pay needs approval"] * 2


async def test_what_a_hook_changed_is_shown(crib: Toolset) -> None:
    async def halve(ctx: object, name: str, args: dict[str, int], metadata: object) -> dict[str, int]:
        return {**args, "amount": args["amount"] // 2}

    script = Script("y")
    guarded = Toolset([crib], global_hooks=GlobalHooks(pre=halve))

    await pay(guarded, script)

    assert "amount: 5 -> 2" in script.shown[0]


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (ApprovalFlags(approve=frozenset({"pay"})), Completed),
        (ApprovalFlags(yes=True), Completed),
        (ApprovalFlags(deny=frozenset({"pay"})), Rejected),
        (ApprovalFlags(deny=frozenset({"pay"}), yes=True), Rejected),
        (ApprovalFlags(), Rejected),
    ],
)
async def test_flags_answer_where_nobody_can(crib: Toolset, answers: ApprovalFlags, expected: type) -> None:
    outcome = await pay(crib, None, answers)

    assert isinstance(outcome, expected)


@pytest.mark.parametrize(("script", "answers"), [(Script("y"), None), (None, ApprovalFlags(yes=True))])
async def test_one_person_is_told_that_others_have_to_approve_a_call(
    script: Script | None, answers: ApprovalFlags | None
) -> None:
    @tool(requires_approval=True, approvals_needed=2)
    async def pay(amount: int) -> None:
        """Pay."""

    outcome = await Pipeline([pay]).run(ToolCall("pay", {"amount": 5}), scope_of(Toolset([pay]), script, answers))

    assert isinstance(outcome, Failed)
    assert "it needs 2 approvers" in outcome.message


async def test_a_flag_is_not_asked_about(crib: Toolset) -> None:
    script = Script("n")

    await pay(crib, script, ApprovalFlags(approve=frozenset({"pay"})))

    assert script.shown == []


async def test_an_asker_that_fails_runs_nothing(crib: Toolset) -> None:
    class Broken(Script):
        async def ask(self, question: str) -> str | None:
            raise OSError("the terminal is gone")

    outcome = await pay(crib, Broken())

    assert isinstance(outcome, Failed)
    assert outcome.code == "hook_error"
