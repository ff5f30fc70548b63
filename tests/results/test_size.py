"""A result of 100 MB: what it costs the model, and the memory of the process that keeps it."""

from __future__ import annotations

import asyncio
import multiprocessing
import resource
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import bpe_openai
import pytest

from toolcrib.calls import Completed, KeptResult, ToolCall
from toolcrib.pipeline import Pipeline, Run
from toolcrib.results import SqliteResultStore
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset

VALUES: dict[str, Callable[[], Any]] = {
    "text": lambda: "word " * 20_000_000,
    "rows": lambda: [{"text": "x" * 1_000}] * 100_000,
    "object": lambda: {"found": {"rows": ["x" * 1_000] * 100_000}, "total": 100_000},
}


def _tools(path: Path, value: Any = None) -> Pipeline:
    @ez_tool
    def find() -> Any:
        return value

    return Pipeline(Toolset([find], results=SqliteResultStore(path)))


def _kept(path: Path, kind: str) -> tuple[str, str, int]:
    """Return the handle of a result, what is shown of it, and how many bytes of memory keeping it took."""
    pipeline = _tools(path, VALUES[kind]())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    async def find() -> KeptResult | None:
        outcome = await pipeline.run(ToolCall("find", {}), Run(principal="ann"))
        return outcome.kept if isinstance(outcome, Completed) else None

    kept = asyncio.run(find())  # not the outcome itself: asyncio writes down the result of what it runs
    assert kept is not None
    assert kept.chars >= 100_000_000
    return kept.handle, kept.text, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024


def _read(path: Path, handle: str, offset: int) -> tuple[str, int]:
    """Return a page of it, and how many bytes of memory reading it took."""
    pipeline = _tools(path)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    call = ToolCall("read_result", {"handle": handle, "offset": offset, "limit": 1})
    outcome = asyncio.run(pipeline.run(call, Run(principal="ann")))
    return outcome.text(), (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024


@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted otherwise elsewhere")
@pytest.mark.parametrize(
    ("kind", "offset", "page"),
    [
        ("text", 99_999_999, "[characters 99999999:100000000 of 100000000]\n "),
        ("rows", 99_999, f'[rows 99999:100000 of 100000; no more]\n{{"text": "{"x" * 1_000}"}}'),
        ("object", 30_000_000, "[characters 30000000:30000001 of "),
    ],
)
def test_a_hundred_megabytes_are_kept_in_little_memory(tmp_path: Path, kind: str, offset: int, page: str) -> None:
    path = tmp_path / "results.db"

    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as other:
        handle, shown, to_keep = other.submit(_kept, path, kind).result()
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as restarted:
        found, to_read = restarted.submit(_read, path, handle, offset).result()

    assert len(bpe_openai.get_encoding("o200k_base").encode(shown)) <= 300
    assert found.startswith(page)
    assert to_keep < 60_000_000
    assert to_read < 30_000_000
