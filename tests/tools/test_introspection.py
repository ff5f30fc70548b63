"""What `inspect`, `asyncio` and `typing` say of a tool: the same as of its function."""

from __future__ import annotations

import asyncio
import inspect
import sys
import typing
from collections.abc import AsyncIterator, Callable
from functools import partial, wraps
from typing import Annotated, Any

import pytest

from toolcrib.schema import Injected, RunContext
from toolcrib.tools import BaseTool, Tool, as_tool, ez_tool, tool


async def double(number: int, times: int = 2) -> int:
    """Double a number.

    Args:
        number: Any.
    """
    return number * times


async def count(upto: int) -> AsyncIterator[int]:
    """Count."""
    for number in range(upto):
        yield number


def add(a: int, b: int = 3) -> str:
    """Add."""
    return str(a + b)


class Adder:
    """Adds."""

    async def __call__(self, a: int) -> int:
        return a


class ReadTool(BaseTool):
    """Read a file."""

    def call(self, ctx: RunContext, path: str) -> str:
        return path


@pytest.mark.parametrize("fn", [double, count, add])
@pytest.mark.parametrize("make", [partial(tool, register=False), ez_tool], ids=["tool", "ez_tool"])
def test_a_tool_looks_like_its_function(make: Callable[..., Any], fn: Any) -> None:
    made = make()(fn) if fn is not add else ez_tool(fn)

    for attribute in ("__name__", "__qualname__", "__module__", "__doc__", "__annotations__"):
        assert getattr(made, attribute) == getattr(fn, attribute)
    assert made.__wrapped__ is fn
    assert inspect.signature(made) == inspect.signature(fn)
    assert typing.get_type_hints(made) == typing.get_type_hints(fn)
    for kind in (inspect.iscoroutinefunction, inspect.isasyncgenfunction):
        assert kind(made) is kind(fn)
    if sys.version_info < (3, 14):  # where it is deprecated
        assert asyncio.iscoroutinefunction(made) is asyncio.iscoroutinefunction(fn)
    assert inspect.getsource(made) == inspect.getsource(fn)


@pytest.mark.parametrize(
    ("made", "is_async", "parameters"),
    [
        (as_tool(ReadTool), True, "(path: 'str') -> 'str'"),  # a call of it is awaited, though its function is sync
        (ez_tool(name="adder")(Adder()), True, "(a: 'int') -> 'int'"),
        (ez_tool(name="six")(partial(add, 6)), False, "(b: 'int' = 3) -> 'str'"),
        (ez_tool(name="two")(partial(double, 2)), True, "(times: 'int' = 2) -> 'int'"),
    ],
    ids=["BaseTool", "object", "partial", "async partial"],
)
def test_what_is_no_plain_function_looks_like_one(made: Tool[..., Any], is_async: bool, parameters: str) -> None:
    assert inspect.iscoroutinefunction(made) is is_async
    assert str(inspect.signature(made)) == parameters


def test_what_is_fixed_or_filled_by_the_run_is_not_in_the_signature() -> None:
    async def fetch(ctx: RunContext, path: str, db: Annotated[str, Injected], key: str) -> str:
        return path

    made = tool(register=False, key="secret")(fetch)

    assert list(inspect.signature(made).parameters) == ["path"]


def test_a_bare_function_is_given_what_is_fixed() -> None:
    @ez_tool(key=lambda: "fresh")
    def fetch(path: str, key: str) -> str:
        return f"{path} {key}"

    assert (fetch("a"), fetch(path="b"), fetch("c", key="own")) == ("a fresh", "b fresh", "c own")
    with pytest.raises(TypeError, match="does not take the arguments other"):
        fetch("a", other=1)  # type: ignore[call-arg]


@pytest.mark.parametrize("needs", [True, lambda arguments, ctx: False], ids=["always", "by a function"])
@pytest.mark.parametrize("around", [lambda made: made, partial, lambda made: wraps(made)(lambda: made())])
def test_a_tool_that_needs_approval_shows_no_signature_and_is_called_as_before(needs: Any, around: Any) -> None:
    @ez_tool(requires_approval=needs)
    def made() -> str:
        """Pay."""
        return "paid"

    with pytest.raises(ValueError, match=r"needs approval, .*`as_tools\(\["):
        inspect.signature(around(made))
    assert around(made)() == "paid"


def test_the_class_itself_is_inspected_as_a_class() -> None:
    assert "spec" in inspect.signature(Tool).parameters
    assert Tool.__doc__ is not None
    assert not hasattr(Tool, "__signature__")
