"""An agent written down and restored: nothing that was put is lost."""

import asyncio
import json
from contextlib import aclosing
from datetime import date
from pathlib import PurePosixPath
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolcrib.errors import NotPortableError, UnregisteredToolError
from toolcrib.hooks import AgentHook, HookSet, ToolHook, TurnHook, hook
from toolcrib.registry import registry_scope
from toolcrib.tools import Tool, ToolRegistry, ez_tool, tool
from toolcrib.toolsets import Toolset
from toolcrib.turns import Agent, AgentRegistry, ContextItem, Turn


def make_double() -> Tool[..., Any]:
    @tool()
    async def double(number: int) -> int:
        return number * 2

    return double


def numbers(agent: Agent) -> list[int]:
    return [turn.kwargs["number"] for turn in agent.turns]


def through_json(agent: Agent, **options: Any) -> Agent:
    return Agent.from_dict(json.loads(json.dumps(agent.to_dict())), **options)


async def values_of(agent: Agent) -> list[Any]:
    return [value async for _, value in agent.run()]


async def test_an_agent_comes_back_with_its_queue_and_context() -> None:
    agent = Agent("sums", "Doubles", [make_double()], tags=["math"])
    await agent.put(Turn("double", args=[1], metadata={"page": 1}))
    await agent.context_queue.append(ContextItem("known"))
    await agent.context_pool.add(ContextItem([1], "a table", "t1"))
    data = agent.to_dict()

    back = through_json(agent)

    assert {"name", "description", "tool_names", "queue"} <= data.keys()
    assert (data["tool_names"], back.to_dict()) == (["double"], data)
    assert AgentRegistry.get("sums") is back
    assert (back.turns[0].uuid, await values_of(back)) == (agent.turns[0].uuid, [2])


async def test_a_paused_agent_comes_back_paused() -> None:
    agent = Agent("sums", "", [make_double()])
    await agent.put(Turn("double", args=[1]))
    await agent.pause()

    back = through_json(agent)
    task = asyncio.create_task(values_of(back))
    await asyncio.sleep(0.005)

    assert (back.is_paused, task.done()) == (True, False)
    await back.resume()
    assert await task == [2]


@pytest.mark.parametrize(
    "moment",
    [AgentHook.BEFORE_TURN, TurnHook.BEFORE_RUN, ToolHook.BEFORE_INVOKE, ToolHook.AFTER_INVOKE, TurnHook.ON_COMPLETE],
)
@pytest.mark.parametrize("most", [1, 2])
async def test_written_from_a_hook_the_interrupted_turn_is_first(moment: Any, most: int) -> None:
    agent = Agent("sums", "", [make_double()])
    for number in range(3):
        await agent.put(Turn("double", args=[number]))
    written: list[Any] = []

    @hook(moment)
    async def note() -> None:
        written.append(agent.to_dict())

    async for _ in agent.run(max_concurrency=most):
        pass

    assert [turn["kwargs"]["number"] for turn in written[0]["queue"]] == [0, 1, 2]
    assert written[-1]["queue"][-1]["kwargs"] == {"number": 2}


async def test_a_delivered_turn_is_not_written_down() -> None:
    agent = Agent("sums", "", [make_double()])
    for number in range(3):
        await agent.put(Turn("double", args=[number]))

    left = [len(agent.to_dict()["queue"]) async for _ in agent.run()]

    assert left == [2, 1, 0]


async def test_a_turn_that_waits_for_a_person_comes_back_waiting() -> None:
    ran: list[int] = []

    @tool(requires_approval=True)
    async def pay(amount: int) -> str:
        ran.append(amount)
        return "paid"

    agent = Agent("till", "", [pay])
    await agent.put(Turn(pay, args=[5]))
    await values_of(agent)
    back = through_json(agent)
    assert back.requests == agent.requests
    back.approve(back.requests[0], "Ada")
    again = through_json(back)

    assert (await values_of(again), ran) == (["paid"], [5])


async def test_the_gates_of_a_toolset_are_not_lost_by_restoring() -> None:
    double, hooks = make_double(), HookSet()

    @hooks.on("double")
    async def guard(call: Any, given: Any) -> Any:
        raise AssertionError("asked")

    crib = Toolset([double], hooks=hooks)
    agent = Agent("sums", "", crib)
    await agent.put(Turn(double, args=[1]))

    with pytest.raises(ValueError, match="give it again"):
        through_json(agent)
    back = through_json(agent, tools=crib)

    assert back.toolset is crib


