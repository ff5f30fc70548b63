from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
from typing_extensions import TypedDict

from toolcrib.code import Toolkit
from toolcrib.code._attempts import TypeStubs
from toolcrib.sandbox import MontySandbox
from toolcrib.tools import ez_tool, tool
from toolcrib.tools.from_schema import schema_tool

ran: list[str] = []


class Weather(TypedDict):
    city: str
    temp: int


@ez_tool
def get_weather(city: str) -> Weather:
    """Say what the weather is like."""
    ran.append(city)
    return {"city": city, "temp": 3}


@tool
async def parcels() -> list[Weather]:
    """List the parcels."""
    return []


@parcels.subtool()
async def pieces(number: int) -> list[str]:
    """List the pieces of an order."""
    return []


@ez_tool
async def watch(city: str) -> AsyncIterator[Weather]:
    """Watch the weather."""
    yield {"city": city, "temp": 3}


TOOLS = {"get_weather": get_weather, "parcels": parcels, "parcels__pieces": pieces, "watch": watch}


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


@pytest.mark.parametrize(
    ("code", "line", "message"),
    [
        ("get_weather(1)", 1, "Expected `str`, found `Literal[1]`"),
        ("w = get_weather('a')\nw['tmp']", 2, 'Unknown key "tmp" for TypedDict `Weather` - did you mean "temp"?'),
        ("x = await get_weather('a')\nx['tmp']", 2, 'Unknown key "tmp"'),
        ("import asyncio\na, b = await asyncio.gather(get_weather('a'), get_weather('b'))\nb['tmp']", 3, "tmp"),
        ("parcels.pieces('x')", 1, "Argument to function `parcels__pieces` is incorrect"),
        ("for one in watch('a'):\n    one['tmp']", 2, 'Unknown key "tmp"'),
        ("from __future__ import annotations\n\nget_weather('a') + 1", 3, "Operator `+` is not supported"),
    ],
)
async def test_types_that_do_not_fit_are_found(sandbox: MontySandbox, code: str, line: int, message: str) -> None:
    (finding,) = await TypeStubs(TOOLS, streams=True).check(code, sandbox)

    assert (finding.line, finding.kind) == (line, "TypeError")
    assert message in finding.message


@pytest.mark.parametrize(
    "code",
    [
        "get_weather('a')['temp'] + 1",
        "import numpy\nnumpy.array(get_weather('a'))",
        "next(watch('a'))['temp']\nasync for one in watch('a'): one['city']\nlist(watch('a'))[0]['temp']",
        "parallel((get_weather, 'a'))[0]['x']\nsearch_tools('x')[0]['name']\ndescribe('a').upper()",
        "def get_weather(n): return n\nget_weather(1)",
        "import re\nre.match('a', 'b').group(0)",
        "unknown(1)",
        "x = (",
    ],
)
async def test_what_may_be_right_is_not_remarked_on(sandbox: MontySandbox, code: str) -> None:
    assert await TypeStubs(TOOLS, streams=True).check(code, sandbox) == []


Q = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
HTTP_GET = schema_tool(
    "http_get",
    {
        "properties": {
            "url": {"type": "string"},
            "agent": {"type": "string"},
            "x-key": {"type": "string"},
            "from": {"type": "integer"},
        },
        "required": ["url", "x-key"],
    },
    lambda **arguments: sorted(arguments),
    description="Get a page.",
)


@pytest.mark.parametrize(
    "code",
    ["http_get('u', **{'x-key': 'k', 'from': 1})", "more = {'x-key': 'k', 'from': 1}\nhttp_get('u', **( more ))"],
)
async def test_arguments_without_a_python_name_are_given_as_the_prompt_shows_them(
    sandbox: MontySandbox, code: str
) -> None:
    kit = Toolkit([HTTP_GET], sandbox=sandbox, typecheck="error")

    result = await kit.execute_async(code)

    assert "def http_get(url: str, agent: str = ..., **{'x-key': str, 'from'?: int}):" in kit.prompt()
    assert (result.error, result.return_value) == (None, ["from", "url", "x-key"])


