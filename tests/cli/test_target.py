"""TARGET: what can be named, and what is said when it cannot be loaded."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from toolcrib.cli._find_toolset import listed_tools, tools_of
from toolcrib.errors import TargetError

ONE = "from toolcrib.tools import tool\n\n\n@tool\nasync def one() -> int:\n    return 1\n"


def write(path: str, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text, "utf-8")


@pytest.mark.parametrize(
    ("attribute", "names"),
    [
        (":add", ["add"]),
        (":buy", ["buy", "buy__back"]),
        ("", ["add", "buy", "buy__back", "count", "login", "broken", "odd", "forever"]),
    ],
)
def test_a_file_is_a_module_or_one_thing_in_it(tools: str, attribute: str, names: list[str]) -> None:
    toolset = tools_of(tools + attribute)

    assert toolset.names() == names


@pytest.mark.parametrize("target", ["tools:add", "tools.py:add", f".{os.sep}tools.py:add"])
def test_a_target_is_looked_for_in_the_current_folder(tools: str, target: str) -> None:
    toolset = tools_of(target)

    assert toolset.names() == ["add"]


def test_a_file_may_import_its_neighbours_and_relatives() -> None:
    write("app/shop/__init__.py", "")
    write("app/shop/prices.py", "PRICE = 3\n")
    write("app/shop/tools.py", ONE + "\nfrom .prices import PRICE\n")
    write("loose/helper.py", ONE.replace("one", "two"))
    write("loose/main.py", "from helper import two\n")

    assert tools_of("app/shop/tools.py").names() == ["one"]
    assert tools_of("loose/main.py").names() == ["two"]


def test_two_files_of_one_name_do_not_meet() -> None:
    write("a/tools.py", ONE)
    write("b/tools.py", ONE.replace("one", "two"))

    assert tools_of("a/tools.py").names() == ["one"]
    assert tools_of("b/tools.py").names() == ["two"]
    assert tools_of("a/tools.py").names() == ["one"]


CRIB = """
from pydantic import BaseModel

from toolcrib.tools import BaseTool, Tool, ToolRegistry, ez_tool, tool, tool_input
from toolcrib.toolsets import Toolset
from toolcrib.turns import Agent


class Bot:
    def go(self, steps: int) -> int:
        "Go."
        return steps


class Base(BaseTool):
    pass


class Say(Base):
    "Say."

    async def call(self, ctx, text: str) -> str:
        return text


@tool_input("search")
class Search(BaseModel):
    "Search."

    query: str


@ez_tool
def plain(x: int) -> int:
    "Plain."
    return x


def bare(x: int) -> int:
    "Bare."
    return x


bot = Bot()
agent = Agent("shop", "Sells.", [Say, plain])
several = [plain, Say]
say = Say()
"""


@pytest.mark.parametrize(
    ("attribute", "names"),
    [
        (":bot", ["go"]),
        (":agent", ["say", "plain"]),
        (":several", ["plain", "say"]),
        (":Say", ["say"]),
        (":say", ["say"]),
        (":Search", ["search"]),
        (":bare", ["bare"]),
        (":bot.go", ["go"]),
        ("", ["search", "plain", "say"]),
    ],
)
def test_what_an_attribute_may_be(attribute: str, names: list[str]) -> None:
    write("crib.py", CRIB)

    toolset = tools_of("crib.py" + attribute)

    assert toolset.names() == names


SERVER = """
from mcp.server import MCPServer

server = MCPServer("maths")


@server.tool()
def add(a: int, b: int) -> int:
    "Add."
    return a + b
