from __future__ import annotations

import argparse
import ast
import asyncio
import dataclasses
import decimal
import inspect
import json.decoder
import pathlib
import re
import textwrap
import types
import typing
import warnings
from typing import Any

import pytest

from toolcrib.code import Finding, Toolkit
from toolcrib.code._check import KnownNames, check_program, defined_by
from toolcrib.sandbox import Dialect, Host, MontySandbox, Program, SandboxResult
from toolcrib.sandbox._worker.imports import MODULE_NAMES, UNLISTED
from toolcrib.tools import ez_tool, tool


@ez_tool
def get_weather(city: str, unit: str = "c") -> dict[str, Any]:
    """Say what the weather is like."""
    return {}


@ez_tool
def add(*numbers: int, times: int = 1) -> int:
    """Add numbers."""
    return sum(numbers) * times


@ez_tool
def note(text: str, **fields: str) -> None:
    """Note something."""


@ez_tool(tenant="acme")
def ship(to: str, *, tenant: str, fast: bool = False) -> None:
    """Ship something."""


@tool
async def orders() -> list[int]:
    """List the orders."""
    return []


@orders.subtool()
async def lines(number: int) -> list[str]:
    """List the lines of an order."""
    return []


class AnyPython:
    """A sandbox with four modules that runs nothing."""

    dialect = Dialect(frozenset({"json", "math", "os.path", "asyncio"}), names=frozenset({"parallel"}))

    async def run(self, program: Program, host: Host) -> SandboxResult:
        raise NotImplementedError


TOOLS = [get_weather, add, note, ship, orders]


def found(code: str) -> list[str]:
    """Return what is wrong with a program, as text."""
    return [str(finding) for finding in Toolkit(TOOLS, sandbox=AnyPython()).check(code)]


@pytest.mark.parametrize(
    "code",
    [
        "get_weather('Oslo')\nget_weather('Oslo', 'f')\nget_weather(city='Oslo')",
        "add(1, 2, 3, times=2)\nnote('a', b='c')\nship('a', fast=True)",
        "args = ['a']\nget_weather(*args)\nget_weather(**{'city': 'a'})\nget_weather('a', **{})",
        "def get_weather(a, b, c): ...\nget_weather(1, 2, 3)",
        "get_weather = lambda: 1\nget_weather()",
        "def use(get_weather): return get_weather(1, 2, 3)",
        "f = get_weather\nf()\nlist(map(get_weather, ['a']))\nparallel((get_weather, 'a'))",
        "try:\n    get_weather()\nexcept TypeError:\n    pass",
        "def bad(): return get_weather()\ntry:\n    bad()\nexcept (ValueError, TypeError):\n    pass",
        "orders.lines(1)\norders__lines(2)\norders()",
        "async def main():\n    return await get_weather('a')\nimport asyncio\nasyncio.run(main())",
        "import asyncio\n[await c for c in [get_weather('a')]]\nawait asyncio.gather(get_weather('a'))",
    ],
)
def test_calls_that_may_turn_out_right_are_let_through(code: str) -> None:
    assert found(code) == []


@pytest.mark.parametrize(
    "code",
    [
        "[a for a in range(3)]\nlambda b, *c, d=1, **e: (b, c, d, e)\nfor f, (g, *h) in []: f, g, h",
        "class A:\n    b = 1\n    c = b\n    def d(self): return __class__\nA().d()\nprint(__name__)",
        "match 1:\n    case {'a': b, **rest}: b, rest\n    case [c, *d]: c, d\n    case e: e",
        "def f():\n    global late\n    late = 1\nf()\nlate",
        "def f():\n    return later\nlater = 1\nf()",
        "try:\n    maybe\nexcept NameError:\n    maybe = 1\nmaybe",
        "try:\n    maybe\nexcept Exception as error:\n    print(error)",
        "import contextlib\nwith contextlib.suppress(NameError): maybe",
        "exec('made = 1')\nmade",
        "globals()['made'] = 1\nmade",
        "from math import *\nsqrt(2)",
        "from __future__ import annotations\ndef f(a: Unknown) -> Unknown: ...\nx: Unknown = 1",
        "if (n := 3) > 2: n\nimport os.path as p\np, __file__, NotImplemented",
        "def f():\n    x = 1\n    def g():\n        nonlocal x\n        x += 1\n    g()\nf()",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pandas",
        "try:\n    import numpy\nexcept ImportError:\n    numpy = None",
    ],
)
def test_names_and_modules_that_may_be_there_are_let_through(code: str) -> None:
    names = KnownNames((), lambda name: None, dialect=Dialect(frozenset({"math", "os.path", "contextlib", "typing"})))

    assert check_program(code, names, 10_000) == []


def test_ten_of_the_modules_are_named_once_packages_before_others() -> None:
    modules = frozenset({*(name for name in MODULE_NAMES.split() if name not in UNLISTED), "numpy"})
    names = KnownNames((), lambda name: None, dialect=Dialect(modules, packages=("numpy",)))

    first, second = check_program("import requests\nimport socket", names, 10_000)

    assert first.message.startswith("`requests` cannot be imported. A program can import numpy, math, datetime, json, ")
    assert f"statistics, decimal, asyncio and {len(modules) - 10} more (docs/sandbox.md lists them)." in first.message
    assert second.message == "`socket` cannot be imported. For anything else call a tool."


