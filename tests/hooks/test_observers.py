"""Hooks by themselves: what is registered, and what each is told."""

from __future__ import annotations

import asyncio
import re
from typing import Annotated, Any, get_args

import pytest

from toolcrib.errors import DuplicateNameError, MissingProvided, UnregisteredHookError
from toolcrib.hooks import Hook, HookRaised, HookRegistry, HookType, Observers, ToolHook, TurnHook, fire, hook
from toolcrib.schema import Injectable, Injected, RunContext


class Queue(Injectable): ...


def test_a_hook_is_registered_by_its_name() -> None:
    @hook(ToolHook.AFTER_INVOKE, TurnHook.AFTER_RUN, tags={"io"})
    async def note(result: Any) -> None: ...

    assert HookRegistry.get("note") is note
    assert (note.types, note.tags) == ({ToolHook.AFTER_INVOKE, TurnHook.AFTER_RUN}, frozenset({"io"}))


def test_a_name_is_registered_once() -> None:
    @hook(ToolHook.AFTER_INVOKE)
    async def note() -> None: ...

    with pytest.raises(DuplicateNameError):
        hook(ToolHook.AFTER_INVOKE)(note.fn)
    replaced = hook(ToolHook.ON_ERROR, replace=True)(note.fn)

    assert HookRegistry.get("note") is replaced


def test_an_unknown_hook_is_a_key_error() -> None:
    with pytest.raises(UnregisteredHookError):
        HookRegistry.get("nothing")


def test_a_sync_function_is_no_hook() -> None:
    def note() -> None: ...

    with pytest.raises(TypeError, match="`note` must be an async function"):
        hook(ToolHook.AFTER_INVOKE)(note)  # type: ignore[arg-type]


def test_a_hook_is_for_some_event() -> None:
    with pytest.raises(TypeError, match="event"):
        hook()


@pytest.mark.parametrize("event", ["tool.after_invoke", ["nope"], 3, print])
def test_an_event_is_of_a_hook_enum(event: Any) -> None:
    with pytest.raises(TypeError, match="is not an event; name a member of a hook enum"):
        hook(event)


def test_events_may_be_a_list() -> None:
    @hook([ToolHook.AFTER_INVOKE, TurnHook.AFTER_RUN])
    async def note() -> None: ...

    assert note.types == {ToolHook.AFTER_INVOKE, TurnHook.AFTER_RUN}


def test_tags_are_no_text() -> None:
    async def note() -> None: ...

    with pytest.raises(TypeError, match="tags must be a list of words, not the text 'io'"):
        hook(ToolHook.AFTER_INVOKE, tags="io")(note)


def test_a_fixed_argument_has_to_fit() -> None:
    async def note(result: Any) -> None: ...

    with pytest.raises(TypeError, match="`note` does not accept the fixed argument `where`"):
        hook(ToolHook.AFTER_INVOKE, where="log")(note)


@pytest.mark.parametrize("event", [event for kind in get_args(HookType) for event in kind])
def test_a_hook_that_requires_what_no_event_gives_is_refused_when_it_is_attached(event: HookType) -> None:
    async def note(a: Any, b: Any, c: Any, d: Any) -> None: ...

    if event is ToolHook.BEFORE_INVOKE:  # any tool may have these arguments
        assert Hook(note, [event]).types == {event}
        return
    with pytest.raises(TypeError, match=rf"`note` is called with \({re.escape(', '.join(event.parameters))}\)"):
        Hook(note, [event])
    with pytest.raises(TypeError, match="it also requires"):
        Observers().add(event, Hook(note, []))


def test_what_fills_a_hooks_parameters_is_not_required_of_its_event() -> None:
    async def note(turn: Any, queue: Queue, later: Later, where: str, flag: bool = True, *rest: Any) -> None: ...

    made = Hook(note, [TurnHook.AFTER_RUN], fixed={"where": "log"})

    assert made.types == {TurnHook.AFTER_RUN}


class Later(Injectable): ...


def test_a_keyword_is_not_filled_by_position() -> None:
    async def note(*, turn: Any) -> None: ...

    with pytest.raises(TypeError, match=r"`note` is called with \(turn\).*requires `turn`"):
        hook(TurnHook.AFTER_RUN)(note)


