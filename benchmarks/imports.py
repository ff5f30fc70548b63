"""Import time: a fresh interpreter that imports one library, less one that imports nothing."""

from __future__ import annotations

import os
import subprocess
import sys

from benchmarks._measure import Contender, Measure, Metric, Sample, Target
from benchmarks._timing import MILLISECONDS, seconds

# Installed packages have their bytecode; a checkout gets it at the first start, unless the environment forbids it.
_ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _start(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=_ENVIRONMENT)


def _importing(name: str, statement: str) -> Contender:
    def setup() -> Sample:
        tried = _start(statement)
        if tried.returncode:
            raise ImportError(tried.stderr.strip().splitlines()[-1], name=statement.split()[1])

        def sample() -> dict[str, float]:
            bare, full = (
                min(seconds(lambda code=code: _start(code), once=True) for _ in range(2))
                for code in ("pass", statement)
            )
            return {"ms": (full - bare) * MILLISECONDS}

        return sample

    return Contender(name, setup)


MEASURE = Measure(
    name="imports",
    title="import in a fresh interpreter, less an empty one",
    metrics=(Metric("ms", "import", "ms"),),
    contenders=(
        _importing("pydantic", "import pydantic"),
        _importing("asyncio, and pydantic in use", "import asyncio; from pydantic import BaseModel, TypeAdapter"),
        _importing("toolcrib", "import toolcrib"),
        _importing("toolcrib in use", "from toolcrib import Pipeline, Toolset, tool"),
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
