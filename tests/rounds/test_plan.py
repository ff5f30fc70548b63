"""What hooks, people and limits make of a round, and running what is left."""

import asyncio
import logging
from typing import Any

import pytest

from tests.rounds.replies import ReadFile, SearchResult, WebSearch, adding, asks, policy, results_in, round_of
from toolcrib.approvals import MemoryApprovalStore, approve_all
from toolcrib.calls import Ask, Grant, Reject
from toolcrib.errors import ApprovalError, ApprovalRequired, CommitError, ModelRetry, RoundError
from toolcrib.hooks import GlobalHooks, ToolHook, hook
from toolcrib.pipeline import CallLimits, Pipeline, Run
from toolcrib.rounds import DecodedCall, ToolRound, decode
from toolcrib.schema import RunContext
from toolcrib.testing import RecordingSink
from toolcrib.tools import ez_tool
from toolcrib.toolsets import ToolAvailability, Toolset


def adds(*numbers: int, ran: list[Any] | None = None, **options: Any) -> ToolRound:
    return round_of([adding([] if ran is None else ran, **options)], *(("add", {"a": n}) for n in numbers))


async def test_hooks_part_a_round() -> None:
    round = round_of([adding([])], *(("add", {"a": n}) for n in (1, 2, 3, 4)), ("nope", {}))

    plan = await round.apply_hooks(policy())

    assert [call.input.a for call in plan.ready] == [14]
    assert plan.pending == plan.ready
    assert [(one.call.id, one.output) for one in plan.handled] == [("call_0", 111)]
    assert [(one.call.id, one.reason, one.source) for one in plan.rejected] == [("call_1", "two is too few", "hook")]
    assert [(one.call.id, one.request.reason) for one in plan.suspended] == [("call_2", "three is a crowd")]
    assert [one.metadata.id for one in plan.issues] == ["call_4"]


async def test_another_pass_asks_about_pending_calls_alone() -> None:
    asked: list[Any] = []
    plan = await adds(1, 2, 4, 5).apply_hooks(policy())

    await plan.apply_hooks(policy(asked))

    assert asked == [14, 15]
    assert [call.input.a for call in plan.pending] == [24, 25]


async def test_another_pass_may_ask_a_person() -> None:
    plan = await adds(4).apply_hooks()

    async def ask(call: DecodedCall[Any]) -> Any:
        return Ask("sure?")

    await plan.apply_hooks(ask)

    assert ([one.request.reason for one in plan.suspended], plan.pending) == (["sure?"], [])


async def test_an_approved_call_that_a_later_pass_edits_is_asked_about_again() -> None:
    plan = await adds(4, requires_approval=True).apply_hooks()
    await plan.resolve([plan.suspended[0].request.grant("ada")])

    await plan.apply_hooks(policy())

    assert [one.request.arguments["a"] for one in plan.suspended] == [14]


async def test_an_approved_call_that_a_later_pass_leaves_alone_is_not_asked_about() -> None:
    plan = await adds(4, requires_approval=True).apply_hooks()
    await plan.resolve([plan.suspended[0].request.grant("ada")])

    async def look(call: DecodedCall[Any]) -> None:
        return None

    await plan.apply_hooks(look)

    assert (len(plan.pending), plan.suspended) == (1, [])


async def test_a_closure_serves_as_hooks() -> None:
    async def hooks(call: DecodedCall[Any]) -> Any:
        match call.input:
            case WebSearch(query="secret"):
                return call.reject("blocked query")
            case WebSearch(query="known"):
                return call.handled(SearchResult(snippets=["so it is"]))
            case ReadFile():
                call.input.path = "/home" + call.input.path
            case _:
                pass
        return call

    queries = [("web_search", {"query": query}) for query in ("secret", "known", "x")]
    plan = await round_of([WebSearch, ReadFile], *queries, ("read_file", {"path": "/a"})).apply_hooks(hooks)

    assert [one.reason for one in plan.rejected] == ["blocked query"]
    assert [one.output for one in plan.handled] == [SearchResult(snippets=["so it is"])]
    assert [call.input for call in plan.pending] == [WebSearch(query="x"), ReadFile(path="/home/a")]


async def test_a_closure_that_breaks_shuts_the_gate() -> None:
    async def hooks(call: DecodedCall[Any]) -> Any:
        raise OSError("the policy is on fire")

    plan = await adds(4).apply_hooks(hooks)

    assert [issue.outcome.code for issue in plan.issues] == ["hook_error"]


async def test_decisions_are_logged_with_the_effective_input(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "toolcrib.hooks")

    await adds(4).apply_hooks(policy())
    await adds(2).apply_hooks(policy())

    first, second = caplog.messages
    assert first.startswith("add call_0: decide decides run")
    assert first.endswith("{'a': 14, 'b': 1}")
    assert "two is too few" in second


