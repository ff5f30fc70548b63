"""A round that waits for a person survives its process: hooks and tools run once, availability and approval are asked
again."""

import json
from datetime import date
from typing import Any

import pytest

from tests.rounds.replies import FORMATS, ReadFile, SearchResult, WebSearch, adding, asks, policy, results_in, round_of
from toolcrib.approvals import MemoryApprovalStore, approve_all, deny_all
from toolcrib.calls import Grant, Media, Reject, RunNormally, ToolCall
from toolcrib.errors import CallStateError, CommitError, InvalidOutput, ModelRetry, ResultNotSerializable, RoundError
from toolcrib.formats import PROVIDERS
from toolcrib.hooks import GlobalHooks, HookSet
from toolcrib.pipeline import CallLimits, Pipeline, Run
from toolcrib.rounds import DecodedCall, Finished, Session, ToolRound, ToolRoundPlan, Transcript, WireFormat, decode
from toolcrib.testing import RecordingSink, ScriptedModel
from toolcrib.tools import BaseTool, ez_tool
from toolcrib.toolsets import ToolAvailability, Toolset, off, use


async def elsewhere(plan: ToolRoundPlan, tools: Any, **options: Any) -> ToolRoundPlan:
    """Return the plan as another process takes it up."""
    return await ToolRoundPlan.from_json(tools, plan.to_json(), **options)


@pytest.mark.parametrize("format", FORMATS)
async def test_a_call_that_waits_is_granted_in_another_process(format: WireFormat) -> None:
    ran: list[Any] = []
    tools = [adding(ran, requires_approval=True)]
    plan = await decode(tools, asks(("add", {"a": 1}), format=format)).apply_hooks()
    request = plan.suspended[0].request
    transcript = Transcript(PROVIDERS[format].user("Go."), format)

    plan = await elsewhere(plan, [adding(ran, requires_approval=True)])
    await plan.resolve([request.grant("ada")])
    await plan.commit(transcript, await plan.run_pending())

    assert (ran, transcript.check()) == ([(1, 1)], [])


async def test_a_call_that_waits_is_denied_in_another_process() -> None:
    ran: list[Any] = []
    plan = await round_of([adding(ran, requires_approval=True)], ("add", {"a": 1})).apply_hooks()
    denial = plan.suspended[0].request.deny(message="too much")
    messages: list[Any] = []

    plan = await elsewhere(plan, [adding(ran, requires_approval=True)])
    await plan.resolve(denials=[denial])
    await plan.commit(messages)

    assert (ran, results_in(messages)) == ([], [("call_0", "Rejected: too much")])


async def test_hooks_are_asked_once_and_what_they_said_comes_along() -> None:
    asked: list[Any] = []
    tools = Toolset([adding([])], hooks=policy(asked))
    calls = [("add", {"a": n}) for n in (1, 2, 3, 4)]
    plan = await round_of(tools, *calls, ("nope", {})).apply_hooks()

    again = await elsewhere(plan, tools)

    assert asked == [1, 2, 3, 4]
    assert [one.output for one in again.handled] == [111]
    assert [one.reason for one in again.rejected] == ["two is too few"]
    assert [(one.call.input.a, one.request) for one in again.suspended] == [(3, plan.suspended[0].request)]
    assert [call.input.a for call in again.pending] == [14]
    assert [issue.outcome.code for issue in again.issues] == ["unknown_tool"]


async def test_the_metadata_of_middleware_comes_along() -> None:
    seen: list[Any] = []

    async def pre(ctx: Any, tool: str, args: dict[str, Any], metadata: dict[str, Any]) -> dict[str, Any]:
        metadata["begun"] = len(seen)
        return args

    async def post(ctx: Any, tool: str, result: Any, metadata: dict[str, Any]) -> Any:
        seen.append(dict(metadata))
        return result

    tools = Toolset([adding([])], global_hooks=GlobalHooks(pre=pre, post=post))
    plan = await elsewhere(await round_of(tools, ("add", {"a": 1})).apply_hooks(), tools)

    await plan.commit([], await plan.run_pending())

    assert seen == [{"begun": 0}]


async def test_the_assistants_turn_stays_as_the_model_sent_it() -> None:
    async def raise_it(call: DecodedCall[Any]) -> Any:
        call.input.a = 7
        return call

    plan = await round_of([adding([])], ("add", '{ "a":1 }')).apply_hooks(raise_it)
    messages: list[Any] = []

    plan = await elsewhere(plan, [adding([])])
    await plan.commit(messages, await plan.run_pending())

    assert messages[0]["tool_calls"][0]["function"]["arguments"] == '{ "a":1 }'
    assert results_in(messages) == [("call_0", "8")]