async def test_tools_that_are_not_registered_are_given_again() -> None:
    @ez_tool
    def add(number: int) -> int:
        return number + 1

    agent = Agent("sums", "", [add])
    await agent.put(Turn(add, args=[1]))

    with pytest.raises(UnregisteredToolError):
        through_json(agent)
    assert await values_of(through_json(agent, tools=[add])) == [2]


async def test_what_does_not_go_to_json_is_named() -> None:
    agent = Agent("sums", "", [make_double()])
    await agent.put(Turn("double", args=[object()]))

    with pytest.raises(NotPortableError, match=r"the turn of `double`.*the argument `number`"):
        agent.to_dict()


def nested(depth: int) -> Any:
    made: Any = []
    for _ in range(depth):
        made = [made]
    return made


@pytest.mark.parametrize(
    "value",
    [10**5000, [-(10**5000)], (10**5000,), nested(2_000), {"a": nested(100_000)}],
    ids=["number", "in a list", "in a tuple", "deep", "very deep"],
)
def test_what_is_too_long_or_too_deep_for_json_is_named(value: Any) -> None:
    @tool()
    async def take(what: Any) -> None: ...

    for turn in (Turn(take, args=[value]), Turn(take, args=[1], metadata={"what": value})):
        with pytest.raises(NotPortableError, match=r"(`what`|\['what'\]) has the type \w+, which .*(digits|recursion)"):
            turn.to_dict()


@pytest.mark.parametrize(
    "value", ["a\ud800b", "\0", {"\udfff": [10**4000]}, nested(100)], ids=["half a pair", "null", "key", "nested"]
)
def test_odd_text_comes_back_with_its_turn(value: Any) -> None:
    @tool()
    async def take(what: Any) -> None: ...

    back = Turn.from_dict(json.loads(json.dumps(Turn(take, args=[value]).to_dict())), [take])

    assert back.kwargs == {"what": value}


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (bytes, b"\xff"),
        (set[bytes], {b"\xff"}),
        (PurePosixPath, PurePosixPath("x")),
        (ZoneInfo, ZoneInfo("Europe/Oslo")),
        (dict[date, set[int]], {date(2025, 1, 31): {2}}),
        (date | str, date(2026, 12, 24)),
        (date | str, "2026-12-24"),
    ],
)
def test_what_the_canonical_form_carries_comes_back_with_its_turn(kind: Any, value: Any) -> None:
    async def note(what) -> str:  # type: ignore[no-untyped-def]
        return "ok"

    note.__annotations__["what"] = kind
    made = ez_tool()(note)

    back = Turn.from_dict(json.loads(json.dumps(Turn(made, kwargs={"what": value}).to_dict())), [made])

    assert (back.kwargs, type(back.kwargs["what"])) == ({"what": value}, type(value))


steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 99)),
        st.tuples(st.sampled_from(["pause", "resume", "restore", "fail"]), st.just(0)),
        st.tuples(st.sampled_from(["take", "take at once"]), st.integers(0, 3)),
    ),
    max_size=25,
)


@given(steps=steps)
@example(steps=[*[("put", 0)] * 4, ("take at once", 1)])  # the fourth value was made, and nobody had room for it
async def test_whatever_happens_every_turn_is_run(steps: list[tuple[str, int]]) -> None:
    with registry_scope():
        ToolRegistry.clear()
        double, given, seen = make_double(), [], []
        failing = False

        @double.before_invoke
        async def stumble() -> None:
            nonlocal failing
            if failing:
                failing = False
                consumer.cancel()  # as when the process is told to stop
                await asyncio.Event().wait()

        agent = Agent("sums", "", [double])
        for step, number in steps:
            match step:
                case "put":
                    given.append(number)
                    await agent.put(Turn(double, args=[number]))
                case "pause":
                    await agent.pause()
                case "resume":
                    await agent.resume()
                case "restore":
                    agent = through_json(agent)
                case "fail":
                    failing = bool(given)
                case _:
                    consumer = asyncio.create_task(take(agent, seen, number, 3 if step == "take at once" else 1))
                    await asyncio.wait([consumer])
        failing = False
        await agent.resume()
        seen += await values_of(agent)

    assert sorted(seen) == sorted(number * 2 for number in given)


async def take(agent: Agent, seen: list[Any], count: int, most: int) -> None:
    """Take so many values, and leave; nothing comes from a paused agent."""
    if agent.is_paused or not count:
        return
    async with aclosing(agent.run(max_concurrency=most)) as results:
        async for _, value in results:
            seen.append(value)
            count -= 1
            if not count:
                break
