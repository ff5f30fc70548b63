"""A turn: made by the host, run once, timed, told of, written down."""

import asyncio
import logging
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

import pytest

from tests.virtual_time import in_virtual_time
from toolcrib.approvals import approve_all, deny_all
from toolcrib.calls import ApprovalRequest, Complete, Denial, Grant, Reject
from toolcrib.errors import (
    ApprovalDenied,
    ApprovalRequired,
    ModelRetry,
    NotPortableError,
    SafeExecutionError,
    TurnTimeoutError,
    UnregisteredToolError,
    WrongRunMethodError,
)
from toolcrib.hooks import HookSet, ToolHook, TurnHook, hook
from toolcrib.pipeline import Pipeline, Run
from toolcrib.schema import RunContext
from toolcrib.tools import Tool, ez_tool, tool
from toolcrib.toolsets import Toolset
from toolcrib.turns import StopReason, Turn


def make_greet() -> Tool[..., Any]:
    @tool()
    async def greet(name: str, mark: str = "!") -> str:
        return f"hello {name}{mark}"

    return greet


def make_count(closed: list[str] | None = None) -> Tool[..., Any]:
    @tool()
    async def count(upto: int) -> AsyncIterator[int]:
        try:
            for number in range(upto):
                yield number
        finally:
            if closed is not None:
                closed.append("closed")

    return count


# --- what it is made of ----------------------------------------------------------------------------------------------


async def test_a_turn_by_name_runs_the_registered_tool() -> None:
    make_greet()

    turn: Turn[str] = Turn("greet", kwargs={"name": "Ada"})

    assert await turn.returning() == "hello Ada!"
    assert (turn.output, turn.stop_reason) == ("hello Ada!", StopReason.COMPLETED)


def test_an_unregistered_name_is_refused_when_the_turn_is_made() -> None:
    make_greet()

    with pytest.raises(UnregisteredToolError, match="Did you mean `greet`"):
        Turn("gret")


def test_a_function_is_not_a_tool() -> None:
    with pytest.raises(TypeError, match="decorate it with @tool"):
        Turn(len)  # pyright: ignore[reportArgumentType, reportCallIssue]


async def test_a_turn_of_an_unregistered_tool_is_made_with_the_tool_itself() -> None:
    @ez_tool
    def add(a: int, b: int) -> int:
        return a + b

    assert await Turn(add, args=[1], kwargs={"b": 2}).returning() == 3


async def test_positional_arguments_are_kept_by_name() -> None:
    turn = Turn(make_greet(), args=["Ada"], kwargs={"mark": "?"})

    assert turn.kwargs == {"name": "Ada", "mark": "?"}
    assert await turn.returning() == "hello Ada?"


async def test_extra_arguments_are_ignored_with_a_log_line(caplog: pytest.LogCaptureFixture) -> None:
    turn = Turn(make_greet(), args=["Ada", "!", "more"], kwargs={"loud": True})

    with caplog.at_level(logging.INFO, "toolcrib"):
        said = await turn.returning()

    assert said == "hello Ada!"
    assert Turn(turn.tool, kwargs={"name": "Bo", "loud": True}).kwargs == {"name": "Bo", "loud": True}


async def test_extra_keywords_are_named_in_the_log_when_the_turn_runs(caplog: pytest.LogCaptureFixture) -> None:
    turn = Turn(make_greet(), kwargs={"name": "Ada", "loud": True})

    with caplog.at_level(logging.INFO, "toolcrib"):
        await turn.returning()

    assert "greet ignores the arguments loud" in caplog.text


async def test_a_missing_argument_is_a_type_error_when_the_turn_runs() -> None:
    turn = Turn(make_greet(), kwargs={"mark": "?"})

    with pytest.raises(TypeError, match="name: missing"):
        await turn.returning()

    assert turn.stop_reason is StopReason.ERROR


async def test_python_objects_pass_as_they_are() -> None:
    @tool()
    async def same(thing: Any) -> bool:
        return thing is marker

    marker = object()

    assert await Turn(same, kwargs={"thing": marker}).returning() is True


async def test_callables_without_parameters_are_evaluated_at_the_run() -> None:
    @tool()
    async def take(token: str, key: Any, fn: Any) -> tuple[str, Any, Any]:
        return token, key(2), fn

    async def fetch() -> str:
        return f"t{len(asked)}"

    asked: list[int] = []
    turn = Turn(take, kwargs={"token": fetch, "key": lambda x: x * 2, "fn": int})
    asked.append(1)

    assert await turn.returning() == ("t1", 4, int)
    assert turn.kwargs["token"] is fetch


