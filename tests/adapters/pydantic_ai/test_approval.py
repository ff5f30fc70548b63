"""Approval in an agent of Pydantic AI: a run that stops, answers that go back, and approvals of nothing."""

import json
from contextlib import nullcontext
from dataclasses import replace
from typing import Annotated, Any

import pydantic_ai
import pytest
from pydantic import AfterValidator, TypeAdapter
from pydantic_ai.capabilities import HandleDeferredToolCalls
from pydantic_ai.exceptions import ApprovalRequired
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolApproved

from tests.adapters.pydantic_ai.scripted import agent, refunding, results, scripted
from toolcrib.adapters.pydantic_ai import ToolcribToolset, answers, approval_requests, as_tools
from toolcrib.approvals import AgentContext, MemoryApprovalStore
from toolcrib.calls import Ask, RunNormally
from toolcrib.errors import ApprovalError
from toolcrib.hooks import HookSet
from toolcrib.pipeline import Channel, Run
from toolcrib.record import ListSink
from toolcrib.schema import RunContext
from toolcrib.tools import BaseTool, ez_tool
from toolcrib.toolsets import Toolset

REFUND = ("refund", '{"order": 7}', "c1")


class Desk:
    """An agent that stopped, and how it goes on."""

    def __init__(self, ran: list[Any], run: Any, toolset: ToolcribToolset[Any], sink: ListSink) -> None:
        self.ran, self.run, self.toolset, self.sink = ran, run, toolset, sink

    @property
    def asked(self) -> DeferredToolRequests:
        return self.run.output

    async def go_on(self, answered: DeferredToolResults, **options: Any) -> Any:
        """Run an agent on from here, and return the run."""
        history = self.run.all_messages()
        return await agent(scripted(), self.toolset).run(
            message_history=history, deferred_tool_results=answered, **options
        )


async def desk(*calls: tuple[str, Any, str], scope: Any = None, **options: Any) -> Desk:
    """Return an agent that stopped after these calls."""
    ran: list[Any] = []
    sink = ListSink()

    @ez_tool
    async def note(text: str) -> str:
        ran.append(text)
        return text

    toolset = as_tools([refunding(ran, **options), note], sinks=[sink], run=scope)
    run = await agent(scripted(calls or [REFUND]), toolset).run("go")
    return Desk(ran, run, toolset, sink)


# --- answers


async def test_of_parallel_calls_one_waits_and_the_others_run() -> None:
    waiting = await desk(REFUND, ("note", {"text": "hi"}, "c2"))
    [request] = approval_requests(waiting.asked)

    before = list(waiting.ran)
    run = await waiting.go_on(await answers(waiting.asked, request.grant("ann")))

    assert (before, waiting.ran) == (["hi"], ["hi", (7, 100)])
    assert run.output == "done"
    assert results(run.all_messages()) == [("c2", "success", "hi"), ("c1", "success", "refunded 100 on 7")]
    assert waiting.sink.records[-1].approval["approver"] == "ann"


async def test_what_a_person_is_asked() -> None:
    waiting = await desk(REFUND)

    [request] = approval_requests(waiting.asked)

    assert request.text() == "refund needs approval\n  order = 7\n  cents = 100"


async def test_a_denial_is_what_the_model_reads_and_is_recorded() -> None:
    waiting = await desk()
    [request] = approval_requests(waiting.asked)

    answered = await answers(
        waiting.asked, request.deny(message="it was never paid", by="ann"), toolset=waiting.toolset
    )
    run = await waiting.go_on(answered)

    assert results(run.all_messages()) == [("c1", "denied", "it was never paid")]
    assert waiting.ran == []
    record = waiting.sink.records[-1]
    assert (record.approval["kind"], record.approval["approver"]) == ("denial", "ann")
    assert record.outcome["source"] == "user"


async def test_what_was_denied_is_not_granted_afterwards() -> None:
    waiting = await desk()
    [request] = approval_requests(waiting.asked)
    await answers(waiting.asked, request.deny(message="no"), toolset=waiting.toolset)

    run = await waiting.go_on(await answers(waiting.asked, request.grant()))

    [(_, outcome, content)] = results(run.all_messages())
    assert (outcome, waiting.ran) == ("failed", [])
    assert "it was denied before" in content