def test_the_page_lists_the_modules() -> None:
    page = (pathlib.Path(__file__).parents[2] / "docs" / "sandbox.md").read_text("utf-8")
    listed = page.partition("as far as this Python has them:")[2].partition("\n\n")[0]

    assert re.findall("`(.*?)`", listed) == [name for name in MODULE_NAMES.split() if name not in UNLISTED]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("get_wether('Oslo')", "line 1: NameError: name 'get_wether' is not defined. Did you mean `get_weather`?"),
        ("total = 1\nprint(totl)", "line 2: NameError: name 'totl' is not defined. Did you mean `total`?"),
        ("json.dumps(1)", "line 1: NameError: name 'json' is not defined. Write `import json` first."),
        ("def f():\n    return qqq", "It is neither a name of the program nor a tool."),
        ("import math\nimport numpy.linalg", "line 2: ImportError: `numpy.linalg` cannot be imported. A program can"),
        ("x = (", "line 1: SyntaxError: '(' was never closed\n    x = (\n        ^"),
        ("x = 1\nreturn x", "line 2: SyntaxError: 'return' outside function\n    return x"),
        ("get_weather()", "`city` is missing. Call it as `get_weather(city: str, unit: str = 'c') -> dict"),
        ("get_weather('a', 'c', 1)", "it takes at most 2 arguments by position, and 3 are given"),
        ("get_weather('a', town='b')", "it has no argument `town`"),
        ("get_weather('a', unti='b')", "it has no argument `unti` (Did you mean `unit`?)"),
        ("get_weather('a', city='b')", "`city` is given twice, by position and by name"),
        ("ship('a', 'b')", "it takes at most 1 argument by position"),
        ("ship('a', tenant='b')", "it has no argument `tenant`"),
        ("orders.lines()", "line 1: TypeError: `orders__lines` cannot be called like that: `number` is missing"),
        ("orders.line(1)", "line 1: AttributeError: `orders` has no `line`. There are: `orders.lines`."),
    ],
)
def test_what_cannot_work_is_said_with_the_mend(code: str, message: str) -> None:
    (told,) = found(code)

    assert message in told


def test_all_that_is_wrong_is_said_by_line() -> None:
    told = found("import numpy\nget_weather()\nfoo\nbar\nfoo")

    assert [line.partition(": ")[0] for line in told] == ["line 1", "line 2", "line 3", "line 4"]


async def test_a_program_that_cannot_work_does_not_run(sandbox: MontySandbox) -> None:
    ran: list[str] = []
    first = ez_tool(name="first")(lambda: ran.append("x"))

    result = await Toolkit([first, get_weather], sandbox=sandbox).execute_async("first()\nget_weather()\nfoo")

    assert (result.success, ran, result.tool_calls) == (False, [], [])
    assert [finding.line for finding in result.findings] == [2, 3]
    assert result.error is not None
    assert result.error.startswith("TypeError (line 2): `get_weather` cannot be called like that: `city` is missing")
    assert result.error.splitlines()[1].startswith("line 3: NameError: name 'foo' is not defined")
    assert "Nothing of it ran." in result.text()


def test_a_sandbox_that_does_not_say_what_it_has_may_have_any_name() -> None:
    class Silent:
        async def run(self, program: Program, host: Host) -> SandboxResult:
            raise NotImplementedError

    assert Toolkit([get_weather], sandbox=Silent()).check("import numpy\nfoo") == []


def test_what_a_program_leaves_is_read_off_it() -> None:
    assert defined_by("import os\nx = 1\ndef f(a): ...", 100) == (frozenset({"os", "x", "f", "a"}), True)
    assert defined_by("exec('y = 1')", 100)[1] is False
    assert defined_by("x = (", 100) == (frozenset(), True)


def test_findings_are_ordered_by_line() -> None:
    assert sorted([Finding(2, "NameError", "b"), Finding(1, "TypeError", "a")])[0].line == 1


@pytest.mark.parametrize(
    "module", [argparse, ast, dataclasses, decimal, inspect, json.decoder, pathlib, textwrap, typing]
)
def test_nothing_is_said_of_programs_that_work(module: types.ModuleType) -> None:
    code = inspect.getsource(module)

    assert check_program(code, KnownNames((), lambda name: None, dialect=Dialect()), 1_000_000) == []


@pytest.mark.parametrize(
    "code",
    [
        "\n".join(f"name{n}(1)" for n in range(5000)),
        "\n".join(f"import mod{n}" for n in range(5000)),
        "x" * 100_000,
        "greet(" + ",".join(f"key{n}=1" for n in range(3000)) + ")",
    ],
    ids=["names", "modules", "a long name", "arguments"],
)
async def test_of_very_many_mistakes_the_first_are_reported(code: str) -> None:
    @ez_tool
    def greet(name: str) -> str:
        """Greet."""
        return name

    result = await Toolkit([greet]).execute_async(code)

    assert 1 <= len(result.findings) <= 20
    assert [finding.line for finding in result.findings] == list(range(1, len(result.findings) + 1))
    assert len(result.error or "") < 20_000


@pytest.mark.parametrize("name", ["a long program", "a long reply"])
async def test_a_long_text_is_read_beside_the_event_loop(name: str) -> None:
    turns: list[str] = []

    async def neighbour() -> None:
        turns.append("one")

    toolkit = Toolkit([], sandbox=AnyPython())
    long = "unknown\n" * 10_000
    beside = asyncio.create_task(neighbour())
    if name == "a long program":
        result = await toolkit.execute_async(long)
    else:
        result = await toolkit.execute_async("other", retry_handler=lambda *failed: f"```\n{long}```", max_retries=1)

    assert not result.success
    assert turns == ["one"]
    await beside


async def test_no_warning_is_lost_where_programs_are_checked_in_threads() -> None:
    before = list(warnings.filters)

    await asyncio.gather(*(Toolkit([]).execute_async("x = '\\d'\nunknown\n" * 5_000) for _ in range(8)))

    assert warnings.filters == before