async def test_the_time_of_a_turn_covers_what_its_arguments_wait_for() -> None:
    async def wait() -> str:
        await asyncio.Event().wait()
        return "never"

    turn = Turn(make_greet(), 0.01, kwargs={"name": wait})

    with pytest.raises(TurnTimeoutError):
        await turn.returning()
    assert turn.stop_reason is StopReason.TIMEOUT


async def test_a_tool_among_the_arguments_is_no_thunk() -> None:
    @tool()
    async def take(other: Any) -> Any:
        return other

    greet = make_greet()

    assert await Turn(take, kwargs={"other": greet}).returning() is greet


def test_a_text_of_tags_is_refused() -> None:
    with pytest.raises(TypeError, match=r"tags=\['io'\]"):
        Turn(make_greet(), tags="io")


def test_a_timeout_has_to_be_positive() -> None:
    with pytest.raises(ValueError, match="more than 0"):
        Turn(make_greet(), timeout=0)


# --- running ---------------------------------------------------------------------------------------------------------


async def test_times_are_noted() -> None:
    turn = Turn(make_greet(), kwargs={"name": "Ada"})
    assert (turn.start_time, turn.end_time) == (None, None)

    await turn.returning()

    assert turn.start_time is not None
    assert turn.end_time is not None
    assert turn.start_time <= turn.end_time <= datetime.now(UTC)


async def test_yielding_gives_values_as_they_come() -> None:
    turn = Turn(make_count(), kwargs={"upto": 3})

    values = [value async for value in turn.yielding()]

    assert values == turn.output == [0, 1, 2]
    assert turn.stop_reason is StopReason.COMPLETED


async def test_the_wrong_run_method_is_told() -> None:
    with pytest.raises(WrongRunMethodError, match="yielding"):
        await Turn(make_count(), kwargs={"upto": 1}).returning()

    with pytest.raises(WrongRunMethodError, match="returning"):
        await anext(Turn(make_greet(), kwargs={"name": "Ada"}).yielding())


async def test_a_turn_is_not_run_twice_at_a_time() -> None:
    @tool()
    async def again() -> str:
        with pytest.raises(SafeExecutionError, match="is running already"):
            await turn.returning()
        return "once"

    turn: Turn[str] = Turn(again)

    assert await turn.returning() == "once"
    assert await turn.returning() == "once"  # one after the other is fine


async def test_nothing_but_notes_changes_while_it_runs() -> None:
    @tool()
    async def change() -> None:
        turn.metadata["seen"] = True
        turn.metadata = {**turn.metadata, "set": 1}
        for name, value in {"tool": None, "timeout": 1, "kwargs": {}}.items():
            with pytest.raises(SafeExecutionError, match=f"`{name}` cannot be changed"):
                setattr(turn, name, value)

    turn = Turn(change)

    await turn.returning()
    turn.timeout = 5

    assert (turn.metadata, turn.timeout, turn.is_running) == ({"seen": True, "set": 1}, 5, False)


async def test_what_the_tool_raises_is_what_returning_raises() -> None:
    @tool(max_retries=0)
    async def fail() -> None:
        raise mishap

    for mishap in (LookupError("gone"), TimeoutError("the server's"), TurnTimeoutError("another", 1)):
        turn = Turn(fail)

        with pytest.raises(type(mishap)) as caught:
            await turn.returning()

        assert caught.value is mishap
        assert turn.stop_reason is StopReason.ERROR


async def test_a_stream_raises_after_its_values() -> None:
    @tool()
    async def break_off() -> AsyncIterator[int]:
        yield 1
        raise LookupError("gone")

    turn = Turn(break_off)
    stream = turn.yielding()

    first = await anext(stream)
    with pytest.raises(LookupError, match="gone"):
        await anext(stream)

    assert (first, turn.output, turn.stop_reason) == (1, [1], StopReason.ERROR)


async def test_leaving_a_stream_early_stops_the_tool() -> None:
    closed: list[Any] = []
    count = make_count(closed)

    @count.after_invoke
    async def note(values: list[int]) -> None:
        closed.append(values)

    turn = Turn(count, kwargs={"upto": 10})
    stream = turn.yielding()
    await anext(stream)
    await anext(stream)
    await stream.aclose()

    assert closed == ["closed", [0, 1]]
    assert (turn.output, turn.stop_reason) == ([0, 1], StopReason.CANCELLED)
    assert turn.end_time is not None


