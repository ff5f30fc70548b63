"""The tools, toolkits and results of the document that code mode was specified by: each of their uses, in our words.

The names imported from `toolcrib` are all that a program written for it has to change.
"""

from __future__ import annotations

import inspect
import json
from typing import Any, Literal, Optional

import pytest
from pydantic import BaseModel
from typing_extensions import TypedDict

from toolcrib import Toolkit, ez_tool


class Forecast(TypedDict):
    place: str
    degrees: int
    scale: str
    sky: str


class Item(BaseModel):
    title: str
    price: float


@ez_tool
def forecast(place: str, scale: str = "celsius") -> dict:  # type: ignore[type-arg]
    """Tell the weather of a place.

    Args:
        place: Town and country, e.g. "Bergen, Norway"
        scale: "celsius" or "fahrenheit"
    """
    return {"place": place, "degrees": 22, "scale": scale, "sky": "clear"}


@ez_tool
def shaped_forecast(place: str) -> Forecast:
    """Tell the weather of a place."""
    return {"place": place, "degrees": 22, "scale": "celsius", "sky": "clear"}


@ez_tool
def find_items(query: str, limit: int = 5) -> list[Item]:
    """Find what is for sale."""
    return [Item(title=f"{query} {n}", price=9.5) for n in range(limit)]


# --- tools


def test_a_tool_says_all_of_its_attributes() -> None:
    assert forecast.name == "forecast"
    assert forecast.description == "Tell the weather of a place."
    assert forecast.parameters["properties"]["place"] == {
        "type": "string",
        "description": 'Town and country, e.g. "Bergen, Norway"',
    }
    assert forecast.parameters["properties"]["scale"]["default"] == "celsius"
    assert forecast.parameters["required"] == ["place"]
    assert forecast.signature == "forecast(place: str, scale: str = 'celsius') -> dict"
    assert shaped_forecast.return_schema is not None
    assert shaped_forecast.return_schema["properties"].keys() == {"place", "degrees", "scale", "sky"}
    assert callable(forecast.fn)


def test_a_tool_is_called_like_its_function() -> None:
    assert forecast("Bergen")["place"] == "Bergen"
    assert forecast("Bergen") == forecast.fn("Bergen")


def test_type_hints_become_the_schema() -> None:
    @ez_tool
    def everything(
        a: str,
        b: int,
        c: float,
        d: bool,
        e: list[int],
        f: dict[str, float],
        g: Optional[int],  # noqa: UP045 -- as it may be written
        h: int | None,
        i: Literal["x", "y"],
        j: Forecast,
        k: Item,
    ) -> None:
        """Take everything."""

    parts = everything.parameters["properties"]
    kinds = [parts[name].get("type") for name in "abcdef"]
    assert kinds == ["string", "integer", "number", "boolean", "array", "object"]
    assert parts["e"]["items"] == {"type": "integer"}
    assert parts["f"]["additionalProperties"] == {"type": "number"}
    assert [json.dumps(parts[name]).count("integer") for name in "gh"] == [1, 1]
    assert (parts["i"]["type"], parts["i"]["enum"]) == ("string", ["x", "y"])
    assert "degrees" in json.dumps(everything.parameters)
    assert "price" in json.dumps(everything.parameters)


def test_the_first_paragraph_and_the_arguments_of_a_docstring_are_read() -> None:
    @ez_tool
    def look_up(query: str, limit: int = 10) -> list[dict[str, Any]]:
        """Look something up.

        Args:
            query: What to look for
            limit: The most results to return
        """
        return []

    assert look_up.description == "Look something up."
    assert look_up.parameters["properties"]["limit"]["description"] == "The most results to return"


# --- both modes


def test_a_toolkit_takes_its_options() -> None:
    toolkit = Toolkit(
        tools=[forecast, find_items],
        preamble="Before.",
        postamble="After.",
        assist_tool_chaining=False,
    )

    prompt = toolkit.prompt()

    assert prompt.startswith("Before.")
    assert prompt.endswith("After.")
    assert [tool.name for tool in toolkit.tools] == ["forecast", "find_items"]
    assert toolkit.get_tool("forecast") is forecast


