"""Run: limits, retries, requirements, and what a run supplies to its tools."""

import asyncio
import inspect
import subprocess
import sys
from typing import Annotated, Any

import pytest

from tests.pipeline.calling import raising, run
from toolcrib.approvals import approve_all, deny_all
from toolcrib.calls import Completed, Failed, Reject, Rejected, ToolCall
from toolcrib.errors import ModelRetry
from toolcrib.pipeline import CallLimits, Channel, Durability, Pipeline, Run, current_run, must_call
from toolcrib.record import ListSink
from toolcrib.schema import Injectable, Injected, RunContext
from toolcrib.testing import RecordingSink
from toolcrib.tools import BaseTool, ez_tool, tool
from toolcrib.toolsets import Toolset

# --- limits and requirements


async def test_limits_by_tool() -> None:
    made = [ez_tool(name=name)(raising(OSError())) for name in ("a", "b", "c")]
    scope = Run(limits=CallLimits(per_tool={"a": 1, "b": 0}))
    pipeline = Pipeline(made)

    outcomes = [await pipeline.run(ToolCall(name), scope) for name in "aabcc"]

    assert [type(outcome) for outcome in outcomes] == [Failed, Rejected, Rejected, Failed, Failed]
    assert "may make 1 call (of `a`), and it is used up" in outcomes[1].text()


@pytest.mark.parametrize("refusing", ["person", "arguments", "gate"])
async def test_a_call_that_is_refused_uses_up_a_limit(refusing: str) -> None:
    asked = ez_tool(lambda n=0: n, name="a", requires_approval=refusing == "person")
    run = Run(
        limits=CallLimits(per_tool=1),
        approver=deny_all,
        gates=[lambda call: Reject("no")] if refusing == "gate" else [],
    )

    outcomes = [
        await Pipeline([asked]).run(ToolCall("a", {"m": 1} if refusing == "arguments" else {}), run) for _ in "12"
    ]

    assert [getattr(outcome, "source", "") == "limit" for outcome in outcomes] == [False, True]


@pytest.mark.parametrize(
    ("options", "mend"),
    [
        ({"approver": "ann"}, "it must be a function of the request"),
        ({"approvals": "a.db"}, "give a store, as in SqliteApprovalStore"),
        ({"sinks": [1]}, "give sinks, as in"),
        ({"limits": 3}, "give CallLimits, as in"),
        ({"principal": 5}, "give a name"),
        ({"id": {"db": 1}}, "what tools are given is deps="),
        ({"available": "pay"}, "give a set of names"),
        ({"channel": "mcp"}, "give Channel, as in"),
        ({"durability": 3}, "give Durability, as in"),
        ({"features": [True]}, "give features, as in"),
    ],
    ids=lambda value: "",
)
def test_an_option_of_another_type_is_refused_when_the_run_is_made(options: dict[str, Any], mend: str) -> None:
    [name] = options

    with pytest.raises(TypeError, match=rf"Run: {name} .*{mend}"):
        Run(**options)


@pytest.mark.parametrize(
    ("name", "mend"),
    [
        ("entry", r"Run\(channel=Channel\(entry=\.\.\.\)\)"),
        ("agent", r"Run\(channel=Channel\(agent=\.\.\.\)\)"),
        ("recorder", r"Run\(durability=Durability\(recorder=\.\.\.\)\)"),
        ("requirements", r"Run\(limits=CallLimits\(requirements=\.\.\.\)\)"),
        ("total", r"Run\(limits=CallLimits\(total=\.\.\.\)\)"),
        ("aprover", r"Did you mean `approver`"),
        ("dependencies", r"Did you mean `deps`"),
    ],
)
def test_an_option_that_stands_elsewhere_says_where(name: str, mend: str) -> None:
    options: dict[str, Any] = {name: None}

    with pytest.raises(TypeError, match=rf"`{name}`.*{mend}"):
        Run(**options)


def test_a_run_has_few_options() -> None:
    assert len(inspect.signature(Run).parameters) - len(["moved"]) <= 14


def test_a_view_changes_single_options_of_a_channel_and_a_durability() -> None:
    run = Run(channel=Channel(agent="desk", entry="mine"), durability=Durability(begun={"c1": {}}))

    view = run.view(agent="planner", fence=None)

    assert (view.channel, view.durability) == (Channel(agent="planner", entry="mine"), run.durability)
    assert run.channel.agent == "desk"
    assert run.view(channel=Channel(), agent="other").channel == Channel(agent="other")


