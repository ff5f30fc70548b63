"""Import time: a fresh interpreter that imports one library, less one that imports nothing."""

from __future__ import annotations

import subprocess
import sys

from benchmarks._measure import Contender, Measure, Metric, Sample, Target
from benchmarks._timing import MILLISECONDS, seconds


def _importing(statement: str, name: str) -> Contender:
    def run(code: str) -> None:
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)

    def setup() -> Sample:
        tried = subprocess.run([sys.executable, "-c", statement], capture_output=True, text=True, check=False)
        if tried.returncode:
            module = statement.split()[1]
            last = tried.stderr.strip().splitlines()[-1]
            raise ImportError(last, name=module)

        def sample() -> dict[str, float]:
            bare, full = (
                min(seconds(lambda code=code: run(code), once=True) for _ in range(2)) for code in ("pass", statement)
            )
            return {"ms": (full - bare) * MILLISECONDS}

        return sample

    return Contender(name, setup)


MEASURE = Measure(
    name="imports",
    title="import in a fresh interpreter, less an empty one",
    metrics=(Metric("ms", "import", "ms"),),
    contenders=(
        _importing("import pydantic", "pydantic"),
        _importing("from pydantic import BaseModel, TypeAdapter", "pydantic, BaseModel and TypeAdapter"),
        _importing("import toolcrib", "toolcrib"),
        _importing("from toolcrib import Pipeline, Toolset, tool", "toolcrib, Pipeline, Toolset and tool"),
        _importing("import pygents", "pygents"),
        _importing("import pydantic_ai", "pydantic-ai"),
    ),
    baseline="pydantic",
    targets=(
        Target("ms", "toolcrib", "pydantic", 1.5),
        Target("ms", "toolcrib, Pipeline, Toolset and tool", "pydantic, BaseModel and TypeAdapter", 1.5),
    ),
    notes=("each figure is the faster of two starts less the faster of two empty ones.",),
)
