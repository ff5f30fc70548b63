from __future__ import annotations

from typing import Any

import pytest

from toolcrib.code import Toolkit
from toolcrib.code._search_tools import matching
from toolcrib.pipeline import Run
from toolcrib.sandbox import Sandbox
from toolcrib.schema import RunContext
from toolcrib.tools import BaseTool, ez_tool, tool
from toolcrib.toolsets import Toolset
from toolcrib.toolsets.search import searchable


@ez_tool
def send_email(recipient: str, body: str = "") -> str:
    """Send a message to somebody.

    Args:
        recipient: Their address.
    """
    return f"sent to {recipient}"


@ez_tool(name="get-weather")
def get_weather(city: str) -> dict[str, int]:
    """Say what the weather is like."""
    return {"temp": 3}


@tool(default=False)
async def drop_table() -> None:
    """Drop a table of weather."""


class Gated(BaseTool):
    """Weather of tomorrow."""

    def is_available(self, ctx: RunContext[Any]) -> bool:
        return ctx.deps == "ada"

    async def call(self, ctx: RunContext[Any]) -> int:
        return 1


@pytest.fixture
def kit(engine: Sandbox) -> Toolkit:
    return Toolkit([send_email, get_weather, drop_table, Gated], sandbox=engine)


async def test_a_program_finds_tools_and_calls_them(kit: Toolkit) -> None:
    result = await kit.execute_async("found = search_tools('weather in a city')\nprint(found)\nget_weather('Oslo')")

    assert "'name': 'get_weather', 'call': 'get_weather(city: str) -> dict[str, int]'" in result.output
    assert result.return_value == {"temp": 3}
    assert [call["name"] for call in result.tool_calls] == ["get-weather"]


@pytest.mark.parametrize("name", ["'send_email'", "'send_email()'", "send_email", "name='send_email'"])
async def test_a_program_reads_all_about_a_tool(kit: Toolkit, name: str) -> None:
    result = await kit.execute_async(f"describe({name})")

    assert result.return_value.startswith("def send_email(recipient: str, body: str = '') -> str:")
    assert "recipient: Their address." in result.return_value


async def test_what_is_off_or_not_available_is_neither_found_nor_described(kit: Toolkit) -> None:
    code = """
names = [one["name"] for one in search_tools("weather")]
for name in ["drop_table", "gated"]:
    try:
        describe(name)
    except NameError as error:
        names.append(str(error)[:28])
names
"""

    result = await kit.execute_async(code)
    allowed = await kit.execute_async("[one['name'] for one in search_tools('weather')]", Run(deps="ada"))

    assert result.return_value == ["get_weather", "there is no function `drop_t", "there is no function `gated`"]
    assert sorted(allowed.return_value) == ["gated", "get_weather"]


async def test_only_what_the_run_may_call_is_found(kit: Toolkit) -> None:
    scope = Run(available=frozenset({"send_email"}))

    found = await kit.execute_async("[one['name'] for one in search_tools('weather message')]", scope)
    told = await kit.execute_async("describe('get_weather')", scope)

    assert found.return_value == ["send_email"]
    assert "there is no function `get_weather`" in str(told.error)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("search_tools()", "TypeError"),
        ("search_tools('a', 1, 2)", "TypeError"),
        ("search_tools('a', limit=0)", "ValueError"),
        ("describe(3)", "TypeError"),
    ],
)
async def test_a_wrong_call_of_them_shows_how_they_are_called(kit: Toolkit, call: str, error: str) -> None:
    result = await kit.execute_async(call)

    assert str(result.error).startswith(error)


async def test_a_condition_that_fails_is_shut(engine: Sandbox) -> None:
    def broken(ctx: Any, entry: Any) -> bool:
        raise ZeroDivisionError

    kit = Toolkit(Toolset([send_email]).filtered(broken), sandbox=engine)

    assert "RuntimeError" in str((await kit.execute_async("search_tools('message')")).error)


async def test_a_tool_of_that_name_comes_first(engine: Sandbox) -> None:
    mine = ez_tool(name="describe")(lambda what: f"mine: {what}")

    kit = Toolkit([mine, send_email], sandbox=engine)
    result = await kit.execute_async("[describe('x'), describe_('send_email')]")

    assert result.return_value[0] == "mine: x"
    assert result.return_value[1].startswith("def send_email")


async def test_a_hidden_tool_is_called_after_it_was_found_in_the_same_program(engine: Sandbox) -> None:
    kit = Toolkit(searchable([send_email, get_weather]), sandbox=engine)

    early = await kit.execute_async("send_email('ada')")
    found = await kit.execute_async("search_tools('write an email message')\nsend_email('ada')")

    assert str(early.error).startswith("PermissionError (line 1): `send_email` is not available")
    assert found.return_value == "sent to ada"


async def test_a_name_that_is_not_mentioned_is_not_there(engine: Sandbox) -> None:
    kit = Toolkit(searchable([send_email, get_weather]), sandbox=engine)

    result = await kit.execute_async("send_emial('ada')")

    assert "send_email" not in str(result.error)


async def test_without_the_extra_words_of_name_and_description_are_matched() -> None:
    entries = list(Toolset([send_email, get_weather, Gated]))
    ctx: RunContext[Any] = RunContext("bo", "c", "search_tools", "r")

    found = await matching(entries, "what weather will it be", 2, ctx)

    assert [entry.name for entry in found] == ["get-weather"]
    assert await matching(entries, "out of the", 2, ctx) == []