def test_what_has_to_be_called_is_given_as_requirements() -> None:
    with pytest.raises(TypeError, match=r"CallLimits: requirements has 'save'.*must_call"):
        CallLimits(requirements=["save"])  # type: ignore[list-item] -- what a beginner gives


@pytest.mark.parametrize("options", [{"total": "3"}, {"total": True}, {"per_tool": {"a": "3"}}, {"concurrency": 1.5}])
def test_a_limit_is_a_whole_number(options: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=r"CallLimits: .* must be a whole number, and is"):
        CallLimits(**options)


async def test_what_a_run_still_lacks() -> None:
    async def save(fail: bool) -> None:
        if fail:
            raise OSError

    made = ez_tool(save)
    scope = Run(
        limits=CallLimits(requirements=(must_call("save"), must_call("send"), must_call("log", before_finish=False)))
    )
    pipeline = Pipeline([made])

    await pipeline.run(ToolCall("save", {"fail": True}), scope)
    before = scope.finish()
    await pipeline.run(ToolCall("save", {"fail": False}), scope)

    assert len(before) == 2
    assert [lacking.split("`")[1] for lacking in scope.finish()] == ["send"]
    assert [remark.split("`")[1] for remark in scope.remarks()] == ["log"]


def test_a_requirement_takes_whatever_stands_for_a_tool() -> None:
    made = ez_tool(name="save")(raising(OSError()))

    required = [must_call(Toolset([made]).from_name("save")), must_call(made), must_call("save")]

    assert {one.tool for one in required} == {"save"}


@pytest.mark.parametrize("limits", [{"concurrency": 0}, {"total": -1}, {"per_tool": -1}, {"per_tool": {"a": -1}}])
def test_limits_that_cannot_be_are_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be at least"):
        CallLimits(**limits)


async def test_retries_are_counted_by_tool_and_run() -> None:
    made = [ez_tool(name=name)(raising(ModelRetry("again"))) for name in ("a", "b")]
    pipeline, scope = Pipeline(Toolset(made, max_retries=1)), Run()

    outcomes = [await pipeline.run(ToolCall(name), scope) for name in ("a", "a", "b")]
    other = await pipeline.run(ToolCall("a"))

    codes = [outcome.code for outcome in (*outcomes, other) if isinstance(outcome, Failed)]
    assert codes == ["model_retry", "retries_exhausted", "model_retry", "model_retry"]
    assert "again" in outcomes[1].text()


# --- what a run supplies


class Queue(Injectable): ...


class MyQueue(Queue): ...


class Pool(Injectable): ...


async def test_a_run_supplies_what_a_tool_declares() -> None:
    queue = MyQueue()

    async def look(
        n: int, ctx: RunContext[str], queue: Queue, db: Annotated[list[Any], Injected], other: Pool | None = None
    ) -> Any:
        return n, ctx.deps, queue, db, other

    outcome = await run(look, {"n": 1}, Run(deps="deps", provide={MyQueue: queue, "db": [1]}))

    assert isinstance(outcome, Completed)
    assert outcome.value == (1, "deps", queue, [1], None)


async def test_what_a_run_does_not_supply_is_named() -> None:
    async def look(queue: Queue) -> None: ...

    outcome = await run(look)

    assert isinstance(outcome, Failed)
    assert outcome.code == "missing_provided"
    assert "queue" in outcome.message


# --- views


def test_a_view_has_other_options_and_the_state_of_its_run() -> None:
    run = Run(limits=CallLimits(total=1), principal="ann")

    view = run.view(entry="turn").view(available=frozenset({"a"}))
    admitted = view.admit("a")

    assert (view.channel.entry, view.principal, view.available, view.id) == ("turn", "ann", frozenset({"a"}), run.id)
    assert view.run is run
    assert (admitted, run.calls) == (None, {"a": 1})
    assert run.admit("a") is not None


def test_a_run_and_its_views_have_one_id_whichever_is_asked_first() -> None:
    run = Run()
    view = run.view(entry="turn")

    first = view.id

    assert (run.id, run.view(principal="ann").id) == (first, first)
    assert Run().id != first