async def test_a_cancelled_turn_says_so() -> None:
    started = asyncio.Event()

    @tool()
    async def wait() -> None:
        started.set()
        await asyncio.Event().wait()

    turn = Turn(wait)
    task = asyncio.create_task(turn.returning())
    await started.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert (turn.stop_reason, turn.is_running) == (StopReason.CANCELLED, False)


async def test_a_nested_turn_sees_the_surrounding_run() -> None:
    from_host = Run(deps="the database")

    @tool()
    async def asks(ctx: RunContext[str]) -> str:
        return ctx.deps

    @tool()
    async def outer(ctx: RunContext[str]) -> str:
        return await Turn(asks).returning()

    assert await Turn(outer).returning(run=from_host) == "the database"


# --- timeouts --------------------------------------------------------------------------------------------------------


async def test_a_turn_that_takes_too_long_is_stopped() -> None:
    stopped: list[str] = []

    @tool()
    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append("stopped")

    turn = Turn(wait, timeout=0.01)

    with pytest.raises(TurnTimeoutError, match=r"`wait` did not finish within 0.01 s"):
        await turn.returning()

    assert stopped == ["stopped"]
    assert (turn.stop_reason, turn.end_time is not None) == (StopReason.TIMEOUT, True)


@in_virtual_time
async def test_the_timeout_covers_a_whole_stream() -> None:
    @tool()
    async def drip() -> AsyncIterator[int]:
        for number in range(1000):
            yield number
            await asyncio.sleep(0.005)

    turn = Turn(drip, timeout=0.2)

    with pytest.raises(TurnTimeoutError):
        async for _ in turn.yielding():
            pass

    assert turn.stop_reason is StopReason.TIMEOUT
    assert 0 < len(turn.output) < 1000


@in_virtual_time
async def test_the_time_in_which_a_reader_holds_a_value_does_not_count() -> None:
    turn, values = Turn(make_count(), timeout=0.2, kwargs={"upto": 2}), list[int]()

    async for value in turn.yielding():
        await asyncio.sleep(0.25)
        values.append(value)

    assert (values, turn.stop_reason) == ([0, 1], StopReason.COMPLETED)


async def test_without_a_timeout_it_may_take_any_time() -> None:
    turns = [Turn(make_greet(), None, kwargs={"name": "Ada"}), Turn(make_count(), None, kwargs={"upto": 2})]

    assert await turns[0].returning() == "hello Ada!"
    assert [value async for value in turns[1].yielding()] == [0, 1]


@in_virtual_time
async def test_the_clock_stops_while_an_approver_is_asked() -> None:
    @tool(requires_approval=True)
    async def pay() -> str:
        return "paid"

    async def think(request: ApprovalRequest) -> Grant:
        await asyncio.sleep(0.3)
        return request.grant("Ada")

    assert await Turn(pay, timeout=0.25).returning(run=Run(approver=think)) == "paid"


async def test_waiting_for_a_lock_counts() -> None:
    @tool(lock=True)
    async def alone() -> None: ...

    assert alone.lock is not None
    async with alone.lock:
        with pytest.raises(TurnTimeoutError):
            await Turn(alone, timeout=0.01).returning()


# --- gates -----------------------------------------------------------------------------------------------------------


async def test_a_turn_that_needs_approval_waits_with_its_request() -> None:
    ran: list[int] = []

    @tool(requires_approval=True)
    async def pay(amount: int) -> str:
        ran.append(amount)
        return "paid"

    turn = Turn(pay, kwargs={"amount": 5})
    with pytest.raises(ApprovalRequired):
        await turn.returning()

    assert (turn.stop_reason, ran) == (StopReason.SUSPENDED, [])
    assert turn.request is not None
    assert turn.request.arguments == {"amount": 5}
    assert await turn.returning(grant=turn.request.grant("Ada")) == "paid"
    assert (turn.stop_reason, turn.request) == (StopReason.COMPLETED, None)


async def test_a_stream_that_needs_approval_goes_on_with_a_grant() -> None:
    @tool(requires_approval=True)
    async def leak() -> AsyncIterator[int]:
        yield 1

    turn = Turn(leak)
    with pytest.raises(ApprovalRequired):
        await anext(turn.yielding())
    assert turn.request is not None

    assert [value async for value in turn.yielding(grant=turn.request.grant())] == [1]