async def test_answers_that_answer_nothing_are_errors() -> None:
    first, second = await desk(), await desk()
    [request] = approval_requests(first.asked)

    with pytest.raises(ApprovalError, match="no call that waits"):
        await answers(second.asked, request.grant())
    with pytest.raises(ValueError, match="as_tools"):
        await answers(first.asked, request.deny())


async def test_a_person_may_give_other_arguments() -> None:
    waiting = await desk()
    [request] = approval_requests(waiting.asked)

    run = await waiting.go_on(await answers(waiting.asked, request.grant(override_args={"order": 7, "cents": 50})))

    assert waiting.ran == [(7, 50)]
    assert run.output == "done"


async def test_what_a_person_typed_reaches_the_tool() -> None:
    class Pay(BaseTool):
        requires_approval = True

        async def call(self, ctx: RunContext, cents: int) -> str:
            return f"{cents} with {ctx.user_input}, says {ctx.approved_by}"

    toolset = as_tools([Pay])
    run = await agent(scripted([("pay", {"cents": 5}, "c1")]), toolset).run("go")
    [request] = approval_requests(run.output)
    answered = await answers(run.output, request.grant("ann", user_input="4711"))

    after = await agent(scripted(), toolset).run(message_history=run.all_messages(), deferred_tool_results=answered)

    assert results(after.all_messages())[-1] == ("c1", "success", "5 with 4711, says ann")


async def test_a_handler_of_theirs_may_answer_during_the_run() -> None:
    ran: list[Any] = []

    async def ann(ctx: Any, requests: DeferredToolRequests) -> DeferredToolResults:
        return await answers(requests, *(request.grant("ann") for request in approval_requests(requests)))

    toolset = as_tools([refunding(ran)])
    run = await agent(scripted([REFUND]), toolset, capabilities=[HandleDeferredToolCalls(ann)]).run("go")

    assert (run.output, ran) == ("done", [(7, 100)])


# --- why somebody is asked


async def test_deps_may_name_the_tools() -> None:
    ran: list[Any] = []
    toolset = as_tools([refunding(ran, requires_approval=False)])
    deps = AgentContext(need_user_approve_tools=["refund"])

    run = await agent(scripted([REFUND]), toolset, deps_type=AgentContext).run("go", deps=deps)

    assert [request.tool for request in approval_requests(run.output)] == ["refund"]
    assert ran == []