@pytest.mark.parametrize("run", [Run(principal="ann"), Run(principal="ann").view(entry="turn")])
def test_the_options_of_a_run_are_given_when_it_is_made(run: Run) -> None:
    with pytest.raises(AttributeError, match=r"Run\(approver=...\).*run\.view\(approver=...\)"):
        run.approver = approve_all

    assert (run.approver, repr(run)) == (None, f"<Run {run.id} of ann>")


@pytest.mark.parametrize("option", ["limits", "id", "requirements", "gates", "color"])
def test_what_is_the_runs_alone_is_no_option_of_a_view(option: str) -> None:
    with pytest.raises(TypeError, match=option):
        Run().view(**{option: None})


# --- what it supplies


async def test_a_tool_called_by_a_tool_belongs_to_the_same_run() -> None:
    @tool
    async def inner(ctx: RunContext, queue: Queue) -> Any:
        return ctx.deps, queue

    async def outer(ctx: RunContext) -> Any:
        return await inner()  # type: ignore[call-arg]

    queue = Queue()

    outcome = await run(outer, scope=Run(deps="deps", provide={Queue: queue}))

    assert isinstance(outcome, Completed)
    assert outcome.value == ("deps", queue)


async def test_what_a_tool_runs_inside_shares_its_slot() -> None:
    @ez_tool
    async def inner() -> str:
        return "done"

    async def outer() -> Any:
        made = await Pipeline([inner]).run(ToolCall("inner"), current_run())
        return made.text()

    async with asyncio.timeout(60):
        outcome = await run(outer, scope=Run(limits=CallLimits(concurrency=1)))

    assert outcome.text() == "done"


async def test_a_slot_is_held_while_the_run_is_used_in_another_event_loop() -> None:
    begun, go_on, most = asyncio.Event(), asyncio.Event(), [0, 0]

    @ez_tool
    async def wait() -> None:
        most[0] += 1
        most[1] = max(most)
        begun.set()
        await go_on.wait()
        most[0] -= 1

    @ez_tool
    async def quick() -> None: ...

    one = Run(limits=CallLimits(concurrency=1))
    pipeline = Pipeline([wait, quick])
    first = asyncio.create_task(pipeline.run(ToolCall("wait"), one))
    await begun.wait()
    await asyncio.to_thread(asyncio.run, pipeline.run(ToolCall("quick"), one))
    second = asyncio.create_task(pipeline.run(ToolCall("wait"), one))
    for _ in range(10):
        await asyncio.sleep(0)
    go_on.set()
    await asyncio.gather(first, second)

    assert most == [0, 1]


async def test_the_context_says_which_call_it_is() -> None:
    class Look(BaseTool):
        async def call(self, ctx: RunContext, n: int) -> Any:
            return ctx.call_id, ctx.tool_name, ctx.run_id, ctx.idempotency_key, ctx.approved

    outcome = await Pipeline([Look]).run(ToolCall("look", {"n": 1}, "c1"), Run(id="run_1"))

    assert isinstance(outcome, Completed)
    assert outcome.value == ("c1", "look", "run_1", "c1", False)


# --- what a host may give wrongly


def test_one_sink_is_no_list_of_them() -> None:
    with pytest.raises(TypeError, match=r"Run: sinks must be a list of them, as in sinks=\["):
        Run(sinks=ListSink())  # pyright: ignore[reportArgumentType] -- what is tested


@pytest.mark.parametrize("name", ["emit", "emit_activity"])
def test_a_sink_is_never_awaited(name: str) -> None:
    async def later(self: object, event: object) -> None: ...

    sink: Any = type("Later", (RecordingSink,), {name: later})()

    with pytest.raises(TypeError, match=f"`{name}` of the sink Later is async, and nothing awaits it; write a plain"):
        Run(sinks=[sink])


@pytest.mark.processes
def test_a_forked_process_names_its_runs_otherwise() -> None:
    program = (
        "import os\n"
        "from toolcrib.pipeline import Run\n"
        "first = Run().id\n"
        "child = os.fork()\n"
        "if child: os.waitpid(child, 0)\n"  # so that one writes after the other
        "print(Run().id, flush=True)\n"
    )

    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()

    assert len(said) == len(set(said)) == 2
