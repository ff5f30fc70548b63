"""Input that the host edits after the gates: every gate is asked again, in every format and a session."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import pytest

from tests.rounds.replies import FORMATS, asks, results_in, round_of
from toolcrib.calls import Reject, RunNormally, ToolCall
from toolcrib.errors import CommitError, InvalidArguments, ToolcribError
from toolcrib.hooks import HookSet
from toolcrib.pipeline import Pipeline, Run
from toolcrib.rounds import NeedsTools, Session, ToolRound, ToolRoundPlan, decode
from toolcrib.testing import RecordingSink, ScriptedModel
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset

Way: TypeAlias = Callable[[ToolRoundPlan], Awaitable[Any]]


def guarding() -> HookSet:
    """Return decision hooks that refuse a path under /etc."""
    hooks = HookSet()

    @hooks.on("read")
    async def guard(call: Any, given: Any) -> Any:
        return Reject("not there") if given.path.startswith("/etc") else RunNormally(given)

    return hooks


def pre_hook(ctx: Any, arguments: dict[str, Any], metadata: dict[str, Any]) -> dict[str, Any]:
    if arguments["path"].startswith("/etc"):
        raise PermissionError("not there")
    return arguments


def reading(ran: list[str], **options: Any) -> Any:
    @ez_tool(**options)
    async def read(path: str) -> str:
        ran.append(path)
        return path

    return read


def toolsets(gate: str, ran: list[str]) -> Pipeline:
    """Return a pipeline that has this gate."""
    match gate:
        case "toolset hooks":
            return Pipeline(Toolset([reading(ran)], hooks=guarding()))
        case "pipeline hooks":
            return Pipeline([reading(ran)], hooks=guarding())
        case "pre hooks":
            return Pipeline(Toolset([reading(ran)], pre_hooks={"read": pre_hook}))
        case "approval":
            return Pipeline([reading(ran, requires_approval=True)])
        case _:
            return Pipeline([reading(ran)])


GATES = ("toolset hooks", "pipeline hooks", "round hooks", "pre hooks", "approval")
WAYS_IN = (*FORMATS, "session")


async def opened(way_in: Any, pipeline: Pipeline) -> ToolRound:
    """Return a round of one call of `read`, in a format or of a session."""
    if way_in != "session":
        return decode(pipeline, asks(("read", {"path": "/a"}), format=way_in))
    made = await Session(ScriptedModel(ToolCall("read", {"path": "/a"})), tools=pipeline).say("go").step()
    assert isinstance(made, NeedsTools)
    return made.round


async def admitted(round: ToolRound, gate: str = "") -> ToolRoundPlan:
    """Return the plan of a round whose call passed every gate."""
    plan = await round.apply_hooks(guarding() if gate == "round hooks" else None)
    await plan.resolve([waiting.request.grant("ann") for waiting in plan.suspended])
    assert len(plan.pending) == 1
    return plan


async def run_pending(plan: ToolRoundPlan) -> None:
    await plan.run_pending()


async def hooks_again(plan: ToolRoundPlan) -> None:
    await plan.apply_hooks()
    await plan.run_pending()


async def by_hand(plan: ToolRoundPlan) -> None:
    with pytest.raises((ToolcribError, PermissionError)):
        await plan.pending[0].call()


async def own_result(plan: ToolRoundPlan) -> None:
    with pytest.raises(CommitError, match="with the input that was edited"):
        await plan.commit([], [plan.pending[0].complete("the host read it")])


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("way", [run_pending, hooks_again, by_hand, own_result])
@pytest.mark.parametrize("way_in", WAYS_IN)
async def test_edited_input_passes_every_gate_again(way_in: str, way: Way, gate: str) -> None:
    ran: list[str] = []
    plan = await admitted(await opened(way_in, toolsets(gate, ran)), gate)

    plan.pending[0].input.path = "/etc/shadow"
    await way(plan)

    assert (ran, plan.pending) == ([], [])
    assert len([*plan.suspended, *plan.rejected, *plan.issues]) == 1


@pytest.mark.parametrize("way", [run_pending, hooks_again, by_hand, own_result])
async def test_an_input_that_is_assigned_is_edited_too(way: Way) -> None:
    ran: list[str] = []
    plan = await admitted(await opened("openai", toolsets("toolset hooks", ran)))
    [call] = plan.pending

    call.input = call.input.model_copy(update={"path": "/etc/shadow"})
    await way(plan)

    assert (ran, [one.reason for one in plan.rejected]) == ([], ["not there"])


async def test_input_is_edited_while_its_call_is_suspended() -> None:
    ran: list[str] = []
    plan = await (await opened("openai", toolsets("approval", ran))).apply_hooks()
    [waiting] = plan.suspended

    waiting.call.input.path = "/etc/shadow"
    await plan.resolve([waiting.request.grant("ann")])
    await plan.run_pending()

    assert (ran, [one.request.arguments for one in plan.suspended]) == ([], [{"path": "/etc/shadow"}])


async def test_edited_input_that_the_gates_let_pass_is_what_runs_and_is_recorded() -> None:
    ran: list[str] = []
    sink = RecordingSink()
    plan = await admitted(
        round_of(Toolset([reading(ran)], hooks=guarding()), ("read", {"path": "/a"}), run=Run(sinks=[sink]))
    )
    messages: list[Any] = []

    plan.pending[0].input.path = "/b"
    await plan.commit(messages, await plan.run_pending())

    assert (ran, results_in(messages), sink.record.arguments) == (["/b"], [("call_0", "/b")], {"path": "/b"})


async def test_the_hosts_own_result_of_edited_input_is_recorded_with_that_input() -> None:
    sink = RecordingSink()
    plan = await admitted(round_of(Toolset([reading([])]), ("read", {"path": "/a"}), run=Run(sinks=[sink])))
    messages: list[Any] = []

    plan.pending[0].input.path = "/b"
    await plan.commit(messages, [plan.pending[0].complete("read")])

    assert (results_in(messages), sink.record.arguments) == ([("call_0", "read")], {"path": "/b"})


async def test_a_result_of_input_that_a_gate_refused_is_left_out_then() -> None:
    plan = await admitted(await opened("openai", toolsets("toolset hooks", [])))
    messages: list[Any] = []

    plan.pending[0].input.path = "/etc/shadow"
    await own_result(plan)
    await plan.commit(messages)

    assert results_in(messages) == [("call_0", "Rejected: not there")]


async def test_a_result_of_input_that_does_not_fit_is_not_committed() -> None:
    plan = await admitted(await opened("openai", toolsets("", [])))
    messages: list[Any] = []

    plan.pending[0].input.path = 7
    with pytest.raises(InvalidArguments, match="path: must be a string"):
        await plan.commit(messages, [plan.pending[0].complete("read")])

    assert messages == []


@dataclass(eq=False)
class Point:
    x: int


async def test_input_that_is_only_read_is_not_edited_though_its_type_has_no_equality() -> None:
    asked: list[int] = []

    @ez_tool
    async def plot(at: Point) -> int:
        return at.x

    async def watch(call: Any) -> Any:
        asked.append(call.input.at.x)
        return call

    plan = await round_of([plot], ("plot", {"at": {"x": 1}})).apply_hooks(watch)
    shown = plan.pending[0].input.at.x
    await plan.commit([], [plan.pending[0].complete(shown)])

    assert asked == [1]
