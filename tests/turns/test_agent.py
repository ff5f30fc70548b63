"""An agent: a queue of turns whose values are routed and streamed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest

from tests.virtual_time import in_virtual_time
from toolcrib.calls import ApprovalRequest, Denial, Grant, RunNormally
from toolcrib.errors import (
    ApprovalError,
    CompletionCheckReturnError,
    DuplicateNameError,
    InvalidArguments,
    SafeExecutionError,
    UnknownTool,
    UnregisteredAgentError,
)
from toolcrib.hooks import AgentHook, HookSet, TurnHook, hook
from toolcrib.pipeline import CallLimits, Run
from toolcrib.testing import RecordingSink
from toolcrib.tools import Tool, ToolType, ez_tool, tool
from toolcrib.toolsets import Toolset
from toolcrib.turns import Agent, AgentRegistry, ContextItem, ContextPool, ContextQueue, StopReason, Turn


def make_double() -> Tool[..., Any]:
    @tool()
    async def double(number: int) -> int:
        return number * 2

    return double


def make_count() -> Tool[..., Any]:
    @tool()
    async def count(upto: int) -> AsyncIterator[int]:
        for number in range(upto):
            yield number

    return count


async def put_all(agent: Agent, *turns: Turn[Any]) -> Agent:
    for turn in turns:
        await agent.put(turn)
    return agent


async def values_of(agent: Agent, **options: Any) -> list[Any]:
    return [value async for _, value in agent.run(**options)]


# --- a queue ---------------------------------------------------------------------------------------------------------


async def test_turns_run_in_order_and_give_their_values() -> None:
    double, count = make_double(), make_count()
    agent = Agent("sums", "Counts and doubles", [double, count])
    turns: list[Turn[Any]] = [
        Turn(double, kwargs={"number": 1}),
        Turn(count, kwargs={"upto": 2}),
        Turn("double", args=[3]),
    ]
    await put_all(agent, *turns)
    assert agent.turns == turns

    results = [(turns.index(turn), value) async for turn, value in agent.run()]

    assert results == [(0, 2), (1, 0), (1, 1), (2, 6)]
    assert (agent.turns, agent.running_turns, agent.is_running) == ([], [], False)


async def test_an_empty_queue_ends_at_once() -> None:
    assert await values_of(Agent("idle", "", [make_double()])) == []


async def test_an_agent_is_registered_by_its_name() -> None:
    agent = Agent("sums", "", [make_double()])

    assert AgentRegistry.get("sums") is agent
    with pytest.raises(DuplicateNameError, match="two agents are named `sums`"):
        Agent("sums", "", [])
    with pytest.raises(UnregisteredAgentError, match="no agent is registered as `sum`"):
        AgentRegistry.get("sum")


async def test_an_agent_that_nothing_refers_to_gives_its_name_back() -> None:
    async def handle(number: int) -> list[Any]:
        agent = await put_all(Agent("support", "", [double]), Turn(double, args=[number]))

        @agent.after_turn
        async def note(turn: Any) -> None:
            assert agent.turns == []  # so that the agent and its hook refer to each other

        return await values_of(agent)

    double = make_double()

    assert [await handle(number) for number in range(3)] == [[0], [2], [4]]


async def test_agents_that_are_not_registered_may_share_a_name() -> None:
    double = make_double()
    agents = [Agent("support", "", [double], register=False) for _ in range(2)]
    registered = Agent("support", "", [double])

    with pytest.raises(
        DuplicateNameError, match="Choose another name, let go of the first one, or pass register=False"
    ):
        Agent("support", "", [double])
    branch = agents[0].branch("branch")
    again = Agent.from_dict(agents[0].to_dict(), register=False)

    assert (branch.name in AgentRegistry, again.name) == (False, "support")
    assert AgentRegistry.get("support") is registered


async def test_a_turn_with_a_tool_of_none_of_the_agents_is_refused() -> None:
    agent = Agent("sums", "", [make_double()])

    with pytest.raises(UnknownTool, match="there is no tool `count`"):
        await agent.put(Turn(make_count()))


async def test_a_turn_with_another_tool_of_the_same_name_is_refused() -> None:
    def remover(of: str) -> Tool[..., Any]:
        @ez_tool
        async def remove(path: str) -> str:
            return f"{of} removes {path}"

        return remove

    agent = Agent("files", "", [remover("theirs")])

    with pytest.raises(UnknownTool, match="`remove`: the agent has another tool of that name"):
        await agent.put(Turn(remover("mine"), args=["a"]))
    assert agent.turns == []


async def test_send_puts_a_turn_on_another_agent() -> None:
    double = make_double()
    one, other = Agent("one", "", [double]), Agent("other", "", [double])

    await one.send("other", Turn(double, args=[4]))

    assert (one.turns, await values_of(other)) == ([], [8])
    with pytest.raises(UnregisteredAgentError):
        await one.send("nobody", Turn(double, args=[4]))


async def test_a_tool_brings_its_subtools() -> None:
    double = make_double()

    @double.subtool()
    async def twice(number: int) -> int:
        return number * 4

    agent = await put_all(Agent("sums", "", [double]), Turn("double.twice", args=[1]))

    assert await values_of(agent) == [4]


async def test_tools_of_a_toolset_keep_its_gates_and_names() -> None:
    @ez_tool
    def add(a: int, b: int) -> int:
        return a + b

    seen: list[str] = []

    async def note(ctx: Any, args: Any, metadata: Any) -> Any:
        seen.append(ctx.tool_name)
        return args

    crib = Toolset([add], pre_hooks={"add": note}).prefixed("calc_")
    agent = await put_all(Agent("sums", "", crib), Turn(add, args=[1, 2]))

    assert (await values_of(agent), seen) == ([3], ["calc_add"])


async def test_what_a_turn_raises_ends_the_run_and_the_rest_stays() -> None:
    double = make_double()

    @tool()
    async def fail() -> None:
        raise LookupError("gone")

    failing = Turn(fail)
    agent = await put_all(Agent("sums", "", [double, fail]), failing, Turn(double, args=[1]))

    with pytest.raises(LookupError, match="gone"):
        await values_of(agent)

    assert (failing.stop_reason, agent.is_running) == (StopReason.ERROR, False)
    assert await values_of(agent) == [2]


async def test_two_callers_cannot_run_it() -> None:
    agent = await put_all(Agent("sums", "", [make_count()]), Turn("count", args=[2]))

    async with aclosing(agent.run()) as results:
        await anext(results)
        with pytest.raises(SafeExecutionError, match="is running already"):
            await values_of(agent)


async def test_attributes_are_locked_while_it_runs_or_is_paused() -> None:
    agent = await put_all(Agent("sums", "", [make_count()]), Turn("count", args=[2]))

    async with aclosing(agent.run()) as results:
        await anext(results)
        with pytest.raises(SafeExecutionError, match="`context_queue` cannot be changed"):
            agent.context_queue = ContextQueue()
    await agent.pause()
    with pytest.raises(SafeExecutionError, match="is paused"):
        agent.description = "else"
    await agent.resume()
    agent.description = "else"

    assert agent.description == "else"


# --- routing ---------------------------------------------------------------------------------------------------------


async def test_returned_turns_join_the_queue_and_are_not_given_to_the_caller() -> None:
    double = make_double()

    @tool()
    async def plan(number: int) -> Turn[Any]:
        return Turn(double, args=[number])

    agent = await put_all(Agent("sums", "", [double, plan]), Turn(plan, args=[1]), Turn(double, args=[5]))

    assert await values_of(agent) == [10, 2]


async def test_each_value_of_a_stream_is_routed_when_it_comes() -> None:
    double = make_double()

    @tool()
    async def study() -> AsyncIterator[Any]:
        yield ContextItem("a note")
        yield "seen"
        yield ContextItem([1], "a table", "t1")
        lengths.append((len(agent.context_queue), len(agent.context_pool)))
        yield Turn(double, args=[2])
        lengths.append(len(agent.turns))
        yield "done"

    lengths: list[Any] = []
    agent = await put_all(Agent("study", "", [double, study]), Turn(study))

    assert await values_of(agent) == ["seen", "done", 4]
    assert lengths == [(1, 1), 1]


async def test_a_returned_item_goes_to_queue_or_pool_by_its_id() -> None:
    @tool()
    async def record(id: str | None) -> ContextItem[str]:
        return ContextItem("text", "about it", id)

    agent = await put_all(Agent("study", "", [record]), Turn(record, args=[None]), Turn(record, args=["t1"]))

    assert await values_of(agent) == []
    assert (agent.context_queue.history(), agent.context_pool.catalogue()) == ("text", "- [t1] about it")


async def test_tools_and_hooks_are_given_the_running_agents_context() -> None:
    seen: list[Any] = []

    @tool()
    async def look(pool: ContextPool, queue: ContextQueue | None = None) -> tuple[Any, Any]:
        await asyncio.sleep(0)
        return pool, queue

    @hook(TurnHook.BEFORE_RUN, AgentHook.AFTER_PUT)
    async def note(queue: ContextQueue) -> None:
        seen.append(queue)

    agents = [Agent(name, "", [look]) for name in ("one", "two")]
    for agent in agents:
        await put_all(agent, Turn(look), Turn(look))

    gathered = await asyncio.gather(*(values_of(agent, max_concurrency=2) for agent in agents))

    for agent, values in zip(agents, gathered, strict=True):
        assert all(pool is agent.context_pool and queue is agent.context_queue for pool, queue in values)
        assert sum(queue is agent.context_queue for queue in seen) == 4


async def test_hooks_of_the_context_are_given_the_running_agents_other_store() -> None:
    @tool()
    async def record() -> ContextItem[str]:
        return ContextItem("text")

    agent, seen = await put_all(Agent("study", "", [record]), Turn(record)), []

    @agent.context_queue.after_append
    async def note(pool: ContextPool) -> None:
        seen.append(pool)

    await values_of(agent)

    assert seen == [agent.context_pool]


async def test_without_an_agent_an_optional_context_is_none() -> None:
    @tool()
    async def look(queue: ContextQueue | None) -> Any:
        return queue

    assert await Turn(look).returning() is None


# --- ending ----------------------------------------------------------------------------------------------------------


async def test_a_completion_check_ends_the_run() -> None:
    double, asked = make_double(), []

    @tool(type=ToolType.COMPLETION_CHECK)
    async def enough() -> bool:
        asked.append(1)
        return len(asked) > 1

    turns = [Turn(enough), Turn(double, args=[1]), Turn(enough), Turn(double, args=[2])]
    agent = await put_all(Agent("sums", "", [double, enough]), *turns)

    assert await values_of(agent) == [False, 2, True]
    assert agent.turns == turns[3:]


async def test_a_completion_check_has_to_say_yes_or_no() -> None:
    @tool(type=ToolType.COMPLETION_CHECK)
    async def enough() -> bool:
        return 1  # pyright: ignore[reportReturnType]

    agent = await put_all(Agent("sums", "", [enough]), Turn(enough))

    with pytest.raises(CompletionCheckReturnError, match="`enough` must return a bool, and returned int"):
        await values_of(agent)


@pytest.mark.parametrize("most", [1, 3])
async def test_wait_takes_what_is_put_later(most: int) -> None:
    double = make_double()

    @tool(type=ToolType.COMPLETION_CHECK)
    async def enough() -> bool:
        return True

    agent = Agent("sums", "", [double, enough])

    async def put_later() -> None:
        await asyncio.sleep(0.01)
        await put_all(agent, Turn(double, args=[1]))
        await asyncio.sleep(0.01)
        await put_all(agent, Turn(enough))

    later = asyncio.create_task(put_later())

    assert await values_of(agent, wait=True, max_concurrency=most) == [2, True]
    await later


async def test_leaving_a_stream_stops_it_and_the_rest_waits() -> None:
    count, double = make_count(), make_double()
    turns: list[Turn[Any]] = [Turn(count, args=[5]), Turn(double, args=[1])]
    agent = await put_all(Agent("sums", "", [count, double]), *turns)

    async with aclosing(agent.run()) as results:
        await anext(results)

    assert turns[0].stop_reason is StopReason.CANCELLED
    assert (agent.turns, agent.is_running) == (turns[1:], False)


@pytest.mark.parametrize("most", [1, 2])
async def test_a_cancelled_run_puts_back_what_it_interrupted(most: int) -> None:
    started = asyncio.Event()

    @tool()
    async def wait(number: int) -> None:
        started.set()
        await asyncio.Event().wait()

    turns = [Turn(wait, args=[number]) for number in range(3)]
    agent = await put_all(Agent("slow", "", [wait]), *turns)
    task = asyncio.create_task(values_of(agent, max_concurrency=most))
    await started.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert agent.turns == turns


# --- pausing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [1, 2])
async def test_a_paused_agent_starts_nothing_until_resumed(most: int) -> None:
    double, seen = make_double(), []
    agent = await put_all(Agent("sums", "", [double]), *(Turn(double, args=[n]) for n in range(3)))

    @agent.on_pause
    async def paused(agent: Agent) -> None:
        seen.append(("paused", agent.is_paused))

    @agent.on_resume
    async def resumed(agent: Agent) -> None:
        seen.append(("resumed", agent.is_paused))

    await agent.pause()
    await agent.pause()
    task = asyncio.create_task(values_of(agent, max_concurrency=most))
    await asyncio.sleep(0.01)
    assert len(agent.turns) == 3
    await agent.resume()

    assert await task == [0, 2, 4]
    assert seen == [("paused", True), ("resumed", False)]


@pytest.mark.parametrize("most", [1, 2])
async def test_a_paused_agent_with_an_empty_queue_ends(most: int) -> None:
    agent = Agent("idle", "", [make_double()])
    await agent.pause()

    assert await values_of(agent, max_concurrency=most) == []


@pytest.mark.parametrize("most", [1, 2])
async def test_an_agent_that_is_paused_after_its_last_value_ends(most: int) -> None:
    agent = await put_all(Agent("sums", "", [make_double()]), Turn("double", args=[1]))
    values: list[int] = []

    async for _, value in agent.run(max_concurrency=most):
        values.append(value)
        await agent.pause()

    assert (values, agent.is_paused) == ([2], True)


async def test_a_paused_agent_that_waits_for_turns_goes_on_when_it_is_resumed() -> None:
    double = make_double()
    agent = Agent("sums", "", [double])
    await agent.pause()

    async with aclosing(agent.run(wait=True)) as results:
        first = asyncio.ensure_future(anext(results))
        await put_all(agent, Turn(double, args=[1]))
        await asyncio.sleep(0)
        begun = first.done()
        await agent.resume()

        assert (begun, (await first)[1]) == (False, 2)


# --- approval --------------------------------------------------------------------------------------------------------


def make_pay(ran: list[int]) -> Tool[..., Any]:
    @tool(requires_approval=True)
    async def pay(amount: int) -> str:
        ran.append(amount)
        return f"paid {amount}"

    return pay


@in_virtual_time
async def test_an_approver_is_asked_with_the_clock_standing() -> None:
    pay = make_pay([])

    async def think(request: ApprovalRequest) -> Grant | Denial:
        await asyncio.sleep(0.3)
        return request.grant("Ada") if request.arguments["amount"] < 10 else request.deny(message="too much")

    agent = Agent("till", "", [pay], approver=think)
    turns = [Turn(pay, 0.25, args=[amount]) for amount in (5, 50, 6)]
    await put_all(agent, *turns)

    assert await values_of(agent, max_concurrency=2) == ["paid 5", "paid 6"]
    assert turns[1].stop_reason is StopReason.ERROR


@pytest.mark.parametrize("most", [1, 2])
async def test_without_an_approver_the_turn_is_kept_and_the_agent_goes_on(most: int) -> None:
    ran: list[int] = []
    pay, double = make_pay(ran), make_double()
    turn = Turn(pay, args=[5])
    agent = await put_all(Agent("till", "", [pay, double]), turn, Turn(double, args=[1]))

    assert await values_of(agent, max_concurrency=most) == [2]
    assert (turn.stop_reason, ran, agent.turns) == (StopReason.SUSPENDED, [], [])
    (request,) = agent.requests
    assert (request, request.arguments) == (turn.request, {"amount": 5})
    agent.approve(request, "Ada")

    assert await values_of(agent, max_concurrency=most) == ["paid 5"]
    assert (ran, agent.requests) == ([5], [])


async def test_a_denied_turn_is_an_error_and_the_agent_goes_on() -> None:
    ran: list[int] = []
    pay, double = make_pay(ran), make_double()
    turn = Turn(pay, args=[5])
    agent = await put_all(Agent("till", "", [pay, double]), turn)
    await values_of(agent)
    await agent.put(Turn(double, args=[1]))

    deny: Any = agent.deny
    with pytest.raises(TypeError, match="'ann' is the person or the message"):
        deny(agent.requests[0].id, "ann")
    agent.deny(agent.requests[0].id, message="not today")

    assert await values_of(agent) == [2]
    assert (turn.stop_reason, ran) == (StopReason.ERROR, [])


async def test_an_answer_that_nobody_waits_for_is_refused() -> None:
    pay = make_pay([])
    agent = await put_all(Agent("till", "", [pay]), Turn(pay, args=[5]))
    await values_of(agent)
    (request,) = agent.requests
    agent.approve(request)

    with pytest.raises(ApprovalError, match="no turn waits"):
        agent.approve(request)
    with pytest.raises(ApprovalError, match="no turn waits"):
        agent.deny("ask_unknown")


async def test_an_answer_wakes_an_agent_that_waits() -> None:
    pay = make_pay([])
    agent = await put_all(Agent("till", "", [pay]), Turn(pay, args=[5]))
    results, ended = agent.run(wait=True), asyncio.Event()

    @agent.after_turn
    async def note(agent: Agent) -> None:
        ended.set()

    first = asyncio.ensure_future(anext(results))
    await ended.wait()
    with pytest.raises(InvalidArguments, match="must be an integer"):
        agent.approve(agent.requests[0], override_args={"amount": "four"})
    agent.approve(agent.requests[0], override_args={"amount": 4})

    assert (await first)[1] == "paid 4"
    await results.aclose()


async def test_hooks_before_a_suspension_are_not_run_again() -> None:
    pay, hooks, seen = make_pay([]), HookSet(), []

    @hooks.on("pay")
    async def note(call: Any, given: Any) -> Any:
        seen.append(call.id)
        return RunNormally(given)

    agent = await put_all(Agent("till", "", Toolset([pay], hooks=hooks)), Turn(pay, args=[5]))
    await values_of(agent)
    agent.approve(agent.requests[0])

    assert (await values_of(agent), len(seen)) == (["paid 5"], 1)


async def test_a_scope_gives_limits_deps_and_a_record() -> None:
    double, sink = make_double(), RecordingSink()
    turns = [Turn(double, args=[n]) for n in range(3)]
    agent = await put_all(Agent("sums", "", [double]), *turns)
    scope = Run(limits=CallLimits(total=2), sinks=(sink,), principal="ada")

    assert await values_of(agent, run=scope) == [0, 2]

    assert turns[2].stop_reason is StopReason.ERROR
    assert [(r.call_id, r.entry, r.principal) for r in sink.records[:2]] == [(t.id, "agent", "ada") for t in turns[:2]]


# --- hooks -----------------------------------------------------------------------------------------------------------


async def test_the_hooks_of_an_agent() -> None:
    double, seen = make_double(), []
    agent = Agent("sums", "", [double], tags=["math"])
    for moment in ("before_put", "after_put", "before_turn", "on_turn_value", "after_turn"):

        @getattr(agent, moment)(name=moment)
        async def note(agent: Agent, turn: Turn[Any], value: Any = None, *, name: str) -> None:
            seen.append((name, len(agent.turns), value))

    await put_all(agent, Turn(double, args=[1]))
    await values_of(agent)

    assert seen == [
        ("before_put", 0, None),
        ("after_put", 1, None),
        ("before_turn", 0, None),
        ("on_turn_value", 0, 2),
        ("after_turn", 0, None),
    ]


@pytest.mark.parametrize("most", [1, 2])
async def test_a_hook_is_told_of_values_for_the_agent_before_they_are_routed(most: int) -> None:
    @tool()
    async def study() -> AsyncIterator[Any]:
        yield ContextItem("a note")
        yield Turn(double, args=[1])
        yield "seen"

    double, seen = make_double(), list[Any]()
    agent = await put_all(Agent("study", "", [double, study]), Turn(study))

    @agent.on_turn_value
    async def note(agent: Agent, turn: Turn[Any], value: Any) -> None:
        seen.append((type(value), len(agent.context_queue), len(agent.turns)))

    values = await values_of(agent, max_concurrency=most)

    assert values == ["seen", 2]
    assert seen == [(ContextItem, 0, 0), (Turn, 1, 0), (str, 1, 1), (int, 1, 0)]


@pytest.mark.parametrize("most", [1, 2])
async def test_turn_hooks_on_an_agent_reach_each_of_its_turns_once(most: int) -> None:
    double, seen = make_double(), []
    agent = Agent("sums", "", [double])

    @agent.before_run
    async def note(turn: Turn[Any]) -> None:
        seen.append(turn.kwargs["number"])

    turns = [Turn(double, args=[n]) for n in range(2)]
    turns[0].before_run(note)
    await put_all(agent, *turns)
    await values_of(agent, max_concurrency=most)
    await Turn(double, args=[9]).returning()

    assert seen == [0, 1]


async def test_a_turn_hook_attached_between_turns_counts_from_then_on() -> None:
    double, seen = make_double(), []
    agent = await put_all(Agent("sums", "", [double]), Turn(double, args=[1]), Turn(double, args=[2]))

    @agent.before_run
    async def first(turn: Turn[Any]) -> None: ...

    async for _ in agent.run():

        @agent.after_run
        async def note(turn: Turn[Any]) -> None:
            seen.append(turn.output)

    assert seen == [4]


@pytest.mark.parametrize("moment", list(AgentHook)[:5])
async def test_what_an_agents_hook_raises_comes_out(moment: AgentHook) -> None:
    double = make_double()
    agent = Agent("sums", "", [double])

    @hook(moment)
    async def refuse() -> None:
        raise RuntimeError("the hook's own")

    with pytest.raises(RuntimeError, match="the hook's own"):
        await values_of(await put_all(agent, Turn(double, args=[1])))


# --- branching -------------------------------------------------------------------------------------------------------


async def test_a_branch_goes_its_own_way() -> None:
    double, seen = make_double(), []
    agent = await put_all(Agent("one", "Doubles", [double], tags=["math"]), Turn(double, args=[1]))
    await agent.context_queue.append(ContextItem("known"))

    @agent.on_turn_value
    async def note(agent: Agent) -> None:
        seen.append(agent.name)

    branch = agent.branch("two")
    await put_all(branch, Turn(double, args=[2]))
    await branch.context_queue.append(ContextItem("new"))

    assert (await values_of(agent), await values_of(branch)) == ([2], [2, 4])
    assert (agent.context_queue.history(), branch.context_queue.history()) == ("known", "known\nnew")
    assert (branch.description, branch.tags, seen) == ("Doubles", {"math"}, ["one", "two", "two"])
    assert AgentRegistry.get("two") is branch


@pytest.mark.parametrize("put", [ez_tool(lambda: 1, name="one"), "one", None])
async def test_what_is_no_turn_cannot_be_put(put: Any) -> None:
    agent = Agent("a", "Does.", [ez_tool(lambda: 1, name="one")])

    with pytest.raises(TypeError, match=r"put a Turn on `a`, as in Turn\(my_tool, kwargs=\{\}\), and not "):
        await agent.put(put)


@pytest.mark.parametrize(("name", "error"), [("", ValueError), ("  ", ValueError), (None, TypeError), (3, TypeError)])
def test_an_agent_has_a_name(name: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"name is .*; give a text"):
        Agent(name, "does nothing", [])