def test_an_error_hook_of_a_tool_takes_the_exception_by_name() -> None:
    async def note(error: Exception) -> None: ...

    with pytest.raises(TypeError, match=r"called with \(\*, exc\) at `tool.on_error`, and it also requires `error`"):
        hook(ToolHook.ON_ERROR)(note)


async def test_a_hook_is_told_what_it_declares() -> None:
    told: list[Any] = []

    @hook(ToolHook.BEFORE_INVOKE, note="fixed")
    async def note(a: int, note: str, b: int = 0) -> None:
        told.append((a, note, b))

    await note(1, b=2, c=3)  # type: ignore[call-arg]
    await note(1, note="given")

    assert told == [(1, "fixed", 2), (1, "given", 0)]


async def test_an_object_with_a_call_is_a_hook() -> None:
    told: list[Any] = []

    class Note:
        async def __call__(self, result: Any) -> None:
            told.append(result)

    await Hook(Note(), [ToolHook.AFTER_INVOKE])(1)

    assert told == [1]


async def test_a_hook_is_supplied_from_the_run() -> None:
    told: list[Any] = []
    queue = Queue()
    ctx = RunContext("deps", "c1", "find", "run_1", provided={Queue: queue, "db": "the db"})

    async def note(ctx: RunContext, queue: Queue, db: Annotated[str, Injected], result: Any) -> None:
        told.append((ctx.deps, queue, db, result))

    await Hook(note, [ToolHook.AFTER_INVOKE]).invoke((5,), {}, ctx)

    assert told == [("deps", queue, "the db", 5)]


async def test_a_hook_that_nobody_supplies_says_what_it_lacks() -> None:
    async def note(queue: Queue) -> None: ...

    with pytest.raises(MissingProvided, match=r"`note` needs `queue` \(Queue\)"):
        await Hook(note, [ToolHook.AFTER_INVOKE]).invoke((), {})


async def test_an_optional_one_gets_none() -> None:
    told: list[Any] = []

    async def note(queue: Queue | None, other: Queue | str = "default") -> None:  # type: ignore[assignment]
        told.append((queue, other))

    await Hook(note, [ToolHook.AFTER_INVOKE]).invoke((), {})

    assert told == [(None, "default")]


async def test_firing_stops_at_what_is_raised_and_marks_it() -> None:
    told: list[str] = []

    async def first() -> None:
        raise ValueError("first")

    async def second() -> None:
        told.append("second")

    hooks = tuple(Hook(fn, [ToolHook.AFTER_INVOKE]) for fn in (first, second))

    with pytest.raises(HookRaised) as raised:
        await fire(hooks)

    assert (raised.value.hook, str(raised.value.error), told) == ("first", "first", [])


async def test_firing_lets_a_cancellation_pass() -> None:
    async def wait() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await fire((Hook(wait, [ToolHook.AFTER_INVOKE]),))


def test_observers_are_a_table_that_follows_the_registry() -> None:
    async def own() -> None: ...

    observers = Observers(frozenset({"io"}))
    observers.add(ToolHook.AFTER_INVOKE, Hook(own, [ToolHook.AFTER_INVOKE]))

    @hook(ToolHook.AFTER_INVOKE, tags={"io"})
    async def fits() -> None: ...

    @hook(ToolHook.AFTER_INVOKE, tags={"db"})
    async def other() -> None: ...

    names = [h.name for h in observers.table()[ToolHook.AFTER_INVOKE]]
    HookRegistry.unregister("fits")

    assert names == ["own", "fits"]
    assert [h.name for h in observers.table()[ToolHook.AFTER_INVOKE]] == ["own"]


def test_a_locked_hook_lets_go_of_closed_loops() -> None:
    entered = 0

    async def note() -> None:
        nonlocal entered
        await asyncio.sleep(0)
        entered += 1

    locked = Hook(note, [ToolHook.AFTER_INVOKE], lock=True)

    async def crowd() -> None:
        await asyncio.gather(locked(), locked())

    for _ in range(3):
        asyncio.run(crowd())

    assert entered == 6