async def test_what_was_executed_is_not_executed_again() -> None:
    ran: list[Any] = []
    tools = [adding(ran), adding_slowly(ran)]
    plan = await round_of(tools, ("add", {"a": 1}), ("pay", {"amount": 2})).apply_hooks()
    await plan.run_pending()
    request = plan.suspended[0].request
    messages: list[Any] = []

    plan = await elsewhere(plan, tools)
    await plan.resolve([request.grant("ada")])
    await plan.commit(messages, await plan.run_pending())

    assert ran == [(1, 1), 2]
    assert results_in(messages) == [("call_0", "2"), ("call_1", "2")]


def adding_slowly(ran: list[Any]) -> Any:
    @ez_tool(requires_approval=True)
    async def pay(amount: int) -> int:
        ran.append(amount)
        return amount

    return pay


async def test_what_a_tool_raised_or_returned_comes_along() -> None:
    @ez_tool
    async def day() -> date:
        return date(2026, 5, 1)

    @ez_tool
    async def fail(kind: str) -> str:
        raise ModelRetry("try Oslo") if kind == "retry" else OSError("no disk")

    calls = ("day", {}), ("fail", {"kind": "retry"}), ("fail", {"kind": "other"})
    plan = await round_of([day, fail], *calls).apply_hooks()
    here = await plan.run_pending()
    messages: list[Any] = []

    plan = await elsewhere(plan, [day, fail])
    there = await plan.run_pending()
    await plan.commit(messages, there)

    assert (here[0].output, there[0].output) == (date(2026, 5, 1), date(2026, 5, 1))
    texts = [text for _, text in results_in(messages)]
    assert texts == ["2026-05-01", "ModelRetry: try Oslo", "OSError: no disk"]


@pytest.mark.parametrize("format", FORMATS)
async def test_a_call_that_was_executed_comes_back_with_its_result(format: WireFormat) -> None:
    ran: list[Any] = []
    tools = Toolset([adding(ran, requires_approval=True)], post_hooks={"add": doubled})
    run = Run(approver=approve_all)
    plan = await decode(tools, asks(("add", {"a": 1}), format=format), run=run).apply_hooks()
    await plan.run_pending()
    sink = RecordingSink()

    plan = await elsewhere(plan, tools, run=Run(approver=deny_all, sinks=[sink]))
    results = await plan.run_pending()
    await plan.commit(Transcript(format=format), results)

    assert ([one.output for one in results], ran) == ([2], [(1, 1)])
    assert sink.record.outcome["value"] == 4


def doubled(ctx: Any, result: Any, metadata: dict[str, Any]) -> Any:
    return result * 2


@pytest.mark.parametrize(("idempotent", "suspended"), [(False, 1), (True, 0)])
async def test_a_call_that_was_executing_is_in_doubt_unless_it_is_idempotent(idempotent: bool, suspended: int) -> None:
    tools, text, ran = await saved_while_it_executes(idempotent=idempotent)

    plan = await ToolRoundPlan.from_json(tools, text)
    results = await plan.run_pending()

    assert [waiting.request.in_doubt for waiting in plan.suspended] == [True] * suspended
    assert ([one.output for one in results], len(ran)) == (["saved"], 2) if idempotent else ([], 1)


async def test_a_round_that_is_taken_up_twice_in_one_run_executes_its_calls_once() -> None:
    ran: list[Any] = []
    tools, run = [adding(ran)], Run()
    text = (await round_of(tools, ("add", {"a": 1})).apply_hooks()).to_json()
    first, second = [await ToolRoundPlan.from_json(tools, text, run=run) for _ in range(2)]

    await first.run_pending()
    with pytest.raises(CallStateError, match="executed before"):
        await second.run_pending()

    assert ran == [(1, 1)]


def at_most_5() -> HookSet:
    hooks = HookSet()

    @hooks.on("add")
    async def limit(call: Any, given: Any) -> Any:
        return Reject("more than 5") if given.a > 5 else RunNormally(given)

    return hooks


