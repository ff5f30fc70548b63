"""The plugin of pytest, as a test of the user's has it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from toolcrib.approvals import approve_all
from toolcrib.calls import CallRecord, Suspended, ToolCall
from toolcrib.pipeline import Pipeline, Run
from toolcrib.rounds import Session
from toolcrib.testing import WAYS, ScriptedModel, Way
from toolcrib.tools import ToolRegistry, ez_tool, tool

PROJECT = """
from toolcrib import tool

@tool
async def add(a: int) -> int: ...

def test_one():
    @tool
    async def found() -> int: ...

def test_the_same_name():
    @tool
    async def found() -> int: ...
"""


BARE = """
import sys
from importlib.machinery import PathFinder
from importlib.metadata import packages_distributions

KNOWN = {"annotated_types", "griffe", "griffelib", "iniconfig", "packaging", "pluggy", "py", "pydantic",
         "pydantic_core", "pygments", "pytest", "_pytest", "toolcrib", "typing_extensions", "typing_inspection"}

OTHERS = packages_distributions().keys() - KNOWN

class Bare:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return None if name.partition(".")[0] in OTHERS else PathFinder.find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Bare

from toolcrib.testing import WAYS

print(len(WAYS))
"""


@ez_tool(requires_approval=True)
async def pay(cents: int) -> str:
    return f"{cents} paid"


def test_tool_calls_has_the_records_of_every_pipeline(tool_calls: list[CallRecord]) -> None:
    model, run = ScriptedModel(ToolCall("pay", {"cents": 5}), "ok"), Run(approver=approve_all)
    Session(model, tools=[pay], run=run).say("Pay.").run_sync()
    Pipeline([pay]).run_sync(ToolCall("pay", {"euros": 5}))

    assert [(call.tool, call.outcome["kind"]) for call in tool_calls] == [("pay", "completed"), ("pay", "failed")]


def test_tool_calls_begins_with_an_empty_list(tool_calls: list[CallRecord]) -> None:
    assert tool_calls == []


async def test_every_way_is_each_way_in(every_way: Way) -> None:
    assert isinstance(await every_way([pay]).call("pay", {"cents": 5}), Suspended)


def test_the_ways_in_need_pytest_alone() -> None:
    done = subprocess.run([sys.executable, "-c", BARE], capture_output=True, text=True, check=False)

    assert done.stderr == ""
    assert int(done.stdout) == len(WAYS)


def test_empty_registries_has_what_the_test_made(empty_registries: None) -> None:
    @tool
    async def mine() -> None: ...

    assert ToolRegistry.all() == [mine]


@pytest.mark.parametrize(("option", "said"), [("true", "4 passed"), ("false", "2 errors")])
def test_modules_and_tests_have_registries_of_their_own_where_the_project_says_so(
    tmp_path: Path, option: str, said: str
) -> None:
    for name in ("test_first.py", "test_second.py", "test_third.py")[: 2 if option == "true" else 3]:
        (tmp_path / name).write_text(PROJECT)
    (tmp_path / "pytest.ini").write_text(f"[pytest]\ntoolcrib_registries = {option}\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:asyncio", "-p", "toolcrib_pytest"]

    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert said in done.stdout


LATE = """
import asyncio
import pytest

@pytest.mark.parametrize("end", [pytest.fail, pytest.skip])
def test_late(end):
    from toolcrib.calls import ToolCall
    from toolcrib.pipeline import Pipeline
    from toolcrib.tools import ez_tool

    @ez_tool
    def check() -> None:
        end("said in a tool")

    asyncio.run(Pipeline([check]).run(ToolCall("check", {})))
"""


@pytest.mark.parametrize("before", ["", "import toolcrib.errors; "], ids=["late", "early"])
def test_what_ends_a_test_ends_it_inside_a_tool(before: str, tmp_path: Path) -> None:
    (tmp_path / "test_late.py").write_text(LATE)
    words = ["-q", "-p", "no:asyncio", "-p", "toolcrib_pytest", "--rootdir", "."]
    code = f"{before}import pytest; pytest.main({words})"

    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert "1 failed, 1 skipped" in done.stdout


def test_it_imports_nothing_of_the_package() -> None:
    code = "import sys, toolcrib_pytest; print(sorted(name for name in sys.modules if name.startswith('toolcrib')))"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "['toolcrib_pytest']\n"