@pytest.mark.parametrize("answer", ["approver", "denial"])
async def test_a_no_is_an_error_and_the_tool_never_runs(answer: str) -> None:
    @tool(requires_approval=True)
    async def pay() -> None:
        raise AssertionError("it ran")

    turn = Turn(pay)
    scope = Run(approver=deny_all if answer == "approver" else None)
    with pytest.raises((ApprovalDenied, ApprovalRequired)):
        await turn.returning(run=scope)
    if turn.request is not None:
        said = turn.request.deny(message="not today")
        assert isinstance(said, Denial)
        with pytest.raises(ApprovalDenied, match="not today"):
            await turn.returning(grant=said)

    assert turn.stop_reason is StopReason.ERROR


async def test_an_approver_lets_it_run_at_once() -> None:
    @tool(requires_approval=True)
    async def pay() -> str:
        return "paid"

    assert await Turn(pay).returning(run=Run(approver=approve_all)) == "paid"


async def test_a_pipeline_adds_the_gates_of_a_toolset() -> None:
    greet, hooks = make_greet(), HookSet()

    @hooks.on("greet")
    async def refuse(call: Any, given: Any) -> Reject:
        return Reject("not before noon")

    turn = Turn(greet, kwargs={"name": "Ada"})

    with pytest.raises(ApprovalDenied, match="not before noon"):
        await turn.returning(pipeline=Pipeline(Toolset([greet], hooks=hooks)))


async def test_a_hook_may_answer_in_place_of_a_stream() -> None:
    count, hooks = make_count(), HookSet()

    @hooks.on("count")
    async def answer(call: Any, given: Any) -> Complete:
        return Complete([7, 8])

    turn = Turn(count, kwargs={"upto": 3})

    assert [v async for v in turn.yielding(pipeline=Pipeline(Toolset([count], hooks=hooks)))] == [7, 8]
    assert turn.output == [7, 8]


async def test_a_retry_that_a_tool_asks_of_a_model_reaches_the_host() -> None:
    @tool()
    async def picky() -> None:
        raise ModelRetry("say it better")

    for _ in range(3):
        with pytest.raises(ModelRetry, match="say it better"):
            await Turn(picky).returning()


# --- hooks -----------------------------------------------------------------------------------------------------------


def watched(turn: Turn[Any], seen: list[Any]) -> Turn[Any]:
    """Note every moment of a turn."""

    @turn.before_run
    async def before(turn: Turn[Any]) -> None:
        seen.append(("before", turn.is_running))

    @turn.after_run
    async def after(turn: Turn[Any]) -> None:
        seen.append(("after", turn.output))

    @turn.on_timeout
    async def late(turn: Turn[Any]) -> None:
        seen.append(("timeout", turn.stop_reason))

    @turn.on_error
    async def failed(turn: Turn[Any], exc: Exception) -> None:
        seen.append(("error", str(exc)))

    @turn.on_complete
    async def ended(turn: Turn[Any], stop_reason: StopReason) -> None:
        seen.append(("complete", stop_reason))

    return turn


async def test_hooks_of_a_turn_that_completes() -> None:
    seen: list[Any] = []

    await watched(Turn(make_greet(), kwargs={"name": "Ada"}), seen).returning()

    assert seen == [("before", True), ("after", "hello Ada!"), ("complete", StopReason.COMPLETED)]


async def test_hooks_of_a_turn_that_fails() -> None:
    @tool()
    async def fail() -> None:
        raise LookupError("gone")

    seen: list[Any] = []

    with pytest.raises(LookupError):
        await watched(Turn(fail), seen).returning()

    assert seen[1:] == [("error", "gone"), ("complete", StopReason.ERROR)]


async def test_hooks_of_a_turn_that_takes_too_long() -> None:
    @tool()
    async def wait() -> None:
        await asyncio.Event().wait()

    seen: list[Any] = []

    with pytest.raises(TurnTimeoutError):
        await watched(Turn(wait, timeout=0.01), seen).returning()

    assert seen[1:] == [("timeout", StopReason.TIMEOUT), ("complete", StopReason.TIMEOUT)]


async def test_hooks_of_a_stream_that_is_left() -> None:
    seen: list[Any] = []
    stream = watched(Turn(make_count(), kwargs={"upto": 3}), seen).yielding()

    await anext(stream)
    await stream.aclose()

    assert seen == [("before", True), ("complete", StopReason.CANCELLED)]


