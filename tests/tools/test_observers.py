"""What the observers of a tool are told, by the host's own calls."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from toolcrib.hooks import ToolHook, hook
from toolcrib.tools import Tool, tool

Told = list[tuple[Any, ...]]


def doubling() -> Tool[..., Any]:
    @tool()
    async def double(x: int, y: int = 0) -> int:
        if x < 0:
            raise ValueError("negative")
        return x * 2

    return double


def counting() -> Tool[..., Any]:
    @tool()
    async def count(to: int) -> Any:
        for n in range(to):
            if n == 5:
                raise ValueError("five")
            yield n

    return count


def watched(made: Tool[..., Any]) -> Told:
    """Attach a hook for every moment and return what they are told."""
    told: Told = []

    @made.before_invoke
    async def before(**arguments: Any) -> None:
        told.append(("before", arguments))

    @made.on_yield
    async def on_yield(value: Any) -> None:
        told.append(("yield", value))

    @made.after_invoke
    async def after(result: Any) -> None:
        told.append(("after", result))

    @made.on_error
    async def on_error(exc: Exception) -> None:
        told.append(("error", str(exc)))

    return told


async def test_a_call_is_told_before_and_after() -> None:
    double = doubling()
    told = watched(double)

    await double(3)

    assert told == [("before", {"x": 3, "y": 0}), ("after", 6)]


async def test_an_error_is_told_and_nothing_after_it() -> None:
    double = doubling()
    told = watched(double)

    with pytest.raises(ValueError, match="negative"):
        await double(-1)

    assert told == [("before", {"x": -1, "y": 0}), ("error", "negative")]


async def test_a_stream_is_told_value_by_value() -> None:
    count = counting()
    told = watched(count)

    assert [n async for n in count(2)] == [0, 1]

    assert told == [("before", {"to": 2}), ("yield", 0), ("yield", 1), ("after", [0, 1])]


async def test_a_stream_that_fails_is_told_as_an_error() -> None:
    count = counting()
    told = watched(count)

    with pytest.raises(ValueError, match="five"):
        async for _ in count(9):
            pass

    assert told[-1] == ("error", "five")
    assert "after" not in [kind for kind, _ in told]


async def test_leaving_a_stream_early_is_told_with_the_values_so_far() -> None:
    count = counting()
    told = watched(count)

    numbers = count(9)
    async for n in numbers:
        if n == 1:
            break
    await numbers.aclose()

    assert told[-1] == ("after", [0, 1])
    assert "error" not in [kind for kind, _ in told]


async def test_breaking_out_of_a_stream_is_told_soon() -> None:
    count = counting()
    told = watched(count)

    async for _ in count(9):
        break
    for _ in range(5):
        await asyncio.sleep(0)

    assert told[-1] == ("after", [0])


async def test_hooks_are_told_what_they_ask_for() -> None:
    double = doubling()
    told: Told = []

    @double.before_invoke
    async def one(y: int = -1) -> None:
        told.append(("one", y))

    @double.after_invoke
    async def none() -> None:
        told.append(("none",))

    @double.after_invoke(note="kept")
    async def fixed(result: int, note: str) -> None:
        told.append(("fixed", result, note))

    await double(1, y=2)

    assert told == [("one", 2), ("none",), ("fixed", 2, "kept")]


def test_a_hook_that_requires_an_argument_the_tool_has_not_is_refused() -> None:
    double = doubling()

    with pytest.raises(TypeError, match=r"`before` is called with the arguments of `double\(x: int.* requires `path`"):

        @double.before_invoke
        async def before(path: str) -> None: ...

    assert double.hooks == []


async def test_a_hook_may_require_an_argument_that_the_call_leaves_out() -> None:
    double, told = doubling(), list[Any]()

    @double.before_invoke
    async def before(y: int) -> None:
        told.append(y)

    await double(1)

    assert told == [0]


def test_a_hook_of_another_event_is_refused_when_it_does_not_fit_this_one() -> None:
    double = doubling()

    @hook(ToolHook.ON_ERROR)
    async def note(exc: Exception) -> None: ...

    with pytest.raises(TypeError, match=r"called with the arguments of `double\(x: int.* requires `exc`"):
        double.before_invoke(note)


async def test_fixed_arguments_are_told_before() -> None:
    told: Told = []

    @tool(key=lambda: "fresh")
    async def fetch(path: str, key: str) -> None: ...

    @fetch.before_invoke
    async def before(path: str, key: str) -> None:
        told.append((path, key))

    await fetch("a")

    assert told == [("a", "fresh")]


@pytest.mark.parametrize(
    ("tags", "wanted", "fires"),
    [
        ([], None, True),
        (["io"], None, True),
        (["io", "db"], {"io"}, True),
        (["db"], {"io", "db"}, True),
        (["db"], {"io"}, False),
        ([], {"io"}, False),
    ],
)
async def test_global_hooks_are_narrowed_by_tags(tags: list[str], wanted: set[str] | None, fires: bool) -> None:
    told: list[Any] = []

    @hook(ToolHook.AFTER_INVOKE, tags=wanted)
    async def note(result: Any) -> None:
        told.append(result)

    @tool(tags=tags)
    async def find() -> str:
        return "found"

    await find()

    assert told == (["found"] if fires else [])


async def test_a_tools_own_hook_fires_whatever_its_tags() -> None:
    told: list[Any] = []

    @tool(tags=["db"])
    async def find() -> str:
        return "found"

    @find.after_invoke
    @hook(ToolHook.AFTER_INVOKE, tags={"io"})
    async def note(result: Any) -> None:
        told.append(result)

    await find()

    assert told == ["found"]


async def test_a_hook_that_is_global_and_attached_fires_once() -> None:
    told: list[Any] = []

    @tool()
    async def find() -> str:
        return "found"

    @find.after_invoke
    @hook(ToolHook.AFTER_INVOKE)
    async def note(result: Any) -> None:
        told.append(result)

    await find()

    assert told == ["found"]


async def test_own_hooks_come_before_global_ones_in_order() -> None:
    told: list[str] = []

    def noting(name: str) -> Callable[..., Any]:
        async def note() -> None:
            told.append(name)

        note.__name__ = name
        return note

    @tool()
    async def find() -> None: ...

    hook(ToolHook.AFTER_INVOKE)(noting("global"))
    find.after_invoke(noting("one"))
    find.after_invoke(noting("two"))

    await find()

    assert told == ["one", "two", "global"]
    assert [h.name for h in find.hooks] == ["one", "two"]


async def test_a_global_hook_registered_later_is_told_too() -> None:
    told: list[Any] = []

    @tool()
    async def find() -> str:
        return "found"

    await find()

    @hook(ToolHook.AFTER_INVOKE)
    async def note(result: Any) -> None:
        told.append(result)

    await find()

    assert told == ["found"]


async def test_one_hook_for_several_moments() -> None:
    told: Told = []
    double = doubling()

    @hook(ToolHook.AFTER_INVOKE, [ToolHook.ON_ERROR])
    async def note(result: Any = None, exc: Exception | None = None) -> None:
        told.append((result, str(exc)))

    await double(1)
    with pytest.raises(ValueError, match="negative"):
        await double(-1)

    assert told == [(2, "None"), (None, "negative")]


@pytest.mark.parametrize("moment", ["before_invoke", "after_invoke"])
async def test_what_a_hook_raises_reaches_the_host(moment: str) -> None:
    double = doubling()
    told = watched(double)

    @getattr(double, moment)
    async def fail() -> None:
        raise LookupError("hook") from KeyError("why")

    with pytest.raises(LookupError, match="hook") as raised:
        await double(3)

    assert isinstance(raised.value.__cause__, KeyError)
    assert "error" not in [kind for kind, _ in told]


async def test_what_an_error_hook_raises_takes_the_place_of_the_error() -> None:
    double = doubling()

    @double.on_error
    async def fail(exc: Exception) -> None:
        raise LookupError("hook")

    with pytest.raises(LookupError, match="hook"):
        await double(-1)


async def test_a_hook_that_raises_on_a_value_closes_the_stream() -> None:
    closed: list[str] = []

    @tool()
    async def count() -> Any:
        try:
            yield 1
            yield 2
        finally:
            closed.append("closed")

    @count.on_yield
    async def fail(value: int) -> None:
        raise LookupError("hook")

    told = watched(count)

    with pytest.raises(LookupError, match="hook"):
        async for _ in count():
            pass

    assert closed == ["closed"]
    assert [kind for kind, _ in told] == ["before"]


async def test_a_locked_hook_runs_one_at_a_time() -> None:
    inside: list[int] = [0, 0]
    double = doubling()

    @double.after_invoke(lock=True)
    async def slow() -> None:
        inside[0] += 1
        inside[1] = max(inside)
        await asyncio.sleep(0)
        inside[0] -= 1

    await asyncio.gather(*(double(n) for n in range(3)))

    assert inside == [0, 1]


async def test_a_hook_cannot_change_what_the_tool_gets_or_gives() -> None:
    double = doubling()

    @double.before_invoke
    async def before(**arguments: Any) -> int:  # type: ignore[misc]
        arguments["x"] = 100
        return 100

    @double.after_invoke
    async def after(result: int) -> int:  # type: ignore[misc]
        return 100

    assert await double(1) == 2
