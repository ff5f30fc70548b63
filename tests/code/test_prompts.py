from __future__ import annotations

import ast
import inspect
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from tests.jsonschema.bombs import KINDS, bomb
from toolcrib.code import Toolkit
from toolcrib.code._as_tool import CODE_PARAMETERS
from toolcrib.code._listing import Listing
from toolcrib.errors import SandboxError
from toolcrib.formats import PROVIDERS, definition
from toolcrib.sandbox import Dialect, Host, MontySandbox, Program, SandboxResult
from toolcrib.schema import Injected, RunContext, ToolSpec
from toolcrib.tools import Tool, ToolOptions, ez_tool, tool
from toolcrib.tools.from_schema import schema_tool
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


@pytest.mark.parametrize("format", [*PROVIDERS])
def test_the_one_tool_is_defined_for_each_provider(format: Any) -> None:
    toolkit = Toolkit(TOOLS, sandbox=NoSandbox())

    made = toolkit.tool_schema(format, name="run_it")

    plain = toolkit.tool_schema("raw")
    assert made == definition("run_it", plain["description"], CODE_PARAMETERS, format)
    assert "def get_weather" in json.dumps(made)


# --- what is shown of arguments and results


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


@ez_tool
def cat(file_name: str, lines: int = 10, raw: bool = False) -> dict[str, str | int]:
    """Read a file.

    Args:
        file_name: The name of the file.
        lines: [Optional] The most lines to read. Defaults to 10.
        raw: (optional) Without colours.

    Returns:
        file_content (str): What is in it.
        size (int): In bytes.
    """
    return {}


def test_the_keys_that_a_docstring_gives_of_a_result_are_its_shape() -> None:
    prompt = Toolkit([cat], assist_tool_chaining=True).prompt()

    assert "def cat(file_name: str, lines: int = 10, raw: bool = False):\n" in prompt
    assert "    # Returns: {file_content: str, size: int}\n" in prompt
    assert '- `describe("name")` also says what the keys of a result are for.' in prompt
    assert "file_content" not in Toolkit([cat]).prompt()


async def test_describe_gives_the_words_of_the_docstring_as_well() -> None:
    described = (await Toolkit([cat]).execute_async("describe('cat')")).return_value

    assert "# Returns: {file_content: str, size: int}. file_content (str): What is in it. size (int): In" in described
    assert "    file_name: The name of the file.\n    lines: [Optional] The most lines to read. Def" in described


def test_what_names_and_the_signature_say_is_not_said_again() -> None:
    prompt = Toolkit([cat]).prompt()

    assert '    """Read a file.\n    lines: The most lines to read.\n    raw: Without colours."""\n' in prompt


def test_a_result_without_keys_is_shown_in_the_words_of_its_docstring() -> None:
    @ez_tool
    def size(name: str) -> int:
        """Measure a file.

        Returns:
            bytes (int): How long it is.
        """
        return 1

    prompt = Toolkit([size], assist_tool_chaining=True).prompt()

    assert "def size(name: str) -> int:\n" in prompt
    assert "    # Returns: bytes (int): How long it is.\n" in prompt


def test_a_tool_of_a_schema_is_shown_with_its_types() -> None:
    properties = {
        "room": {"enum": ["hall", "kitchen"]},
        "day": {"type": "string", "format": "date", "description": "When."},
        "who": {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "integer"}}}},
    }
    book = schema_tool("book", {"properties": properties, "required": ["room"]}, description="Book a room.")

    prompt = Toolkit([book]).prompt()

    assert (
        "def book(room: Literal['hall', 'kitchen'], day: str = ..., who: list[dict] = ...):\n"
        '    """Book a room.\n'
        "    day: When. (a date like 2025-01-31)\n"
        '    who: list[{id?: int}]"""\n'
    ) in prompt


WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\n\"'\\\t "))


@given(description=WORDS, argument=WORDS)
def test_a_listing_is_python_with_any_words(description: str, argument: str) -> None:
    def save(path: Annotated[str, Field(description=argument)]) -> None: ...

    toolset = Toolset([ez_tool(save, description=description)])
    listing = Listing({entry.name: entry for entry in toolset})

    (function,) = ast.parse("\n".join(listing.functions())).body

    assert isinstance(function, ast.FunctionDef)
    assert " ".join(description.split()) in (ast.get_docstring(function) or "")
