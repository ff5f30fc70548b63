"""Gates of a user: their order, their answers, the occasions on which calls pass them, and what `explain` says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from textwrap import dedent
from typing import Any, get_args

import pytest

from toolcrib.approvals import AgentContext, MemoryApprovalStore, approve_all
from toolcrib.calls import Ask, Complete, Completed, Failed, Outcome, Reject, Rejected, RunNormally, Suspended, ToolCall
from toolcrib.errors import UnknownTool
from toolcrib.hooks import HookSet, Occasion, Stage, per_value
from toolcrib.pipeline import CallLimits, Durability, Pipeline, Run, is_call
from toolcrib.provenance import Provenance
from toolcrib.record import ListSink
from toolcrib.results import MemoryResultStore
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset

STAGES: tuple[Stage, ...] = get_args(Stage)


@ez_tool
async def send(text: str = "", times: int = 1) -> str:
    """Send a text."""
    return text * times


class Asked:
    """A gate that notes when it is asked, and about what."""

    def __init__(self, stage: Stage, answer: Any = None, occasions: Iterable[Occasion] = get_args(Occasion)) -> None:
        self.stage, self.answer, self.occasions = stage, answer, occasions
        self.name = f"at {stage}"
        self.seen: list[Any] = []

    def check(self, call: Any) -> Any:
        self.seen.append(dict(call.arguments))
        return self.answer(call) if callable(self.answer) else self.answer


async def called(*gates: Any, arguments: Any = None, run: Run | None = None) -> Outcome:
    tools = Toolset([send]).with_gates(*gates)
    return await Pipeline(tools).run(ToolCall("send", arguments or {"text": "x"}, id="c1"), run)


# --- their order


@pytest.mark.parametrize("is_async", [False, True])
async def test_gates_are_asked_by_stage_and_those_of_the_tool_before_those_of_the_run(is_async: bool) -> None:
    order: list[tuple[str, str]] = []

    def gate(stage: Stage, whose: str) -> Asked:
        async def later(noted: None) -> None: ...

        def answer(call: Any) -> Any:
            noted = order.append((stage, whose))
            return later(noted) if is_async else None

        return Asked(stage, answer)

    tools = Toolset([send]).with_gates(*(gate(stage, "tool") for stage in reversed(STAGES)))
    run = Run(gates=[gate(stage, "run") for stage in reversed(STAGES)])

    outcome = await Pipeline(tools).run(ToolCall("send", {"text": "x"}), run)

    assert isinstance(outcome, Completed)
    assert order == [(stage, whose) for stage in STAGES for whose in ("tool", "run")]


async def test_a_gate_of_an_outer_toolset_is_asked_first() -> None:
    order: list[str] = []
    inner = Toolset([send]).with_gates(lambda call: order.append("inner"))

    await Pipeline(Toolset([inner]).with_gates(lambda call: order.append("outer"))).run(ToolCall("send"))

    assert order == ["outer", "inner"]


async def test_arguments_are_read_after_validate_and_final_at_authorize() -> None:
    gates = [Asked("validate"), Asked("decide"), Asked("authorize")]

    def double(ctx: Any, args: Any, metadata: Any) -> Any:
        return {**args, "times": args["times"] * 2}

    tools = Toolset([send], pre_hooks={"send": double}).with_gates(*gates)
    await Pipeline(tools).run(ToolCall("send", '{"text": "x", "times": 2}'))

    assert [gate.seen for gate in gates] == [[{}], [{"text": "x", "times": 2}], [{"text": "x", "times": 4}]]


async def test_a_gate_is_not_asked_where_an_earlier_stage_ended_the_call() -> None:
    later = Asked("authorize")

    outcome = await called(later, Asked("decide", Reject("no")))

    assert isinstance(outcome, Rejected)
    assert later.seen == []


# --- their answers


@pytest.mark.parametrize("stage", STAGES)
async def test_a_rejection_ends_the_call_and_is_in_the_record_by_the_name_of_the_gate(stage: Stage) -> None:
    sink = ListSink()

    outcome = await called(Asked(stage, Reject("after hours")), run=Run(sinks=[sink]))

    assert isinstance(outcome, Rejected)
    assert (outcome.reason, outcome.source) == ("after hours", "hook")
    [record] = sink.records
    assert [note.to_dict()["hook"] for note in record.decisions] == [f"at {stage}"]


@pytest.mark.parametrize("stage", STAGES)
async def test_a_question_of_a_gate_suspends_the_call_and_is_in_the_record_by_its_name(stage: Stage) -> None:
    sink = ListSink()

    outcome = await called(Asked(stage, Ask("a large one", {"cents": 5})), run=Run(sinks=[sink]))

    assert isinstance(outcome, Suspended)
    assert (outcome.request.reason, outcome.request.metadata["cents"]) == ("a large one", 5)
    decided = [event.data for event in sink.events if event.kind == "decided"]
    assert [(event["hook"], event["decision"]) for event in decided] == [(f"at {stage}", "ask")]


async def test_a_later_rejection_wins_over_a_question() -> None:
    outcome = await called(Asked("decide", Ask("?")), Asked("authorize", Reject("no")))

    assert isinstance(outcome, Rejected)


async def test_a_gate_completes_a_call_in_the_place_of_its_tool() -> None:
    outcome = await called(Asked("authorize", Complete("cached")))

    assert isinstance(outcome, Completed)
    assert (outcome.value, outcome.source) == ("cached", "hook")


async def test_a_gate_gives_an_outcome_of_its_own() -> None:
    outcome = await called(
        Asked("resolve", lambda call: Failed(call.name, call.id, "closed", "it is closed", "Closed"))
    )

    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.message) == ("closed", "it is closed")


def raises(call: Any) -> None:
    raise RuntimeError("no database")


async def raises_later(call: Any) -> None:
    raise RuntimeError("no database")


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (raises, "RuntimeError: no database"),
        (raises_later, "RuntimeError: no database"),
        (True, "it returned bool; return None, Reject, Ask, Complete or an outcome"),
        (lambda call: "no", "it returned str; return None, Reject, Ask, Complete or an outcome"),
    ],
)
async def test_a_gate_that_fails_or_answers_something_else_fails_the_call(stage: Stage, answer: Any, why: str) -> None:
    sink, after = ListSink(), Asked("approve")

    outcome = await called(Asked(stage, answer), after, run=Run(sinks=[sink]))

    assert isinstance(outcome, Failed)
    assert (outcome.error_type, after.seen) == ("HookError", [])
    assert f"at {stage}" in str(outcome.exception)
    assert why in str(outcome.exception)
    assert f"at {stage}" in sink.records[0].outcome["traceback"]


# --- the occasions


async def test_a_gate_for_new_calls_is_not_asked_again_when_one_comes_back() -> None:
    rate, always = Asked("authorize", occasions={"new"}), Asked("authorize")
    tools = Toolset([send]).with_gates(rate, always).with_approval()
    suspended: Any = await Pipeline(tools).run(ToolCall("send", {"text": "x"}))

    outcome = await Pipeline(tools).run(suspended, grant=suspended.request.grant())

    assert isinstance(outcome, Completed)
    assert (len(rate.seen), len(always.seen)) == (1, 2)


@pytest.mark.parametrize("as_json", [False, True])
async def test_a_gate_is_asked_again_when_a_call_comes_back_and_may_refuse_it_then(as_json: bool) -> None:
    answers: list[Any] = [Ask("a large one"), Reject("the office is closed now")]
    tools = Toolset([send]).with_gates(lambda call: answers.pop(0))
    suspended: Any = await Pipeline(tools).run(ToolCall("send", {"text": "x"}))
    state = json.loads(json.dumps(suspended.call.to_dict())) if as_json else suspended

    outcome = await Pipeline(tools).run(state, grant=suspended.request.grant())

    assert isinstance(outcome, Rejected)
    assert outcome.reason == "the office is closed now"


@pytest.mark.parametrize("stage", ["authorize", "approve"])
async def test_a_call_that_comes_back_asks_what_it_asked_before_and_once(stage: Stage) -> None:
    tools = Toolset([send]).with_gates(Asked(stage, Ask("a large one")))
    first: Any = await Pipeline(tools).run(ToolCall("send", {"text": "x"}))

    second: Any = await Pipeline(tools).run(first)
    third: Any = await Pipeline(tools).run(json.loads(json.dumps(second.call.to_dict())))

    assert [one.request.reason for one in (first, second, third)] == ["a large one"] * 3
    assert first.request.id == third.request.id
    assert isinstance(await Pipeline(tools).run(third, grant=third.request.grant()), Completed)


async def test_a_gate_sees_arguments_that_the_host_edited() -> None:
    small = Asked("authorize", lambda call: Reject("too often") if call.arguments["times"] > 3 else None)
    pipeline = Pipeline(Toolset([send]).with_gates(small))
    call: Any = await pipeline.admit(ToolCall("send", {"text": "x"}))

    outcome = await pipeline.readmit(call, arguments={"text": "x", "times": 4})

    assert isinstance(outcome, Rejected)


async def test_a_gate_is_not_asked_again_by_hooks_that_edit_nothing() -> None:
    gate, more = Asked("authorize", Ask("a large one")), HookSet()
    pipeline, run = Pipeline(Toolset([send]).with_gates(gate)), Run(approver=approve_all)

    @more.on("send")
    async def decide(call: Any, given: Any) -> Any:
        return RunNormally(given)

    call: Any = await pipeline.admit(ToolCall("send", {"text": "x"}), run)
    again: Any = await pipeline.readmit(call, hooks=more)

    assert is_call(again)
    assert len(gate.seen) == 1
    assert again.grant is call.grant


async def test_a_gate_sees_what_more_hooks_edit() -> None:
    small, more = Asked("authorize", lambda call: Reject("no") if call.arguments["times"] > 3 else None), HookSet()
    pipeline = Pipeline(Toolset([send]).with_gates(small))

    @more.on("send")
    async def decide(call: Any, given: Any) -> Any:
        return RunNormally({"text": "x", "times": 4})

    call: Any = await pipeline.admit(ToolCall("send", {"text": "x"}))

    assert isinstance(await pipeline.readmit(call, hooks=more), Rejected)


@pytest.mark.parametrize("stage", STAGES[2:])
async def test_a_gate_sees_what_an_approver_overrides(stage: Stage) -> None:
    gate = Asked(stage, lambda call: Reject("no") if call.arguments["times"] > 3 else None)
    tools = Toolset([send]).with_approval().with_gates(gate)
    suspended: Any = await Pipeline(tools).run(ToolCall("send", {"text": "x"}))

    grant = suspended.request.grant(override_args={"text": "x", "times": 4})
    outcome = await Pipeline(tools).run(suspended, grant=grant)

    assert isinstance(outcome, Rejected), outcome


async def test_what_an_approver_overrides_is_not_asked_about_again() -> None:
    gate = Asked("authorize", Ask("a large one"))
    tools = Toolset([send]).with_gates(gate)
    suspended: Any = await Pipeline(tools).run(ToolCall("send", {"text": "x"}))

    grant = suspended.request.grant(override_args={"text": "x", "times": 4})
    outcome = await Pipeline(tools).run(suspended, grant=grant)

    assert isinstance(outcome, Completed)
    assert outcome.value == "xxxx"
    assert gate.seen[-1] == {"text": "x", "times": 4}


@pytest.mark.parametrize("of_run", [False, True])
async def test_the_arguments_of_a_hosts_call_are_validated_where_a_gate_looks(of_run: bool) -> None:
    gate = Asked("authorize")
    tools, run = Toolset([send]), Run(gates=[gate]) if of_run else None

    pipeline = Pipeline(tools if of_run else tools.with_gates(gate))
    outcome = await pipeline.run(ToolCall("send", {"text": "x", "times": "3"}, origin="host"), run)

    assert isinstance(outcome, Completed)
    assert (gate.seen, outcome.value) == ([{"text": "x", "times": 3}], "xxx")


async def test_a_gate_at_resolve_leaves_a_hosts_objects_as_they_are() -> None:
    given: list[Any] = []

    @ez_tool
    async def keep(items: list[int]) -> None:
        given.append(items)

    items = [1, 2]
    pipeline = Pipeline(Toolset([keep]).with_gates(Asked("resolve")))
    await pipeline.run(ToolCall("keep", {"items": items}, origin="host"))

    assert given[0] is items


# --- runs


async def test_a_view_of_a_run_has_its_gates_and_a_nested_run_too() -> None:
    run = Run(gates=[Asked("authorize", Reject("no"))])

    outcome = await Pipeline([send]).run(ToolCall("send"), run.view(deps="other"))

    assert isinstance(outcome, Rejected)
    with pytest.raises(TypeError, match="a view of a run has no `gates` of its own"):
        run.view(gates=[])


async def test_a_view_that_offers_other_tools_has_them_asked_for_by_a_gate() -> None:
    pipeline, run = Pipeline([send]), Run()
    before = await pipeline.run(ToolCall("send"), run)

    outcome = await pipeline.run(ToolCall("send"), run.view(available=frozenset()))

    assert isinstance(before, Completed)
    assert isinstance(outcome, Failed)
    assert outcome.code == "not_available"


async def test_the_gates_of_a_run_hold_for_every_tool_and_for_no_other_run() -> None:
    pipeline = Pipeline([send])
    run = Run(gates=[lambda call: Reject("no")])

    assert isinstance(await pipeline.run(ToolCall("send"), run), Rejected)
    assert isinstance(await pipeline.run(ToolCall("send"), Run()), Completed)
    assert isinstance(await pipeline.run(ToolCall("send"), Run(gates=[lambda call: None])), Completed)


async def test_the_gates_of_very_many_runs_are_those_of_each() -> None:
    pipeline = Pipeline([send])
    refused: list[int] = []

    def refusing(number: int) -> Callable[[Any], Any]:
        return lambda call: refused.append(number) or Reject("no")

    for number in range(250):
        await pipeline.run(ToolCall("send"), Run(gates=[refusing(number)]))

    assert refused == [*range(250)]


# --- explain


class Mask:
    def deliver(self, call: Any, value: Any) -> Any:
        return value


def office_hours(call: Any) -> None: ...


def redact(ctx: Any, value: Any, metadata: Any) -> Any:
    return value


def trim(ctx: Any, args: Any, metadata: Any) -> Any:
    return args


def dedented(text: str) -> str:
    """Return a text without the indent of its block; the numbers are aligned to the right."""
    return dedent(text.strip("\n")).rstrip()


def large(arguments: Any, ctx: Any) -> bool:
    return True


def test_explain_lists_everything_in_order() -> None:
    hooks = HookSet()

    @hooks.on("rows")
    async def decide(call: Any, given: Any) -> Any:
        return RunNormally(given)

    @ez_tool(default=False)
    async def rows() -> Any:
        yield 1

    tools = (
        Toolset(
            [rows],
            pre_hooks={"rows": trim},
            post_hooks={"rows": [per_value(redact), redact]},
            results=MemoryResultStore(max_result_chars=100),
        )
        .with_scopes({"rows": "read"})
        .with_hooks(hooks)
        .with_approval(large)
        .with_gates(office_hours)
        .with_deliveries(Mask())
    )
    run = Run(
        gates=[Asked("resolve"), Asked("approve")],
        deliveries=[lambda call, value: value],
        limits=CallLimits(total=3),
        features=[Provenance()],
        available=frozenset({"rows"}),
        deps=AgentContext(need_user_approve_tools=["rows"]),
    )

    assert Pipeline(tools).explain("rows", run) == dedented("""
         1 resolve   offer
         2 resolve   scopes
         3 resolve   at resolve
         4 resolve   limits
         5 validate  the arguments are read
         6 decide    decision hooks
         7 edit      pre hooks
         8 authorize office_hours
         9 authorize provenance
        10 approve   large (approval policy)
        11 approve   at approve
        12 approve   deps
        13 execute   `rows` runs
        14 deliver   redact (post hook)
        15 deliver   redact (post hook)
        16 deliver   Mask
        17 deliver   <lambda>
        18 deliver   result store
    """)


def test_explain_of_a_tool_without_gates_is_two_lines() -> None:
    assert Pipeline([send]).explain("send") == " 1 validate  the arguments are read\n 2 execute   `send` runs"


def test_explain_names_the_tools_where_there_is_no_such() -> None:
    with pytest.raises(UnknownTool, match="send"):
        Pipeline([send]).explain("sent")


# --- right before the tool begins


class Counted:
    """A gate that lets everything pass, and notes what begins."""

    stage: Stage = "authorize"
    name = "counted"

    def __init__(self, answer: Any = None) -> None:
        self.answer, self.begun = answer, list[str]()

    def check(self, call: Any) -> None: ...

    async def begin(self, call: Any) -> Any:
        self.begun.append(call.state)
        return self.answer(call) if callable(self.answer) else self.answer


@pytest.mark.parametrize("of_run", [False, True])
async def test_a_gate_is_asked_once_more_right_before_the_tool_begins(of_run: bool) -> None:
    gate = Counted()
    tools = Toolset([send]) if of_run else Toolset([send]).with_gates(gate)

    outcome = await Pipeline(tools).run(ToolCall("send", {"text": "x"}), Run(gates=[gate]))

    assert isinstance(outcome, Completed), outcome
    assert gate.begun == ["executing"]


async def test_a_call_that_a_person_denies_or_another_gate_refuses_does_not_begin() -> None:
    gate, refusing = Counted(), Asked("approve", Reject("no"))
    asking = Pipeline(Toolset([send]).with_gates(gate).with_approval())

    waiting = await asking.run(ToolCall("send", {"text": "x"}))
    denied = await asking.run(waiting, grant=waiting.request.deny(message="no"))  # type: ignore[arg-type]
    refused = await called(gate, refusing)

    assert (denied.kind, refused.kind, gate.begun) == ("rejected", "rejected", [])


async def test_a_gate_may_refuse_a_call_that_is_about_to_begin() -> None:
    ran = list[str]()

    @ez_tool
    async def note() -> None:
        """Note."""
        ran.append("ran")

    sink = ListSink()
    pipeline = Pipeline(Toolset([note]).with_gates(Counted(Reject("used up"))), sinks=[sink])

    outcome = await pipeline.run(ToolCall("note"))

    assert isinstance(outcome, Rejected), outcome
    assert (outcome.reason, ran) == ("used up", [])
    assert sink.events[-1].kind == "ended"


@pytest.mark.parametrize("is_granted", [False, True])
async def test_a_gate_may_have_a_person_asked_about_a_call_that_is_about_to_begin(is_granted: bool) -> None:
    gate = Counted(lambda call: None if call.grant else Ask("used up"))
    pipeline = Pipeline(Toolset([send]).with_gates(gate))

    waiting = await pipeline.run(ToolCall("send", {"text": "x"}))
    assert isinstance(waiting, Suspended), waiting
    answer = waiting.request.grant("ann") if is_granted else waiting.request.deny(message="no")
    outcome = await pipeline.run(waiting, grant=answer)

    assert waiting.request.reason == "used up"
    assert outcome.kind == ("completed" if is_granted else "rejected")


async def test_a_gate_that_fails_before_the_tool_begins_fails_the_call() -> None:
    def broken(call: Any) -> None:
        raise RuntimeError("no database")

    outcome = await called(Counted(broken))

    assert isinstance(outcome, Failed), outcome
    assert (outcome.error_type, "counted" in str(outcome.exception)) == ("HookError", True)


async def test_values_of_a_stream_wait_for_the_gate_before_its_tool() -> None:
    @ez_tool
    async def count() -> Any:
        """Count."""
        yield 1

    refused = Pipeline(Toolset([count]).with_gates(Counted(Reject("used up"))))

    values = [value async for value in refused.stream(ToolCall("count"))]

    assert [type(value) for value in values] == [Rejected]


@pytest.mark.parametrize("is_granted", [False, True])
async def test_nothing_is_kept_of_a_call_that_a_gate_stops_before_its_tool(is_granted: bool) -> None:
    store = MemoryApprovalStore()
    tools = Toolset([send]).with_gates(Counted(Reject("used up"))).with_approval(is_granted)
    pipeline, run = Pipeline(tools), Run(durability=Durability(store=store))

    outcome = await pipeline.run(ToolCall("send", {"text": "x"}), run)
    if isinstance(outcome, Suspended):
        outcome = await pipeline.run(outcome, run, grant=outcome.request.grant("ann"))

    assert isinstance(outcome, Rejected), outcome
    assert all(entry.execution is None and entry.used_at is None for entry in await store.list())