async def test_an_approver_cannot_edit_past_hooks_that_did_not_come_along() -> None:
    ran: list[Any] = []
    tools = [adding(ran, requires_approval=True)]
    plan = await round_of(tools, ("add", {"a": 1})).apply_hooks(at_most_5())
    request = plan.suspended[0].request

    plan = await elsewhere(plan, tools)
    await plan.resolve([request.grant("ada", override_args={"a": 100})])
    await plan.run_pending()

    assert "put them on the toolset" in str(plan.issues[0].outcome.exception)
    assert ran == []


async def test_a_host_edits_the_input_of_a_saved_round_after_it_gave_its_hooks_again() -> None:
    ran: list[Any] = []
    tools = [adding(ran)]
    text = (await round_of(tools, ("add", {"a": 1})).apply_hooks(at_most_5())).to_json()
    without, within, beyond = [await ToolRoundPlan.from_json(tools, text) for _ in range(3)]

    without.pending[0].input.a = 2
    await without.run_pending()
    for plan, amount in ((within, 3), (beyond, 100)):
        await plan.apply_hooks(at_most_5())
        plan.pending[0].input.a = amount
        await plan.run_pending()

    assert "apply_hooks(hooks)" in str(without.issues[0].outcome.exception)
    assert [one.reason for one in beyond.rejected] == ["more than 5"]
    assert ran == [(3, 1)]


async def test_what_was_not_edited_goes_on_without_the_hooks_that_were_asked_about_it() -> None:
    ran: list[Any] = []
    tools = [adding(ran, requires_approval=True)]
    plan = await round_of(tools, ("add", {"a": 1})).apply_hooks(at_most_5())
    request = plan.suspended[0].request

    plan = await elsewhere(plan, tools)
    await plan.resolve([request.grant("ada")])
    await plan.run_pending()

    assert ran == [(1, 1)]


async def saved_while_it_executes(**options: Any) -> tuple[list[Any], str, list[str]]:
    """Return a tool, its round as it was saved while the tool was executing, and the list of its executions."""
    plans: list[ToolRoundPlan] = []
    texts: list[str] = []
    ran: list[str] = []

    @ez_tool(**options)
    async def save() -> str:
        ran.append("save")
        texts.append(plans[0].to_json() if plans else "")
        return "saved"

    plans.append(await round_of([save], ("save", {})).apply_hooks())
    await plans[0].run_pending()
    plans.clear()
    return [save], texts[0], ran


@pytest.mark.parametrize(
    ("answer", "text", "times"),
    [
        (lambda request: {"grants": [request.grant("ann")]}, "saved", 2),
        (lambda request: {"grants": [request.done("by hand", "ann")]}, "by hand", 1),
        (lambda request: {"denials": [request.deny(message="leave it")]}, "Rejected: leave it", 1),
    ],
    ids=["do it", "it was done", "it must not be done"],
)
async def test_a_call_in_doubt_is_answered_and_committed(answer: Any, text: str, times: int) -> None:
    tools, saved, ran = await saved_while_it_executes()
    plan = await ToolRoundPlan.from_json(tools, saved)
    messages: list[Any] = []

    plan = await elsewhere(plan, tools)
    await plan.resolve(**answer(plan.suspended[0].request))
    await plan.commit(messages, await plan.run_pending())

    assert (results_in(messages), len(ran)) == ([("call_0", text)], times)


async def test_a_result_of_another_type_leaves_the_call_in_doubt_suspended() -> None:
    tools, saved, ran = await saved_while_it_executes()
    plan = await ToolRoundPlan.from_json(tools, saved)
    messages: list[Any] = []

    with pytest.raises(InvalidOutput, match="`save`"):
        await plan.resolve([plan.suspended[0].request.done(5)])
    await plan.resolve([plan.suspended[0].request.done("by hand")])
    await plan.commit(messages, await plan.run_pending())

    assert (results_in(messages), len(ran)) == ([("call_0", "by hand")], 1)


async def test_what_is_pending_is_asked_for_approval_again() -> None:
    ran: list[Any] = []
    tools = [adding(ran, requires_approval=True)]
    plan = await round_of(tools, ("add", {"a": 1})).apply_hooks()
    await plan.resolve([plan.suspended[0].request.grant("ada")])
    assert plan.pending

    lost = await elsewhere(plan, tools)
    standing = MemoryApprovalStore([Grant("add", "ada", scope="tool")])
    kept = await elsewhere(plan, tools, run=Run(approvals=standing))

    assert (len(lost.suspended), lost.pending, len(kept.pending)) == (1, [], 1)