async def test_the_toolsets_own_gates_are_asked_without_any_hooks() -> None:
    tools = Toolset([adding([])], hooks=policy())

    plan = await round_of(tools, ("add", {"a": 2}), ("add", {"a": 3})).apply_hooks()

    assert (len(plan.rejected), len(plan.suspended)) == (1, 1)


# --- people


async def test_people_answer_what_awaits() -> None:
    ran: list[Any] = []
    plan = await adds(1, 2, 3, ran=ran, requires_approval=True).apply_hooks()
    first, second, third = [one.request for one in plan.suspended]

    await plan.resolve([first.grant("ada")], [second.deny(message="no")])
    results = await plan.run_pending()

    assert (ran, [result.output for result in results]) == ([(1, 1)], [2])
    assert [(one.reason, one.source) for one in plan.rejected] == [("no", "user")]
    assert [one.request for one in plan.suspended] == [third]


async def test_a_person_may_change_the_arguments() -> None:
    plan = await adds(1, requires_approval=True).apply_hooks()

    await plan.resolve([plan.suspended[0].request.grant("ada", override_args={"a": 5})])

    assert (plan.pending[0].input.a, [result.output for result in await plan.run_pending()]) == (5, [6])


async def test_a_standing_grant_answers_every_call_of_the_tool() -> None:
    plan = await adds(1, 2, requires_approval=True).apply_hooks()

    await plan.resolve([Grant("add", "ada", scope="tool")])

    assert len(plan.pending) == 2


async def test_an_answer_for_another_call_is_an_error_and_resolves_nothing() -> None:
    plan = await adds(1, requires_approval=True).apply_hooks()

    with pytest.raises(ApprovalError, match="call_9"):
        await plan.resolve([plan.suspended[0].request.grant(), Grant("add", call_id="call_9")])

    assert len(plan.suspended) == 1


@pytest.mark.parametrize("in_one_list", [True, False])
async def test_a_grant_and_a_denial_of_one_request_resolve_nothing(*, in_one_list: bool) -> None:
    plan = await adds(1, requires_approval=True).apply_hooks()
    request = plan.suspended[0].request
    given: list[Any] = [request.grant("ann"), request.deny(by="ben")]

    with pytest.raises(ApprovalError, match="a grant and a denial of one request"):
        await (plan.resolve(given) if in_one_list else plan.resolve(given[:1], given[1:]))

    assert len(plan.suspended) == 1


async def test_answers_may_come_from_a_store() -> None:
    store = MemoryApprovalStore()
    tools = [adding([], requires_approval=True)]
    plan = await round_of(tools, ("add", {"a": 1}), run=Run(approvals=store)).apply_hooks()
    await store.answer(plan.suspended[0].request.grant("ada"))

    await plan.resolve()

    assert len(plan.pending) == 1


async def test_an_approver_answers_at_once() -> None:
    plan = await round_of(
        [adding([], requires_approval=True)], ("add", {"a": 1}), run=Run(approver=approve_all)
    ).apply_hooks()

    assert len(plan.pending) == 1


async def test_a_tool_that_asks_itself_is_suspended_and_runs_after_the_answer() -> None:
    @ez_tool
    async def pay(ctx: RunContext, amount: int) -> str:
        if not ctx.approved:
            raise ApprovalRequired({"amount": amount})
        return "paid"

    plan = await round_of([pay], ("pay", {"amount": 3})).apply_hooks()

    assert await plan.run_pending() == []
    await plan.resolve([plan.suspended[0].request.grant("ada")])
    assert [result.output for result in await plan.run_pending()] == ["paid"]


# --- limits and running


async def test_the_limits_of_the_run_hold_over_rounds() -> None:
    scope, tools = Run(limits=CallLimits(total=3)), Toolset([adding([])])
    await round_of(tools, ("add", {"a": 1}), ("add", {"a": 2}), run=scope).apply_hooks()

    plan = await round_of(tools, ("add", {"a": 3}), ("add", {"a": 4}), run=scope).apply_hooks()

    assert ([call.input.a for call in plan.pending], plan.rejected[0].source) == ([3], "limit")


async def test_a_model_that_goes_on_making_mistakes_is_told_that_it_was_the_last() -> None:
    scope, tools = Run(), Toolset([adding([])], max_retries=1)

    codes = [
        (await round_of(tools, ("add", {"a": "x"}), run=scope).apply_hooks()).issues[0].outcome.code for _ in "123"
    ]

    assert codes == ["invalid_arguments", "retries_exhausted", "retries_exhausted"]


