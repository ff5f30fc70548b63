"""Import time: a fresh interpreter that imports one library, less one that imports nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks._measure import Contender, Measure, Metric, Sample, Target
from benchmarks._timing import MILLISECONDS, seconds

# Installed packages have their bytecode; a checkout gets it at the first start, unless the environment forbids it.
_ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


_TOOLS = """
from toolcrib import tool


@tool
async def add(a: int, b: int) -> int:
    \"\"\"Add two numbers.\"\"\"
    return a + b
"""
_FIRST_CALL = f"""{_TOOLS}
import asyncio
from toolcrib import Pipeline, ToolCall, Toolset

asyncio.run(Pipeline(Toolset([add])).run(ToolCall("add", {{"a": 1, "b": 2}})))
"""


def _start(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=_ENVIRONMENT)


def _importing(name: str, statement: str) -> Contender:
    def setup() -> Sample:
        tried = _start("-c", statement)
        if tried.returncode:
            raise ImportError(tried.stderr.strip().splitlines()[-1], name=statement.split()[1])

        def sample() -> dict[str, float]:
            bare, full = (
                min(seconds(lambda code=code: _start("-c", code), once=True) for _ in range(2))
                for code in ("pass", statement)
            )
            return {"ms": (full - bare) * MILLISECONDS}

        return sample

    return Contender(name, setup)


def _command(name: str, *arguments: str) -> Contender:
    def setup() -> Sample:
        tried = _start(*arguments)
        if tried.returncode:
            raise ImportError(tried.stderr.strip().splitlines()[-1])

        def sample() -> dict[str, float]:
            return {"ms": min(seconds(lambda: _start(*arguments), once=True) for _ in range(2)) * MILLISECONDS}

        return sample

    return Contender(name, setup)


def _listing() -> Contender:
    def setup() -> Sample:
        folder = tempfile.TemporaryDirectory()
        tools = Path(folder.name) / "tools.py"
        tools.write_text(_TOOLS, encoding="utf-8")
        take = _command("", "-m", "toolcrib", "list", str(tools)).setup()

        def sample() -> dict[str, float]:
            return take() if folder else {}  # which keeps the folder

        return sample

    return Contender("toolcrib list FILE", setup)


MEASURE = Measure(
    name="imports",
    title="import in a fresh interpreter, less an empty one",
    metrics=(Metric("ms", "import", "ms"),),
    contenders=(
        _importing("pydantic", "import pydantic"),
        _importing("asyncio, and pydantic in use", "import asyncio; from pydantic import BaseModel, TypeAdapter"),
        _importing("toolcrib", "import toolcrib"),
        _importing("toolcrib in use", "from toolcrib import Pipeline, Toolset, tool"),
        _importing("toolcrib, a first call", _FIRST_CALL),
        _importing("pygents", "import pygents"),
        _importing("pydantic-ai", "import pydantic_ai"),
    ),
    baseline="pydantic",
    targets=(
        Target("ms", "toolcrib", "pydantic", 1.5),
        Target("ms", "toolcrib in use", "asyncio, and pydantic in use", 1.5),
    ),
    notes=(
        "each figure is the faster of two starts less the faster of two empty ones.",
        "pydantic and toolcrib load most of themselves when it is first used: hence the rows in use.",
    ),
)

COMMANDS = Measure(
    name="commands",
    title="a command, as a whole process",
    metrics=(Metric("ms", "whole process", "ms"),),
    contenders=(
        _command("import pydantic", "-c", "import pydantic"),
        _command("toolcrib --version", "-m", "toolcrib", "--version"),
        _listing(),
    ),
    baseline="import pydantic",
    targets=(
        Target("ms", "toolcrib --version", "import pydantic", 1.2),
        Target("ms", "toolcrib list FILE", "import pydantic", 2.0),
    ),
    notes=("each figure is the faster of two starts, with the interpreter's own.",),
)
