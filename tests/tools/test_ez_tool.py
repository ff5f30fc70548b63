"""`@ez_tool`: any callable, and the bare function to the host."""

from functools import partial
from typing import Any

import pytest

from toolcrib.tools import ToolRegistry, ez_tool, tool


def test_an_ez_tool_is_the_bare_function_to_the_host() -> None:
    @ez_tool
    def add(a: int, b: int = 1) -> int:
        """Add."""
        return a + b

    assert (add(1), add(1, b=2)) == (2, 3)
    assert add.fn is not None
    assert add.fn(1, 2) == 3
    with pytest.raises(TypeError):
        add(1, 2, 3)  # type: ignore[call-arg]
    assert "add" not in ToolRegistry


async def test_an_ez_tool_called_by_the_host_tells_no_hook() -> None:
    told: list[Any] = []

    @ez_tool
    async def add(a: int) -> int:
        return a

    @add.before_invoke
    async def note(a: int) -> None:
        told.append(a)

    assert await add(1) == 1
    assert told == []


def test_a_return_schema_is_given() -> None:
    @ez_tool(return_schema={"type": "object"})
    def find() -> dict: ...  # type: ignore[type-arg]

    assert find.return_schema == {"type": "object"}


class Greeter:
    def __init__(self, word: str) -> None:
        self.word = word

    async def greet(self, name: str) -> str:
        """Greet somebody."""
        return f"{self.word} {name}"

    async def __call__(self, name: str) -> str:
        """Call somebody."""
        return f"{self.word}, {name}!"


async def greet(word: str, name: str) -> str:
    """Greet somebody."""
    return f"{word} {name}"


@pytest.mark.parametrize("make", [tool, ez_tool])
@pytest.mark.parametrize(
    ("fn", "name", "result"),
    [
        (Greeter("hi").greet, "greet", "hi ann"),
        (partial(greet, "hi"), "greet", "hi ann"),
        (Greeter("hi"), "Greeter", "hi, ann!"),
    ],
    ids=["method", "partial", "object"],
)
async def test_anything_callable_is_made_a_tool(make: Any, fn: Any, name: str, result: str) -> None:
    made = make(fn)

    assert made.name == name
    assert await made(name="ann") == result
    assert list(made.parameters["properties"]) == ["name"]