async def test_calls_run_together_as_many_as_allowed() -> None:
    running, most = 0, 0

    @ez_tool
    async def work(n: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return n

    plan = await round_of([work], *(("work", {"n": n}) for n in range(5))).apply_hooks()

    results = await plan.run_pending(concurrency=2)

    assert ([result.output for result in results], most) == ([0, 1, 2, 3, 4], 2)


async def test_the_model_is_told_what_a_call_returned_even_when_a_later_one_changes_it() -> None:
    seen: dict[str, Any] = {"names": []}

    @ez_tool
    async def watch(name: str) -> dict[str, Any]:
        """Watch something too."""
        seen["names"].append(name)
        return seen

    messages: list[Any] = [{"role": "user", "content": "go"}]
    plan = await round_of([watch], ("watch", {"name": "a"}), ("watch", {"name": "b"})).apply_hooks()

    await plan.commit(messages, await plan.run_pending(concurrency=1))

    assert [text for _, text in results_in(messages)] == ['{"names": ["a"]}', '{"names": ["a", "b"]}']


@pytest.mark.parametrize("concurrency", [0, -1])
async def test_at_least_one_call_runs_at_a_time(concurrency: int) -> None:
    ran: list[Any] = []
    plan = await round_of([adding(ran)], ("add", {"a": 1}), ("add", {"a": 2})).apply_hooks()

    with pytest.raises(ValueError, match="concurrency must be at least 1"):
        await plan.run_pending(concurrency=concurrency)

    assert ran == []


async def test_a_plan_shows_what_is_to_be_done_in_it() -> None:
    plan = await round_of([adding([])], ("add", {"a": 1}), ("add", {"a": 2}), ("nope", {})).apply_hooks()

    assert repr(plan) == "<ToolRoundPlan: 2 pending, 1 issue>"


async def test_no_call_runs_twice() -> None:
    ran: list[Any] = []
    plan = await adds(1, 2, ran=ran).apply_hooks()

    first, second = await plan.run_pending(), await plan.run_pending()

    assert (first, ran) == (second, [(1, 1), (2, 1)])


async def test_declared_inputs_are_left_to_the_host() -> None:
    plan = await round_of([WebSearch, adding([])], ("web_search", {"query": "x"}), ("add", {"a": 1})).apply_hooks()

    assert [result.name for result in await plan.run_pending()] == ["add"]


async def test_what_a_tool_raises_is_a_result() -> None:
    @ez_tool
    async def guess(word: str) -> str:
        raise ModelRetry("write it in full")

    plan = await round_of([guess], ("guess", {"word": "x"})).apply_hooks()
    messages: list[Any] = []

    await plan.commit(messages, await plan.run_pending())

    assert results_in(messages) == [("call_0", "ModelRetry: write it in full")]


@pytest.mark.parametrize("calls", [1, 2])
async def test_what_an_observer_raises_reaches_the_host(calls: int) -> None:
    @hook(ToolHook.AFTER_INVOKE)
    async def watch(result: Any) -> None:
        raise OSError("the watcher fell asleep")

    plan = await adds(*range(calls)).apply_hooks()

    with pytest.raises(OSError, match="fell asleep"):
        await plan.run_pending()

    assert plan.issues[0].reason.startswith("the host's observer for `add` failed")


async def test_the_host_answers_for_an_execution_that_was_broken_off() -> None:
    started = asyncio.Event()

    @ez_tool
    async def wait() -> str:
        started.set()
        await asyncio.sleep(60)
        return "done"

    plan = await round_of([wait], ("wait", {})).apply_hooks()
    running = asyncio.create_task(plan.run_pending())
    await started.wait()
    running.cancel()
    await asyncio.wait({running})
    messages: list[Any] = []

    assert await plan.run_pending() == []
    await plan.commit(messages, [plan.pending[0].fail(TimeoutError("it took too long"))])

    assert results_in(messages) == [("call_0", "TimeoutError: it took too long")]


# --- one run for several rounds


async def test_three_rounds_in_one_run_ask_once_where_the_approver_says_always() -> None:
    asked: list[Any] = []
    ran: list[Any] = []

    async def always(request: Any) -> Any:
        asked.append(request.arguments)
        return request.always("ann")

    tools, run = Toolset([adding(ran, requires_approval=True)]), Run(approver=always)
    for a in range(3):
        plan = await decode(tools, asks(("add", {"a": a})), ToolAvailability.all(), run=run).apply_hooks()
        await plan.commit([], await plan.run_pending())

    assert (len(asked), ran) == (1, [(0, 1), (1, 1), (2, 1)])


# --- the record


async def test_a_round_is_recorded_from_its_hooks_to_its_commit() -> None:
    sink = RecordingSink()
    tools = Toolset([WebSearch], global_hooks=GlobalHooks(post=lambda ctx, name, result, metadata: f"{name}: {result}"))
    round = decode(Pipeline(tools, sinks=[sink]), round_reply())
    messages: list[Any] = []

    plan = await round.apply_hooks()
    await plan.commit(messages, [plan.pending[0].complete({"snippets": ["a"]})])

    assert sink.kinds() == ["received", "started", "ended"]
    assert (sink.record.entry, sink.record.arguments) == ("round", {"query": "x", "max_results": None})
    assert results_in(messages) == [("call_0", "web_search: snippets=['a']")]
    assert sink.record.outcome["value"] == "web_search: snippets=['a']"


async def test_a_discarded_round_is_recorded_as_cancelled() -> None:
    sink = RecordingSink()
    round = decode(Pipeline([WebSearch], sinks=[sink]), round_reply())
    plan = await round.apply_hooks()

    plan.discard()

    assert sink.record.outcome == {"kind": "cancelled"}
    with pytest.raises(CommitError, match="discarded before"):
        await plan.commit([], [])


async def test_a_round_that_is_over_says_how_it_ended() -> None:
    plan = await round_of([adding([])], ("add", {"a": 1})).apply_hooks()
    await plan.commit([], await plan.run_pending())

    for late in (plan.apply_hooks, plan.run_pending, plan.resolve):
        with pytest.raises(RoundError, match=r"^the round was committed before$"):
            await late()
    with pytest.raises(RoundError, match=r"^the round was committed before$"):
        plan.discard()


def round_reply() -> dict[str, Any]:
    return asks(("web_search", {"query": "x"}))


class Policy:
    async def read_file_hook(self, call: Any, given: Any) -> Any:
        return Reject("no")


@pytest.mark.parametrize("hooks", [Policy(), Policy, 5])
async def test_what_is_neither_a_hook_set_nor_a_function_is_refused(hooks: Any) -> None:
    round = round_of([ReadFile], ("read_file", {"path": "/a"}))

    with pytest.raises(TypeError, match=r"and this is a (Policy|int); register an object"):
        await round.apply_hooks(hooks)

    assert (await round.apply_hooks()).issues == []


@ez_tool(requires_approval=True)
def pay(cents: int) -> str:
    return f"paid {cents}"


def asked_again(messages: list[Any], number: int, **options: Any) -> ToolRound:
    """Return the round of a reply to the messages, as a loop has it that looks at no plan."""
    call = {"id": f"call_{number}", "type": "function", "function": {"name": "pay", "arguments": '{"cents": 5}'}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return decode([pay], {"choices": [{"finish_reason": "tool_calls", "message": message}]}, **options)


async def test_a_loop_that_asks_again_while_a_round_waits_is_told() -> None:
    messages = [{"role": "user", "content": "Pay."}]
    first, second = asked_again(messages, 1, transcript=messages), asked_again(messages, 2)
    await first.run(messages)

    with pytest.raises(RoundError, match=r"the round before this one still waits .* `round.discard\(\)`"):
        asked_again(messages, 3, transcript=messages)
    with pytest.raises(RoundError, match="the model was asked again with the same messages"):
        await second.run(messages)

    plan = await first.run(messages)
    assert second.settled
    assert [call.call.id for call in plan.suspended] == ["call_1"]


@pytest.mark.parametrize("told", ["run", "decode"])
def test_a_loop_that_lets_go_of_the_round_that_waits_is_told(told: str) -> None:
    messages = [{"role": "user", "content": "Pay."}]
    options = {"transcript": messages} if told == "decode" else {}
    asked: list[int] = []

    def loop() -> None:
        for number in range(10):
            asked.append(number)
            round = asked_again(messages, number, **options)
            round.run_sync(messages)
            if not round:
                break

    with pytest.raises(RoundError, match="the model was asked again with the same messages"):
        loop()

    assert asked == [0, 1]


@pytest.mark.parametrize("end", ["answer", "discard", "add", "copy", "roll back"])
async def test_a_loop_may_ask_again_where_no_round_waits_or_the_messages_are_others(end: str) -> None:
    messages = [{"role": "user", "content": "Pay."}]
    first = asked_again(messages, 1, transcript=messages)
    plan = await first.run(messages)
    if end in ("answer", "roll back"):
        await plan.resolve([plan.suspended[0].request.grant("ann")])
        await first.run(messages)
        del messages[1 if end == "roll back" else 9 :]
    elif end == "discard":
        first.discard()
    elif end == "add":
        messages.append({"role": "user", "content": "Well?"})
    else:
        messages = [*messages]

    second = asked_again(messages, 2, transcript=messages)

    assert [call.call.id for call in (await second.run(messages)).suspended] == ["call_2"]


async def test_a_round_that_was_stored_goes_on_beside_itself() -> None:
    messages = [{"role": "user", "content": "Pay."}]
    first = asked_again(messages, 1, transcript=messages)
    await first.run(messages)

    again = await ToolRound.from_json([pay], first.to_json(), run=Run(approver=approve_all))
    await again.run(messages)

    assert again.settled
