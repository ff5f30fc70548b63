from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from toolcrib.code import Toolkit
from toolcrib.code.sandboxes import Host, MontySandbox, Program, SandboxResult
from toolcrib.errors import SandboxError
from toolcrib.schema import Injected, RunContext
from toolcrib.tools import ez_tool, tool
from toolcrib.toolsets import Toolset

EXPECTED = Path(__file__).parent / "prompts"


class NoSandbox:
    """A sandbox that is all of Python and runs nothing."""

    async def run(self, program: Program, host: Host) -> SandboxResult:
        raise SandboxError("there is none")


class Weather(TypedDict):
    city: str
    temp: float
    wind: list[int]


class Address(BaseModel):
    street: str
    zip: str | None = None


@ez_tool
def get_weather(city: str, unit: Literal["c", "f"] = "c") -> Weather:
    """Get the weather of a city.

    Args:
        city: City and country, as in "Oslo, Norway".
        unit: Celsius or
            Fahrenheit.
    """
    return {"city": city, "temp": 1.5, "wind": [1]}


@ez_tool(tenant="acme", name="ship-to")
def ship(
    ctx: RunContext[Any],
    to: Address,
    items: Annotated[list[str], Field(description="Article numbers")],
    store: Annotated[dict[str, str], Injected],
    *,
    tenant: str,
    express: bool = False,
) -> str:
    """Ship articles.

    This takes a while.
    """
    return "sent"


@ez_tool
async def watch(symbol: str) -> AsyncIterator[Weather]:
    """Watch a price."""
    yield {"city": "", "temp": 0.0, "wind": []}


@ez_tool
def ping():
    return None


TOOLS = [get_weather, ship, watch, ping]


@pytest.mark.parametrize("chaining", [False, True], ids=["plain", "chaining"])
def test_the_prompt_is_the_recorded_one(chaining: bool) -> None:
    toolkit = Toolkit(TOOLS, sandbox=NoSandbox(), assist_tool_chaining=chaining)

    expected = (EXPECTED / f"prompt_{'chaining' if chaining else 'plain'}.txt").read_text("utf-8")

    assert toolkit.prompt() + "\n" == expected


def test_the_tool_prompt_is_the_recorded_one() -> None:
    expected = (EXPECTED / "tool_prompt.txt").read_text("utf-8")

    assert Toolkit(TOOLS, sandbox=NoSandbox()).tool_prompt() + "\n" == expected


def test_the_first_and_last_words_can_be_replaced_or_left_out() -> None:
    prompt = Toolkit([ping], sandbox=NoSandbox(), preamble="First.", postamble="").prompt()

    assert prompt.startswith("First.\n\n```python\ndef ping():\n    ...\n```\n\n- ")
    assert "Answer with" not in prompt


def test_the_sandbox_says_what_its_python_lacks() -> None:
    prompt = Toolkit([ping], sandbox=MontySandbox()).prompt()

    assert "- This is a small Python: no `yield`" in prompt
    assert "- These modules can be imported: asyncio, base64," in prompt


def test_a_tool_that_is_off_is_not_told() -> None:
    @tool(default=False)
    async def hidden() -> None:
        """Hidden."""

    assert "hidden" not in Toolkit([ping, hidden], sandbox=NoSandbox()).prompt()


def test_a_description_that_a_view_gives_is_told() -> None:
    subset = Toolset([ping, get_weather]).subset(["get_weather"])

    prompt = Toolkit(subset, sandbox=NoSandbox()).prompt()

    assert "ping" not in prompt
    assert "Get the weather of a city." in prompt


def test_without_tools_that_is_said() -> None:
    assert "There are no functions." in Toolkit([], sandbox=NoSandbox()).prompt()