"""


@pytest.mark.parametrize("attribute", ["", ":server"])
def test_a_server_of_the_sdk_is_connected_to(attribute: str) -> None:
    write("served.py", SERVER)

    assert listed_tools("served.py" + attribute).names() == ["add"]


@pytest.mark.parametrize(
    ("module", "problem"),
    [
        ("fastmcp.server.server", r"belongs to an MCP server: connect\('python server.py'\)"),
        ("json.decoder", r"names a Theirs of the package json, .* `tools = Toolset.from_object\(...\)` in the file"),
        ("pytest", r"names a Theirs of the package pytest, .* in the file"),
    ],
)
def test_methods_of_a_class_of_another_package_are_no_tools(module: str, problem: str) -> None:
    text = "import json.decoder, pytest\n\n\nclass Theirs:\n    def go(self) -> int:\n        return 1\n\n\n"
    write("theirs.py", f"{text}Theirs.__module__ = {module!r}\ntheirs = Theirs()\n")

    with pytest.raises(TargetError, match=problem):
        tools_of("theirs.py:theirs")


@pytest.mark.parametrize("name", ["notes.txt", "notes.db", "notes"])
def test_a_file_of_another_kind_is_said_to_be_one(name: str) -> None:
    write(name, "hello")

    with pytest.raises(TargetError, match=r"it is a file of another kind; give Python \(tools.py\)"):
        tools_of(name)


def test_the_only_toolset_of_a_module_is_the_module() -> None:
    write("crib.py", CRIB + "\ncrib = Toolset([plain])\nalso = crib\n")

    assert tools_of("crib.py").names() == ["plain"]


def test_of_several_toolsets_one_has_to_be_named() -> None:
    write("crib.py", CRIB + "\nfirst = Toolset([plain])\nsecond = Toolset([Say])\n")

    with pytest.raises(TargetError, match=r"it has 2 toolsets \(`first`, `second`\); name one: crib.py:first"):
        tools_of("crib.py")


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("nowhere.py", "there is no file nowhere.py"),
        ("nowhere", "there is no module `nowhere` in "),
        ("mcp.jsn", "there is no such file; a file of MCP servers ends with .json or .toml"),
        ("json.nowhere", "there is no module `json.nowhere` in "),
        ("tools/", "`tools/` is neither a module nor a Python file; give a Python file"),
        ("", "it is neither a module nor a Python file"),
        ("crib.py:", "is followed by a colon and no name"),
        ("crib.py:sey", "`crib` has nothing named `sey`. Did you mean `say`?"),
        ("crib.py:bot.goo", "`bot` has nothing named `goo`. Did you mean `go`?"),
        ("crib.py:Bot", "`Bot` is a class; name an object of it"),
        ("crib.py:number", "it names an int; name a toolset"),
        ("crib.py:mixed", "1 is not a tool"),
        ("crib.py:twice", "are named `plain`"),
        ("crib.py:empty", "a list holds no tools"),
        ("json", "the module `json` has no tools"),
    ],
)
def test_what_is_wrong_is_said(target: str, problem: str) -> None:
    more = "\nnumber = 1\nmixed = [1]\nempty = []\ntwice = [plain, Toolset([ez_tool(name='plain')(bare)])]\n"
    write("crib.py", CRIB + more)

    with pytest.raises(TargetError) as caught:
        tools_of(target)

    assert f"cannot load tools from `{target}`: " in str(caught.value)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("x = 1\n\nmissing()\n", "line 3 of bad.py raises NameError: name 'missing' is not defined"),
        ("x = (\n", "line 1 of bad.py: SyntaxError: '(' was never closed"),
        ("import nowhere\n", "line 1 of bad.py raises ModuleNotFoundError: No module named 'nowhere'"),
        ("def f():\n    1 / 0\n\n\nf()\n", "line 2 of bad.py raises ZeroDivisionError: division by zero"),
        ("from deeper import x\n", "line 2 of deeper.py raises KeyError: 'x'"),
        ("import sys\n\nsys.exit(3)\n", "line 3 of bad.py raises SystemExit: 3"),
        ("raise ValueError('one\\ntwo')\n", "line 1 of bad.py raises ValueError: one"),
        (
            "from toolcrib.tools import tool\n\n\n@tool\ndef f() -> None: ...\n",
            "line 4 of bad.py raises TypeError: `f` is a sync function, and @tool takes async ones",
        ),
    ],
)
@pytest.mark.parametrize("target", ["bad.py", "bad"])
def test_a_target_that_fails_is_told_by_the_line_of_the_user(target: str, text: str, problem: str) -> None:
    write("bad.py", text)
    write("deeper.py", "\nx = {}['x']\n")

    with pytest.raises(TargetError) as caught:
        tools_of(target)

    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_a_target_prints_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    write("loud.py", ONE + "\nprint('loading')\n")

    tools_of("loud.py")

    assert capsys.readouterr() == ("", "loading\n")