async def test_a_global_hook_on_the_turn_too_is_told_once() -> None:
    seen: list[str] = []

    @hook(TurnHook.BEFORE_RUN, TurnHook.AFTER_RUN)
    async def note(turn: Turn[Any]) -> None:
        seen.append(turn.tool_name)

    turn = Turn(make_greet(), kwargs={"name": "Ada"})
    turn.before_run(note)

    await turn.returning()

    assert seen == ["greet", "greet"]  # once before and once after


async def test_tags_narrow_global_hooks() -> None:
    seen: list[Any] = []

    @hook(TurnHook.BEFORE_RUN, tags={"io"}, mark="fixed")
    async def note(turn: Turn[Any], mark: str) -> None:
        seen.append((turn.tags, mark))

    await Turn(make_greet(), kwargs={"name": "a"}, tags=["io", "disk"]).returning()
    await Turn("greet", kwargs={"name": "b"}).returning()

    assert seen == [(frozenset({"io", "disk"}), "fixed")]


@pytest.mark.parametrize(
    "moment", [TurnHook.BEFORE_RUN, TurnHook.AFTER_RUN, TurnHook.ON_COMPLETE, ToolHook.AFTER_INVOKE]
)
async def test_what_a_hook_raises_comes_out(moment: Any) -> None:
    @hook(moment)
    async def refuse() -> None:
        raise RuntimeError("the hook's own")

    turn = Turn(make_greet(), kwargs={"name": "Ada"})

    with pytest.raises(RuntimeError, match="the hook's own"):
        await turn.returning()

    assert turn.is_running is False


# --- writing it down -------------------------------------------------------------------------------------------------


async def test_a_turn_comes_back_as_it_was() -> None:
    turn = Turn(make_greet(), 5, ["Ada"], tags=["io"], metadata={"from": {"page": 1}})
    await turn.returning()

    data = turn.to_dict()
    back = Turn.from_dict(data)

    seed = {"uuid", "tool_name", "kwargs", "metadata", "timeout", "start_time", "end_time", "stop_reason", "output"}
    assert seed <= data.keys()
    assert back.to_dict() == data
    assert (back.uuid, back.output, back.stop_reason) == (turn.uuid, "hello Ada!", StopReason.COMPLETED)
    assert await back.returning() == "hello Ada!"


def test_a_uuid_is_one_and_no_other_turns() -> None:
    greet = make_greet()

    ids = {Turn(greet).uuid for _ in range(100)}

    assert len(ids) == 100
    assert all(isinstance(one, UUID) and one.version == 4 for one in ids)


async def test_typed_arguments_are_restored_by_their_annotation() -> None:
    @tool()
    async def book(day: date, nights: tuple[int, ...], note: str) -> tuple[date, tuple[int, ...], str]:
        return day, nights, note

    given = {"day": date(2030, 1, 2), "nights": (1, 2), "note": "2030-01-02"}

    back = Turn.from_dict(Turn(book, kwargs=given).to_dict())

    assert back.kwargs == given
    assert await back.returning() == (date(2030, 1, 2), (1, 2), "2030-01-02")


@pytest.mark.parametrize(
    ("where", "named"),
    [
        ({"kwargs": {"name": object()}}, "the argument `name` has the type object"),
        ({"kwargs": {"name": lambda: "Ada"}}, "the argument `name` has the type function"),
        ({"kwargs": {"name": (1, 2)}}, "the argument `name` has the type tuple"),
        ({"metadata": {"lock": object()}}, r"metadata\['lock'\] has the type object"),
        ({"metadata": {"rows": [iter([1])]}}, r"metadata\['rows'\] has the type list"),
    ],
)
def test_what_does_not_go_to_json_is_named(where: dict[str, Any], named: str) -> None:
    turn = Turn(make_greet(), **where)

    with pytest.raises(NotPortableError, match=named):
        turn.to_dict()


async def test_an_output_without_a_json_form_is_named() -> None:
    @tool()
    async def make() -> Any:
        return object()

    turn = Turn(make)
    await turn.returning()

    with pytest.raises(NotPortableError, match="the output has the type object"):
        turn.to_dict()


async def test_a_copy_is_a_turn_of_its_own() -> None:
    seen: list[Any] = []
    turn = watched(Turn(make_greet(), kwargs={"name": "Ada"}, metadata={"a": 1}), seen)
    await turn.returning()
    seen.clear()

    copy = turn.copy()
    copy.metadata["a"] = 2
    await copy.returning()

    assert (copy.uuid != turn.uuid, turn.metadata, len(seen)) == (True, {"a": 1}, 3)