async def test_hooks_run_once_and_what_is_approved_are_the_final_arguments_from_json() -> None:
    ran: list[Any] = []
    asked: list[str] = []

    def crib() -> ToolcribToolset[Any]:
        hooks = HookSet()

        @hooks.on("refund")
        async def halve(call: Any, given: Any) -> Any:
            asked.append(call.id)
            return RunNormally(given.model_copy(update={"cents": given.cents // 2}))

        @hooks.on("refund")
        async def late(call: Any, given: Any) -> Any:
            return Ask("it is late", {"hour": 23})

        async def cap(ctx: Any, args: dict[str, Any], metadata: dict[str, Any]) -> dict[str, Any]:
            asked.append("pre")
            return {**args, "cents": min(args["cents"], 40)}

        tools = Toolset([refunding(ran, requires_approval=False)], pre_hooks={"refund": cap}, hooks=hooks)
        return as_tools(tools)

    run = await agent(scripted([REFUND]), crib()).run("go")
    stored = (run.all_messages_json(), TypeAdapter(DeferredToolRequests).dump_json(run.output))

    # another process: nothing but JSON is left
    requests = TypeAdapter(DeferredToolRequests).validate_json(stored[1])
    [request] = approval_requests(requests)
    answered = TypeAdapter(DeferredToolResults).dump_json(await answers(requests, request.grant("ann")))
    after = await agent(scripted(), crib()).run(
        message_history=ModelMessagesTypeAdapter.validate_json(stored[0]),
        deferred_tool_results=TypeAdapter(DeferredToolResults).validate_json(answered),
    )

    assert (request.arguments, request.reason) == ({"order": 7, "cents": 40}, "it is late")
    assert request.changes() == ["cents: 100 -> 40"]
    assert asked == ["c1", "pre"]
    assert (after.output, ran) == ("done", [(7, 40)])


# --- approvals that are theirs


async def test_their_approval_with_our_metadata_is_a_grant() -> None:
    waiting = await desk()

    await waiting.go_on(DeferredToolResults(approvals={"c1": True}, metadata=waiting.asked.metadata))

    assert waiting.ran == [(7, 100)]
    assert waiting.sink.records[-1].approval["kind"] == "grant"


async def test_their_override_with_our_metadata_is_one_of_ours() -> None:
    waiting = await desk()
    approval = ToolApproved(override_args={"order": 7, "cents": 1})

    await waiting.go_on(DeferredToolResults(approvals={"c1": approval}, metadata=waiting.asked.metadata))

    assert waiting.ran == [(7, 1)]


async def test_what_their_override_leaves_runs_as_it_was_seen() -> None:
    @ez_tool(requires_approval=True)
    async def pay(cents: Annotated[int, AfterValidator(lambda euros: euros * 100)], note: str = "") -> str:
        return f"{cents} {note}"

    toolset = as_tools([pay])
    run = await agent(scripted([("pay", {"cents": 5}, "c1")]), toolset).run("go")
    approval = ToolApproved(override_args={"cents": 5, "note": "edited"})
    answered = DeferredToolResults(approvals={"c1": approval}, metadata=run.output.metadata)

    after = await agent(scripted(), toolset).run(message_history=run.all_messages(), deferred_tool_results=answered)

    assert results(after.all_messages())[-1] == ("c1", "success", "500 edited")


async def test_other_arguments_are_validated() -> None:
    waiting = await desk()

    for order in ("seven", 7):
        approval = ToolApproved(override_args={"order": order})
        given = DeferredToolResults(approvals={"c1": approval}, metadata=waiting.asked.metadata)
        with pytest.raises(ApprovalError, match="order: must be an integer") if order != 7 else nullcontext():
            await waiting.go_on(given)
        assert len(waiting.ran) == (order == 7)


async def test_an_approval_without_metadata_suspends_again_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    waiting = await desk()

    run = await waiting.go_on(DeferredToolResults(approvals={"c1": True}))

    assert isinstance(run.output, DeferredToolRequests)
    assert waiting.ran == []
    [said] = caplog.messages
    assert "write DeferredToolResults(approvals=..., metadata=requests.metadata), or await answers(" in said


@pytest.mark.parametrize(
    "override", [{"order": 7}, {"order": 7, "cents": 100}, {"order": 8}], ids=["same", "complete", "other"]
)
async def test_an_override_without_metadata_suspends_again(override: dict[str, Any]) -> None:
    waiting = await desk()

    run = await waiting.go_on(DeferredToolResults(approvals={"c1": ToolApproved(override_args=override)}))

    assert isinstance(run.output, DeferredToolRequests)
    assert waiting.ran == []


async def test_a_store_entry_lets_an_approval_without_metadata_run() -> None:
    store = MemoryApprovalStore()
    waiting = await desk(scope=lambda ctx: Run(approvals=store, channel=Channel(conversation_id="monday")))
    [request] = approval_requests(waiting.asked)
    await store.answer(request.grant("ann"))

    await waiting.go_on(DeferredToolResults(approvals={"c1": True}))

    assert waiting.ran == [(7, 100)]
    assert waiting.sink.records[-1].approval["approver"] == "ann"


@pytest.mark.parametrize(
    "other",
    [("refund", '{"order": 8}', "c1"), ("refund", '{"order": 7}', "c2"), ("note", '{"text": "x"}', "c1")],
    ids=["other arguments", "other call", "other tool"],
)
async def test_the_metadata_of_another_call_approves_nothing(other: tuple[str, str, str]) -> None:
    stale, waiting = await desk(REFUND), await desk(other, ("refund", {"order": 9}, "c9"))
    metadata = {other[2]: stale.asked.metadata["c1"], "c9": stale.asked.metadata["c1"]}
    approvals: dict[str, Any] = {call.tool_call_id: True for call in waiting.asked.approvals}

    run = await waiting.go_on(DeferredToolResults(approvals=approvals, metadata=metadata))

    assert isinstance(run.output, DeferredToolRequests)
    assert [ran for ran in waiting.ran if ran != "x"] == []


async def test_an_override_does_not_carry_a_stale_approval_over() -> None:
    stale, waiting = await desk(REFUND), await desk(("refund", '{"order": 8}', "c1"))
    approval = ToolApproved(override_args={"order": 7})

    run = await waiting.go_on(DeferredToolResults(approvals={"c1": approval}, metadata=stale.asked.metadata))

    assert isinstance(run.output, DeferredToolRequests)
    assert waiting.ran == []


async def test_metadata_that_was_changed_approves_nothing() -> None:
    waiting = await desk()
    metadata = json.loads(json.dumps(waiting.asked.metadata))
    metadata["c1"]["toolcrib"]["suspended"]["call"]["arguments"]["cents"] = 10_000

    run = await waiting.go_on(DeferredToolResults(approvals={"c1": True}, metadata=metadata))

    [(_, outcome, content)] = results(run.all_messages())
    assert (outcome, waiting.ran) == ("failed", [])
    assert "changed" in content


@pytest.mark.parametrize(
    "broken",
    [{}, {"toolcrib": 1}, {"toolcrib": {"suspended": {"kind": "suspended"}}}, {"toolcrib": {"suspended": "x"}}],
)
async def test_broken_metadata_approves_nothing(broken: dict[str, Any]) -> None:
    waiting = await desk()

    run = await waiting.go_on(DeferredToolResults(approvals={"c1": True}, metadata={"c1": broken}))

    assert isinstance(run.output, DeferredToolRequests)
    assert waiting.ran == []


async def test_an_approval_counts_once() -> None:
    waiting = await desk()
    answered = DeferredToolResults(approvals={"c1": True}, metadata=waiting.asked.metadata)

    await waiting.go_on(answered)
    again = await waiting.go_on(answered)

    [(_, outcome, content)] = results(again.all_messages())
    assert (outcome, waiting.ran) == ("failed", [(7, 100)])
    assert "used before" in content


async def test_an_approval_on_behalf_of_somebody_else_opens_nothing() -> None:
    ann = await desk(scope=lambda ctx: Run(principal="ann"))
    ben = as_tools(ann.toolset.tools, run=lambda ctx: Run(principal="ben"))
    answered = DeferredToolResults(approvals={"c1": True}, metadata=ann.asked.metadata)

    run = await agent(scripted(), ben).run(message_history=ann.run.all_messages(), deferred_tool_results=answered)

    assert results(run.all_messages())[0][1] == "failed"
    assert ann.ran == []


async def test_a_standing_grant_holds_for_the_run() -> None:
    ran: list[Any] = []
    asked: list[str] = []

    async def once(request: Any) -> Any:
        asked.append(request.call_id)
        return request.always("ann")

    calls = [[("refund", {"order": n}, f"c{n}")] for n in range(3)]
    toolset = as_tools([refunding(ran)], run=lambda ctx: Run(approver=once))
    await agent(scripted(*calls), toolset).run("go")

    assert (asked, len(ran)) == (["c0"], 3)


async def test_metadata_without_an_approval_is_no_answer() -> None:
    waiting = await desk()
    run = pydantic_ai.RunContext(deps=None, model=scripted(), usage=pydantic_ai.RunUsage(), tool_call_id="c1")
    ctx = replace(run, tool_call_metadata=waiting.asked.metadata["c1"], tool_call_approved=False)
    entered = await waiting.toolset.for_run(ctx)
    tool = (await entered.get_tools(ctx))["refund"]

    with pytest.raises(ApprovalRequired):
        await entered.call_tool("refund", {"order": 7}, ctx, tool)

    assert waiting.ran == []


async def test_a_grant_is_for_the_arguments_that_go_with_it() -> None:
    waiting = await desk()
    [request] = approval_requests(waiting.asked)
    answered = await answers(waiting.asked, request.grant(override_args={"order": 7, "cents": 5}))
    answered.approvals["c1"] = ToolApproved(override_args={"order": 7, "cents": 5_000})

    run = await waiting.go_on(answered)

    assert isinstance(run.output, DeferredToolRequests)
    assert waiting.ran == []