@pytest.mark.parametrize("typecheck", ["off", "error"])
@pytest.mark.parametrize(
    "schema", [{"$ref": "#/$defs/Q", "$defs": {"Q": Q}}, {"allOf": [Q]}, {"anyOf": [Q, {"properties": {"id": {}}}]}]
)
async def test_arguments_that_the_root_refers_to_are_given_as_the_prompt_shows_them(
    sandbox: MontySandbox, schema: dict[str, Any], typecheck: Any
) -> None:
    find = schema_tool("find", schema, lambda **given: given, description="Find.")
    kit = Toolkit([find], sandbox=sandbox, typecheck=typecheck)

    named, placed = await kit.execute_async("find(q='x')"), await kit.execute_async("find('x')")

    assert "def find(q: str" in kit.prompt()
    assert (named.error, named.return_value) == (placed.error, placed.return_value) == (None, {"q": "x"})


async def test_a_missing_argument_without_a_python_name_is_found(sandbox: MontySandbox) -> None:
    (finding,) = await TypeStubs({"http_get": HTTP_GET}, streams=True).check("http_get('u')", sandbox)

    assert finding.message == "No argument provided for required parameter `x-key` of function `http_get`"


async def test_an_error_keeps_the_program_from_running(sandbox: MontySandbox) -> None:
    kit = Toolkit([get_weather], sandbox=sandbox, typecheck="error")

    result = await kit.execute_async("get_weather('a')['tmp']")

    assert (result.success, ran, result.warnings) == (False, [], ())
    assert str(result.error).startswith("TypeError (line 1): Unknown key")


async def test_a_warning_is_in_the_result_of_a_program_that_runs(sandbox: MontySandbox) -> None:
    kit = Toolkit([get_weather], sandbox=sandbox, typecheck="warn")

    result = await kit.execute_async("get_weather('a').get('tmp')")
    failed = await kit.execute_async("get_weather('a')['tmp']")

    assert (result.success, ran) == (True, ["a", "a"])
    assert failed.warnings[0].startswith("line 1: TypeError: Unknown key")
    assert "The type checker had said: line 1" in failed.text()


async def test_a_program_is_never_run_by_the_checker(sandbox: MontySandbox) -> None:
    code = "while True: pass"

    found = await asyncio.wait_for(TypeStubs({}, streams=False).check(code, sandbox), 60)

    assert found == []


def test_another_word_is_refused() -> None:
    wrong: Any = "maybe"

    with pytest.raises(ValueError, match="typecheck is 'maybe'; give one of 'off', 'warn', 'error'"):
        Toolkit([get_weather], typecheck=wrong)


def test_without_the_extra_a_toolkit_that_checks_types_is_not_made() -> None:
    code = (
        "import sys; sys.modules['pydantic_monty'] = None\n"
        "from toolcrib import Toolkit\n"
        "Toolkit([], sandbox='process')\n"
        "Toolkit([], sandbox='process', typecheck='warn')"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert "MissingExtraError: checking the types of programs needs an optional dependency" in done.stderr
    assert "line 4" in done.stderr


async def test_a_program_is_checked_beside_a_tool_whose_types_are_too_many() -> None:
    types = [{"type": "object", "properties": {f"k{number}": {"type": "string"}}} for number in range(2000)]

    async def count(**arguments: Any) -> int:
        return len(arguments["of"])

    schema = {"type": "object", "properties": {"of": {"type": "array", "prefixItems": types}}, "required": ["of"]}
    kit = Toolkit([schema_tool("count", schema, count, description="Count."), get_weather], typecheck="error")

    counted = await kit.execute_async("print(count(of=[{}, {}]))")
    refused = await kit.execute_async("get_weather(3)")

    assert (counted.output, [finding.kind for finding in refused.findings]) == ("2\n", ["TypeError"])
