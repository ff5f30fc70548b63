"""What a thousand tools cost to define: time, Python memory, and the process's own."""

# ruff: noqa: PLC0415 -- a contender's process imports what that contender needs, and nothing of the others

from __future__ import annotations

import gc
import inspect
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from types import FunctionType
from typing import Any

from benchmarks._measure import Contender, Measure, Metric, Sample
from benchmarks._timing import MILLISECONDS
from benchmarks._tools import get_forecast

COUNT = 1_000
TRACED = (
    100  # tracemalloc makes everything some ten times slower, and what a tool keeps does not depend on their number
)
WARM_UP = 20


def _functions(start: int, count: int) -> list[Callable[..., Any]]:
    """Return functions that have their names, texts and annotations to themselves, as if each had been written."""
    made: list[Callable[..., Any]] = []
    for number in range(start, start + count):
        name, code = f"tool_{number}", get_forecast.__code__
        fn = FunctionType(code.replace(co_name=name), get_forecast.__globals__, name, get_forecast.__defaults__)
        fn.__annotations__ = dict(get_forecast.__annotations__)
        fn.__doc__ = f"Tool {number}: {inspect.getdoc(get_forecast)}"
        fn.__module__, fn.__qualname__ = get_forecast.__module__, name
        made.append(fn)
    return made


def _resident() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _defining(define: Callable[[Callable[..., Any]], Any]) -> Sample:
    """Return the sample of defining a thousand tools for time and resident memory, then some more for Python memory."""
    kept: list[Any] = [define(fn) for fn in _functions(0, WARM_UP)]

    def sample() -> dict[str, float]:
        functions, traced = _functions(10_000, COUNT), _functions(20_000, TRACED)
        gc.collect()
        resident, started = _resident(), perf_counter()
        kept.extend([define(fn) for fn in functions])
        elapsed = perf_counter() - started
        gc.collect()
        grown = _resident() - resident
        tracemalloc.start()
        kept.extend([define(fn) for fn in traced])
        gc.collect()
        allocated = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        return {"ms": elapsed * MILLISECONDS, "mib": allocated / 2**20 / TRACED * COUNT, "rss": max(grown, 0.0)}

    return sample


def bare_pydantic() -> Sample:
    from pydantic import create_model

    def define(fn: Callable[..., Any]) -> Any:
        parameters = inspect.signature(fn).parameters.values()
        fields = {p.name: (p.annotation, ... if p.default is p.empty else p.default) for p in parameters}
        model = create_model(fn.__name__, **fields)  # pyright: ignore[reportCallIssue, reportArgumentType] -- dynamic
        return model, model.model_json_schema()

    return _defining(define)


def toolcrib_lazy() -> Sample:
    from toolcrib.tools import tool

    return _defining(tool())


def toolcrib_built() -> Sample:
    from toolcrib.tools import tool

    def define(fn: Callable[..., Any]) -> Any:
        made = tool()(fn)
        return made, made.description, made.parameters, made.input_model

    return _defining(define)


def pygents() -> Sample:
    from pygents import tool

    return _defining(tool())


def pydantic_ai() -> Sample:
    from pydantic_ai import Tool

    return _defining(Tool)


def langchain() -> Sample:
    from langchain_core.tools import StructuredTool

    return _defining(lambda fn: StructuredTool.from_function(coroutine=fn))


MEASURE = Measure(
    name="definitions",
    title="1,000 tools of three parameters, each with a docstring",
    metrics=(
        Metric("ms", "time", "ms"),
        Metric("mib", "memory of Python objects (tracemalloc)", "MiB"),
        Metric("rss", "growth of the process", "MiB"),
    ),
    contenders=(
        Contender("pydantic create_model + schema", bare_pydantic),
        Contender("toolcrib, schemas not asked for", toolcrib_lazy),
        Contender("toolcrib, all schemas built", toolcrib_built),
        Contender("pygents tool (no schema)", pygents),
        Contender("pydantic-ai Tool", pydantic_ai),
        Contender("langchain-core StructuredTool", langchain),
    ),
    baseline="pydantic create_model + schema",
    fresh=True,
    notes=(
        "the process can grow by less than its objects take, where it had memory to spare.",
        "pygents has no schemas; langchain-core makes its JSON schema later, on each request.",
    ),
)