async def test_what_is_not_available_any_more_is_an_issue() -> None:
    class Open(BaseTool):
        """Open the door."""

        name = "open_door"
        shut = False

        def is_available(self, ctx: Any) -> bool:
            return not Open.shut

        async def call(self, ctx: Any) -> str:
            return "open"

    plan = await round_of([Open], ("open_door", {})).apply_hooks()
    Open.shut = True

    plan = await elsewhere(plan, [Open])

    assert [issue.outcome.code for issue in plan.issues] == ["not_available"]


async def test_a_tool_that_has_changed_or_gone_makes_an_issue() -> None:
    @ez_tool(name="add")
    async def other(text: str) -> str:
        return text

    plan = await round_of([adding([])], ("add", {"a": 1})).apply_hooks()

    changed, gone = await elsewhere(plan, [other]), await elsewhere(plan, [])

    assert [one.issues[0].outcome.code for one in (changed, gone)] == ["invalid_arguments", "unknown_tool"]


async def test_an_available_tool_that_is_off_stays_available() -> None:
    class Tools(Toolset):
        read_file = off(ReadFile)
        web_search = use(WebSearch)

    round = round_of(Tools, ("read_file", {"path": "/a"}), available=ToolAvailability.all())

    plan = await elsewhere(await round.apply_hooks(), Tools)

    assert [call.input for call in plan.pending] == [ReadFile(path="/a")]


async def test_what_was_counted_is_not_forgotten() -> None:
    scope = Run(id="trip", limits=CallLimits(total=2))
    plan = await decode([adding([])], asks(("add", {"a": 1}), ("add", {"a": 2})), run=scope).apply_hooks()
    fresh = Run(id="trip", limits=CallLimits(total=2))

    await elsewhere(plan, [adding([])], run=fresh)
    late = await decode([adding([])], asks(("add", {"a": 3})), run=fresh).apply_hooks()

    assert (fresh.calls, [one.source for one in late.rejected]) == ({"add": 2}, ["limit"])


async def test_the_record_is_made_where_the_call_ends() -> None:
    here, there = RecordingSink(), RecordingSink()
    tools = [adding([])]
    plan = await decode(Pipeline(tools, sinks=[here]), asks(("add", {"a": 1}))).apply_hooks()

    plan = await elsewhere(plan, Pipeline(tools, sinks=[there]))
    await plan.commit([], await plan.run_pending())

    assert (len(here.records), [record.outcome["value"] for record in there.records]) == (0, [2])


async def test_declared_inputs_are_executed_by_the_host_in_the_other_process() -> None:
    plan = await round_of([WebSearch], ("web_search", {"query": "x"})).apply_hooks()
    messages: list[Any] = []

    plan = await elsewhere(plan, [WebSearch])
    await plan.commit(messages, [plan.pending[0].complete(SearchResult(snippets=["y"]))])

    assert results_in(messages) == [("call_0", '{"snippets": ["y"]}')]


async def test_a_round_may_be_saved_before_anybody_was_asked() -> None:
    ran: list[Any] = []
    round = round_of([adding(ran)], ("add", {"a": 1}), ("nope", {}))

    again = await ToolRound.from_json([adding(ran)], round.to_json())
    plan = await again.apply_hooks()
    await plan.commit([], await plan.run_pending())

    assert (ran, again.format, len(again.recoverable_issues)) == ([(1, 1)], "openai", 1)


# --- what cannot be saved


async def test_a_round_that_is_over_cannot_be_saved() -> None:
    round = round_of([WebSearch], ("web_search", {"query": "x"}))
    round.discard()

    with pytest.raises(RoundError, match="discarded"):
        round.to_json()


async def test_an_edit_that_nobody_was_asked_about_cannot_be_saved() -> None:
    plan = await round_of([adding([])], ("add", {"a": 1})).apply_hooks()
    plan.pending[0].input.a = 2

    with pytest.raises(RoundError, match="`add` was edited"):
        plan.to_json()


async def test_an_edit_before_the_gates_were_asked_cannot_be_saved_either() -> None:
    round = round_of([adding([])], ("add", {"a": 1}))
    round.expect_one().input.a = 2

    with pytest.raises(RoundError, match="`add` was edited"):
        round.to_json()


