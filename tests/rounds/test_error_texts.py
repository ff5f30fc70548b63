"""Error texts: what the model reads of a call that could not be made, over all formats."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from tests.rounds.replies import FORMATS
from toolcrib.calls import ToolCall
from toolcrib.formats import PROVIDERS
from toolcrib.rounds import Transcript, WireFormat, decode
from toolcrib.testing import wire_reply
from toolcrib.tools import tool
from toolcrib.toolsets import Toolset


class Address(BaseModel):
    model_config = ConfigDict(extra="forbid")
    street: str
    city: str = ""


@tool(register=False)
async def get_weather(city: str, days: list[int] = [], to: Address | None = None, snow: bool = False) -> str:  # noqa: B006
    """Get the weather."""
    return "sunny"


async def answer_to(format: WireFormat, name: str, arguments: Any) -> str:
    """Return what is committed of a call with these arguments, in the place where the format has them."""

    def placed(part: Any) -> Any:
        if isinstance(part, list):
            return [placed(each) for each in part]
        if not isinstance(part, dict):
            return part
        return {key: arguments if key in ("arguments", "input", "args") else placed(each) for key, each in part.items()}

    transcript = Transcript(format=format)
    reply = placed(wire_reply(format, [ToolCall(name, "{}", "abcdefgh1")]))
    plan = await decode(Toolset([get_weather]), reply, format=format, transcript=transcript).apply_hooks()
    added = await plan.commit(transcript, await plan.run_pending())
    return "\n".join(result.content for item in added for result in PROVIDERS[format].results_of(item))


TEXTS = {
    "cut in a text": ('{"city": "Osl', "it is cut in the middle of a string, after 13 characters: `{"),
    "cut in a list": ('{"days": [1, 2', "it is cut in the middle of a list, after 14 characters: `{"),
    "cut at once": ("{", "it is cut in the middle of an object, after 1 character: `{`. Send all of it again"),
    "a fence": ('```json\n{"city": "Oslo"}\n```', "it is in a Markdown fence. Send the JSON object alone, from { to }"),
    "Python's quotes": (
        "{'city': 'Oslo'}",
        "it has ' as Python does at line 1 column 2. JSON has double quotes, null, true",
    ),
    "Python's True": (
        '{"city": "Oslo", "snow": True}',
        "it has True as Python does at line 1 column 26. JSON has double",
    ),
    "a call": (
        "get_weather(city='Oslo')",
        "it is a call in Python. Send its arguments alone, by name, as one JSON object",
    ),
    "words before": ('Sure: {"city": "Oslo"}', "it begins with other words. Send the JSON object alone, from { to }"),
    "words after": (
        '{"city": "Oslo"} Done.',
        "it goes on after its end with `Done.`. Send one JSON object alone, from { to }",
    ),
    "two objects": (
        '{"city": "A"} {"city": "B"}',
        'it goes on after its end with `{"city": "B"}`. Send one JSON object',
    ),
}
VALUES = {
    "a text that holds a list": (
        {"city": "Oslo", "days": "[1, 2]"},
        "days: must be an array; got a text that holds one. Send the array itself, without quotes around it",
    ),
    "a text that holds an object": (
        {"city": "Oslo", "to": '{"street": "A"}'},
        "to: must be an object; got a text that holds one. Send the object itself, without quotes around it",
    ),
    "an unknown key inside": (
        {"city": "Oslo", "to": {"street": "A", "zip": 1}},
        "to.zip: unknown key; the keys are street, city",
    ),
    "a misspelt key inside": (
        {"city": "Oslo", "to": {"street": "A", "citi": "x"}},
        "to.citi: unknown key; did you mean city? The keys are street, city",
    ),
}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("case", TEXTS)
async def test_text_that_is_no_json_says_what_to_send(case: str, format: WireFormat) -> None:
    raw, said = TEXTS[case]

    assert f"not valid JSON: {said}" in await answer_to(format, "get_weather", raw)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("case", VALUES)
async def test_a_wrong_value_says_what_to_send(case: str, format: WireFormat) -> None:
    arguments, said = VALUES[case]
    sends_text = "arguments" in json.dumps(wire_reply(format, [ToolCall("get_weather", "{}", "abcdefgh1")]))

    text = await answer_to(format, "get_weather", json.dumps(arguments) if sends_text else arguments)

    assert text.endswith(said)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", ["functions.get_weather", "default_api.get_weather", "getWeather", "get weather"])
async def test_a_name_that_is_nearly_right_is_helped(name: str, format: WireFormat) -> None:
    assert "Did you mean `get_weather`?" in await answer_to(format, name, '{"city": "Oslo"}')
