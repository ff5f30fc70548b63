from __future__ import annotations

import inspect
import json
from collections.abc import AsyncIterator
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from tests.schema.bombs import KINDS, bomb
from toolcrib.code import Toolkit
from toolcrib.code._as_tool import CODE_PARAMETERS
from toolcrib.code._listing import Listing
from toolcrib.code._prompts import estimated_tokens, render_prompt
from toolcrib.errors import SandboxError
from toolcrib.formats import definition
from toolcrib.sandbox import Dialect, Host, MontySandbox, Program, SandboxResult
from toolcrib.schema import Injected, RunContext, ToolSpec
from toolcrib.tools import Tool, ToolOptions, ez_tool, tool
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


def test_a_tool_that_is_off_is_not_shown() -> None:
    @tool(default=False)
    async def hidden() -> None:
        """Hidden."""

    assert "hidden" not in Toolkit([ping, hidden], sandbox=NoSandbox()).prompt()


def test_a_description_that_a_view_gives_is_shown() -> None:
    subset = Toolset([ping, get_weather]).subset(["get_weather"])

    prompt = Toolkit(subset, sandbox=NoSandbox()).prompt()

    assert "ping" not in prompt
    assert "Get the weather of a city." in prompt


def test_without_tools_that_is_said() -> None:
    assert "There are no functions." in Toolkit([], sandbox=NoSandbox()).prompt()


# --- one tool for all programs


@pytest.mark.parametrize("chaining", [False, True], ids=["plain", "chaining"])
def test_the_description_of_the_one_tool_is_the_recorded_one(chaining: bool) -> None:
    toolkit = Toolkit(TOOLS, sandbox=NoSandbox(), assist_tool_chaining=chaining)

    expected = (EXPECTED / f"description_{'chaining' if chaining else 'plain'}.txt").read_text("utf-8")

    assert toolkit.tool_schema("raw")["description"] + "\n" == expected
    assert inspect.getdoc(toolkit.as_tool()) == f"{expected}\nArgs:\n    code: The program, as Python text."


@pytest.mark.parametrize("surface", ["prompt", "docstring", "schema"])
def test_result_shapes_are_shown_everywhere_or_nowhere(surface: str) -> None:
    def rendered(chaining: bool, tools: list[Any]) -> str:
        toolkit = Toolkit(tools, sandbox=NoSandbox(), assist_tool_chaining=chaining)
        texts = {"prompt": toolkit.prompt(), "docstring": toolkit.as_tool().__doc__ or ""}
        return {**texts, "schema": json.dumps(toolkit.tool_schema())}[surface]

    bare = ez_tool(name="get_weather", description="Get the weather of a city.")(get_weather.fn)

    assert "# Returns: {city: str, temp: float, wind: list[int]}" in rendered(True, TOOLS)
    assert "Returns: " not in rendered(False, TOOLS)
    assert rendered(False, [get_weather]) == rendered(False, [bare])


@pytest.mark.parametrize("format", ["openai", "openai_responses", "anthropic", "gemini", "mistral"])
def test_the_one_tool_is_defined_for_each_provider(format: Any) -> None:
    toolkit = Toolkit(TOOLS, sandbox=NoSandbox())

    made = toolkit.tool_schema(format, name="run_it")

    plain = toolkit.tool_schema("raw")
    assert made == definition("run_it", plain["description"], CODE_PARAMETERS, format)
    assert "def get_weather" in json.dumps(made)


# --- as much as there is room for


@cache
def forty() -> Toolkit:
    """Return a toolkit of many tools with everything to tell of them."""
    made = [ez_tool(name=f"find_{n}", description=f"Find {n}. And more.")(get_weather.fn) for n in range(40)]
    return Toolkit(made, sandbox=NoSandbox(), assist_tool_chaining=True)


def test_detail_goes_step_by_step_and_no_tool_without_a_word() -> None:
    marks = ["Args:", "# Returns", "And more.", "Find 3.", "unit: Literal", "find_39"]
    steps: list[tuple[bool, ...]] = []
    for budget in range(5000, 100, -100):
        prompt = forty().prompt(budget=budget)
        shown = tuple(mark in prompt for mark in marks)
        if not steps or steps[-1] != shown:
            steps.append(shown)
        assert all(shown) or "`describe(" in prompt
        assert shown[-1] or ("There are 40 functions" in prompt and "`search_tools(" in prompt)

    assert steps == [tuple(n >= left_out for n in range(len(marks))) for left_out in range(len(marks) + 1)]


@pytest.mark.parametrize("budget", [400, 600, 1000, 2000, 4000])
def test_the_prompt_is_within_its_budget(budget: int) -> None:
    assert estimated_tokens(forty().prompt(budget=budget)) <= budget


def test_without_a_budget_everything_is_shown() -> None:
    toolkit = Toolkit(TOOLS, sandbox=NoSandbox())

    assert toolkit.prompt(budget=100_000) == toolkit.prompt()
    assert "describe" not in toolkit.prompt()


def test_a_large_set_is_shown_without_reading_all_of_it() -> None:
    schemas: list[str] = []

    class Counted(Listing):
        def function(self, name: str, entry: Any) -> str:
            schemas.append(name)
            return super().function(name, entry)

    tools = {f"find_{n}": Toolset([get_weather])["get_weather"] for n in range(2000)}
    prompt = render_prompt(Counted(tools), None, None, (), budget=300)

    assert "There are 2000 functions, too many to list here." in prompt
    assert len(schemas) < 200


def test_the_tools_own_names_for_search_are_respected() -> None:
    mine = ez_tool(name="describe")(lambda what: what)

    prompt = Toolkit([mine, get_weather], sandbox=NoSandbox()).prompt(budget=220)

    assert "`describe_(" in prompt


def test_tokens_are_estimated_by_bytes() -> None:
    assert (estimated_tokens(""), estimated_tokens("a" * 35), estimated_tokens("ж" * 35)) == (0, 10, 20)


def test_a_sandbox_that_gives_values_one_by_one_has_iterators() -> None:
    class Streams(NoSandbox):
        dialect = Dialect(streams=True)

    prompt = Toolkit([watch], sandbox=Streams(), assist_tool_chaining=True).prompt()

    assert "def watch(symbol: str) -> Iterator[Weather]:" in prompt
    assert "# Returns: Iterator[{city: str" in prompt


@pytest.mark.parametrize("kind", KINDS)
def test_a_type_that_is_too_large_to_be_shown_is_said_to_be(kind: str) -> None:
    async def evil(**arguments: Any) -> Any:
        return arguments

    tool = Tool(ToolSpec.from_schema(evil, bomb(kind), name="evil", returns=bomb(kind)), ToolOptions())
    prompt = Toolkit([tool], assist_tool_chaining=True).prompt()

    assert len(prompt) < 3000
    assert ("too large to be shown" in prompt) == (kind != "allOf")


def test_a_result_without_a_type_is_shown_in_the_words_of_its_docstring() -> None:
    @ez_tool
    def cat(name: str) -> dict[str, str]:
        """Read a file.

        Returns:
            file_content (str): What is in it.
        """
        return {}

    assert "    # Returns: file_content (str): What is in it." in Toolkit([cat], assist_tool_chaining=True).prompt()
    assert "file_content" not in Toolkit([cat]).prompt()