async def test_a_round_that_was_finished_and_not_committed_is_not_finished_again() -> None:
    finished: list[Any] = []
    messages: list[Any] = []

    def interfering(ctx: Any, result: Any, metadata: dict[str, Any]) -> Any:
        finished.append(result)
        messages.append({"role": "user", "content": "wait"})
        return result

    tools = Toolset([adding([])], post_hooks={"add": interfering})
    plan = await round_of(tools, ("add", {"a": 1})).apply_hooks()
    with pytest.raises(CommitError, match="changed meanwhile"):
        await plan.commit(messages, await plan.run_pending())

    plan = await elsewhere(plan, tools)
    await plan.commit(messages, await plan.run_pending())

    assert (finished, results_in(messages)) == ([2], [("call_0", "2")])


async def test_a_result_without_a_json_form_cannot_be_saved() -> None:
    @ez_tool
    async def thing() -> Any:
        return object()

    plan = await round_of([thing], ("thing", {})).apply_hooks()
    await plan.run_pending()

    with pytest.raises(ResultNotSerializable, match="thing"):
        plan.to_json()


async def test_what_is_no_saved_round_is_an_error() -> None:
    with pytest.raises(ValueError, match="version"):
        await ToolRoundPlan.from_json([], json.dumps({"version": 7}))


# --- sessions


async def test_a_session_with_an_open_round_goes_on_in_another_process() -> None:
    ran: list[Any] = []
    tools = [adding(ran, requires_approval=True)]
    first = Session(ScriptedModel(ToolCall("add", {"a": 1})), system="Be brief.", tools=tools).say("Add.")
    plan = await first.run()
    assert isinstance(plan, ToolRoundPlan)
    request, text = plan.suspended[0].request, first.to_json()

    session = await Session.from_json(ScriptedModel("done"), text, tools=tools)
    assert session.open_round is not None
    plan = await session.open_round.apply_hooks()
    await plan.resolve([request.grant("ada")])
    await plan.commit(session, await plan.run_pending())
    made = await session.run()

    assert isinstance(made, Finished)
    assert (made.result, ran, session.system, session.open_round) == ("done", [(1, 1)], "Be brief.", None)
    assert session.host_run.id == first.host_run.id
    assert session.transcript.check() == []


async def test_a_session_between_rounds_goes_on_in_another_process() -> None:
    first = Session(ScriptedModel("hello"), format="anthropic").say("hi")
    await first.step()

    session = await Session.from_json(ScriptedModel("again"), first.to_json())
    await session.say("and?").step()

    assert (session.format, len(session.transcript), session.transcript[:2]) == ("anthropic", 4, first.transcript)


async def test_the_tools_that_were_offered_to_a_round_are_not_those_of_the_session() -> None:
    class Tools(Toolset):
        read_file = off(ReadFile)

    first = Session(ScriptedModel(ToolCall("read_file", {"path": "/a"})), tools=Tools)
    await first.step(available=ToolAvailability.all())

    session = await Session.from_json(ScriptedModel(), first.to_json(), tools=Tools)

    assert session.open_round is not None
    assert session.open_round.expect_one().input == ReadFile(path="/a")
    assert session.host_run.available is None


async def test_a_staged_answer_has_to_be_settled_before_a_session_is_saved() -> None:
    session = Session(ScriptedModel("hello"))
    await session.step(commit=False)

    with pytest.raises(RoundError, match="neither committed nor discarded"):
        session.to_json()


async def test_what_is_no_saved_session_is_refused() -> None:
    with pytest.raises(ValueError, match="this is not a valid Session: the field `run` is missing"):
        await Session.from_json(ScriptedModel(), "{}")


async def test_an_open_round_is_not_taken_up_without_its_tools() -> None:
    session = Session(ScriptedModel(ToolCall("add", {"a": 1})), tools=[adding([])])
    await session.step()

    with pytest.raises(ValueError, match="give `tools=`"):
        await Session.from_json(ScriptedModel(), session.to_json())


@pytest.mark.parametrize("handled", [False, True])
async def test_an_image_of_a_call_that_has_run_comes_along(handled: bool) -> None:
    image = Media("image/png", b"dot", name="dot.png")

    @ez_tool
    async def draw() -> Any:
        return ["a dot", image]

    async def answer(call: DecodedCall[Any]) -> Any:
        return call.handled(["a dot", image]) if handled else call

    plan = await decode([draw], asks(("draw", {}), format="anthropic")).apply_hooks(answer)
    await plan.run_pending()
    messages: list[Any] = []

    plan = await elsewhere(plan, [draw])
    await plan.commit(messages, await plan.run_pending())

    [result] = messages[-1]["content"]
    assert [part["type"] for part in result["content"]] == ["text", "image"]
