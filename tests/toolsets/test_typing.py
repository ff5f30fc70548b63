"""What a type checker makes of declared toolsets and tools: right uses pass, a misspelt selector does not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

HEAD = """
from pydantic import BaseModel
from toolcrib.hooks import HookSet
from toolcrib.tools import ez_tool, tool, tool_input
from toolcrib.toolsets import Selector, Toolset, nested, off, use

@tool_input("web_search")
class WebSearch(BaseModel):
    query: str

@tool()
async def fetch(url: str, *, deep: bool = False) -> bytes:
    return b""

@ez_tool(timeout=5)
def add(a: int, b: int) -> int:
    return a + b

class DataTools(Toolset):
    fetch = use(fetch)

class AppTools(Toolset):
    web_search = use(WebSearch)
    add = off(add)
    data = nested(DataTools)
"""


def errors_of(tail: str, folder: Path) -> list[str]:
    """Return the rules that pyright finds broken in `tail`, written below `HEAD`."""
    module = folder / "declared.py"
    module.write_text(HEAD + tail, encoding="utf-8")
    (folder / "pyrightconfig.json").write_text('{"typeCheckingMode": "standard"}', encoding="utf-8")
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)["generalDiagnostics"]
    first = HEAD.count("\n")
    return [d["rule"] for d in found if d["severity"] == "error" and d["range"]["start"]["line"] >= first]


def test_right_uses_are_accepted_and_wrong_ones_named(tmp_path: Path) -> None:
    right = """
a: Selector[type[WebSearch]] = AppTools.web_search
b: str = AppTools.data.fetch.name
c: int = add(1, 2)
hooks = HookSet(AppTools)
async def main() -> bytes:
    return await fetch("u", deep=True)
"""
    wrong = """
AppTools.web_serch
AppTools.data.fetsh
add("1", 2)
fetch()
"""

    rules = errors_of(right + wrong, tmp_path)

    assert [rule for rule in rules if rule != "reportUnusedExpression"] == [
        "reportAttributeAccessIssue",
        "reportAttributeAccessIssue",
        "reportArgumentType",
        "reportCallIssue",
    ]