def test_prompt_mode() -> None:
    toolkit = Toolkit([forecast, find_items])
    reply = "I write a program.\n\n```python\nprint(forecast('Bergen')['degrees'])\nlen(find_items('tea'))\n```\n"

    code = toolkit.extract_code(reply)
    assert code is not None
    result = toolkit.execute(code)

    assert "def forecast(place: str, scale: str = 'celsius') -> dict:" in toolkit.prompt()
    assert (result.output, result.error_output, result.return_value) == ("22\n", "", 5)
    assert (result.success, result.error) == (True, None)
    assert [call["name"] for call in result.tool_calls] == ["forecast", "find_items"]
    assert result.tool_calls[0]["arguments"] == {"place": "Bergen"}
    assert result.tool_calls[0]["result"]["degrees"] == 22


async def test_tool_mode() -> None:
    toolkit = Toolkit([forecast, find_items])
    run = toolkit.as_tool()
    schema = toolkit.tool_schema(format="openai")

    assert "forecast(place: str" in (inspect.getdoc(run) or "")
    assert schema["function"]["name"] == run.__name__
    assert "single call" in schema["function"]["description"]
    assert "single call" in toolkit.tool_prompt()
    assert await run("print(forecast('Bergen')['sky'])") == "clear"


def test_tool_mode_without_an_event_loop() -> None:
    assert Toolkit([forecast]).as_tool(sync=True)("forecast('Bergen')['sky']") == "clear"


# --- execution


def test_safe_modules_can_be_imported_and_others_not() -> None:
    toolkit = Toolkit([forecast])

    fine = toolkit.execute("import math, datetime, collections, itertools, re\nmath.floor(2.5)")
    socket = toolkit.execute("import socket")
    file = toolkit.execute("open('/etc/passwd')")

    assert fine.return_value == 2
    assert [socket.success, file.success] == [False, False]


def test_a_wrong_key_is_an_error_with_the_traceback() -> None:
    result = Toolkit([forecast]).execute(
        "weather = forecast('Bergen')\nif weather['temperature'] > 80:\n    print('hot')"
    )

    assert (result.success, result.return_value) == (False, None)
    assert "KeyError" in str(result.error)
    assert "line 2" in result.error_output


# --- chaining


@pytest.mark.parametrize("surface", ["prompt", "docstring", "schema"])
@pytest.mark.parametrize("chaining", [True, False])
def test_the_shapes_of_results_are_shown_when_chaining_is_assisted(surface: str, chaining: bool) -> None:
    toolkit = Toolkit([shaped_forecast], assist_tool_chaining=chaining)
    texts = {
        "prompt": toolkit.prompt(),
        "docstring": toolkit.as_tool().__doc__ or "",
        "schema": toolkit.tool_schema()["function"]["description"],
    }

    line = "# Returns: {place: str, degrees: int, scale: str, sky: str}"
    assert (line in texts[surface]) is chaining


@pytest.mark.parametrize("way", ["TypedDict", "model", "explicit"])
def test_there_are_three_ways_to_say_what_a_tool_returns(way: str) -> None:
    schema = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
    explicit = ez_tool(name="explicit", return_schema=schema)(forecast.fn)
    tools = {"TypedDict": shaped_forecast, "model": find_items, "explicit": explicit}
    shapes = {"TypedDict": "{place: str,", "model": "list[{title: str, price: float}]", "explicit": "{id: int}"}

    prompt = Toolkit([tools[way]], assist_tool_chaining=True).prompt()

    assert f"# Returns: {shapes[way]}" in prompt


def test_without_chaining_a_toolkit_looks_like_one_whose_tools_say_nothing() -> None:
    bare = ez_tool(name="shaped_forecast", return_schema=None)(shaped_forecast.fn)

    assert Toolkit([shaped_forecast]).prompt() == Toolkit([bare]).prompt()
    assert Toolkit([shaped_forecast]).tool_schema() == Toolkit([bare]).tool_schema()
