"""Results that are too long: what a model is shown of them, and what it never is."""

from __future__ import annotations

import json
import logging
import random
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import bpe_openai
import pandas as pd
import pytest
from pydantic import SecretStr

from toolcrib.approvals import approve_all
from toolcrib.calls import (
    MODEL,
    Complete,
    Completed,
    Media,
    Outcome,
    ResultReader,
    ToolCall,
    outcome_from_dict,
    render,
)
from toolcrib.code import Toolkit
from toolcrib.database import MemoryTables
from toolcrib.hooks import HookSet
from toolcrib.pipeline import Pipeline, Run, is_call
from toolcrib.results import MemoryResultStore, ResultStore
from toolcrib.tools import Tool, ez_tool
from toolcrib.toolsets import ToolAvailability, Toolset

MOST_TOKENS = 300


def tool_of(value: Any, **options: Any) -> Tool[..., Any]:
    """Return a tool with this result."""

    @ez_tool(**options)
    def find() -> Any:
        return value

    return find


def kept_in(outcome: Outcome) -> str:
    """Return the handle of a result that was kept."""
    assert isinstance(outcome, Completed)
    assert outcome.kept is not None
    return outcome.kept.handle


async def call(tools: Toolset, name: str = "find", run: Run | None = None, **arguments: Any) -> Outcome:
    return await Pipeline(tools).run(ToolCall(name, arguments), run)


def tokens(text: str) -> int:
    return len(bpe_openai.get_encoding("o200k_base").encode(text))


def odd(chance: random.Random, count: int) -> str:
    """Return so many letters that are rare."""
    return "".join(chr(chance.randrange(0x100, 0x2FFFF)) for _ in range(count))


def hostile_texts() -> Mapping[str, Any]:
    chance = random.Random(1)
    return {
        "text": "word " * 20_000,
        "base64": "".join(chance.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", k=60_000)),
        "digits": "".join(chance.choices("0123456789", k=60_000)),
        "any letters": odd(chance, 30_000),
        "faces": "".join(chr(chance.randrange(0x1F300, 0x1FAFF)) for _ in range(30_000)),
        "halves": "\ud83d" * 60_000,
        "rows": [{"id": number, "price": chance.random(), "name": f"n{number}"} for number in range(2_000)],
        "odd columns": [{odd(chance, 50): number for number in range(50)}] * 1_000,
        "columns": [{"".join(chance.choices("AbCdEfGhXz0123456789_", k=30)): 1 for _ in range(50)}] * 1_000,
        "odd members": {odd(chance, 50): "x" * 2_000 for _ in range(50)},
    }


@pytest.mark.parametrize("title", hostile_texts())
async def test_a_long_result_takes_few_tokens(title: str) -> None:
    tools = Toolset([tool_of(hostile_texts()[title])], results=MemoryResultStore())

    outcome = await call(tools)

    kept_in(outcome)
    shown = render(outcome).text.encode("utf-8", "replace").decode()
    assert tokens(shown) <= MOST_TOKENS, shown


def test_the_tool_that_reads_takes_few_tokens() -> None:
    tools = Toolset([tool_of(1)], results=MemoryResultStore())

    definition = tools.definitions(format="openai", available=ToolAvailability.only("read_result"))

    assert tokens(json.dumps(definition)) <= 200


async def test_a_model_is_shown_what_it_is_and_how_to_read_it() -> None:
    tools = Toolset([tool_of([{"id": n, "name": f"n{n}"} for n in range(5_000)])], results=MemoryResultStore())

    outcome = await call(tools)

    shown = render(outcome, structured=True)
    assert shown.text.startswith("[Too long to show: list of 5,000 rows, 152,780 characters.")
    assert f'read_result(handle="{kept_in(outcome)}")' in shown.text
    assert '\n[{"id": 0, "name": "n0"}' in shown.text
    assert shown.text.endswith('{"id": 4999, "name": "n4999"}]')
    assert shown.value == shown.text


async def test_a_page_says_where_the_next_one_begins() -> None:
    tools = Toolset([tool_of(list(range(50_000)))], results=MemoryResultStore())
    handle = kept_in(await call(tools))

    pages = [
        (await call(tools, "read_result", handle=handle, **query)).text()
        for query in ({"limit": 2}, {"offset": 49_999}, {"search": "49998"}, {"path": "$[7]"})
    ]

    assert pages == [
        "[rows 0:2 of 50000; next: offset=2]\n0\n1",
        "[rows 49999:50000 of 50000; no more]\n49999",
        "[rows 0:1; no more]\n49998",
        "[characters 0:1 of 1]\n7",
    ]


async def test_what_is_read_is_never_kept_again() -> None:
    store = MemoryResultStore(max_result_chars=500)
    inner = Toolset([tool_of(["x" * 5_000] * 100)], results=store)
    tools = Toolset([inner.prefixed("our_")], results=MemoryResultStore(max_result_chars=100))
    handle = kept_in(await call(tools, "our_find"))

    outcome = await call(tools, "our_read_result", handle=handle)

    assert isinstance(outcome, Completed)
    assert outcome.kept is None
    assert "cut, read it by its path" in outcome.text()
    assert len(outcome.text()) < 700


@pytest.mark.parametrize(
    ("value", "query"),
    [
        ("x" * 50_000, {}),
        ("x" * 50_000, {"search": "12345"}),
        (list(range(50_000)), {}),
        (list(range(50_000)), {"search": "12345"}),
        ({"a": list(range(20_000))}, {"path": "a"}),
        ({"a": {"b": "x" * 20_000}}, {"path": "$.a.b"}),
    ],
    ids=["text", "places", "rows", "rows with", "path", "value"],
)
async def test_any_number_may_be_asked_for(value: Any, query: dict[str, str]) -> None:
    tools = Toolset([tool_of(value)], results=MemoryResultStore())
    handle = kept_in(await call(tools))

    past = await call(tools, "read_result", handle=handle, offset=10**30, **query)
    less = await call(tools, "read_result", handle=handle, limit=-5, **query)
    all_of_it = await call(tools, "read_result", handle=handle, limit=10**30, **query)

    assert "is past the end: " in past.text()
    assert "`offset` and `limit` are at least 0" in less.text()
    assert isinstance(all_of_it, Completed)
    assert len(all_of_it.text()) < 25_000


async def test_a_model_may_try_more_often_than_with_other_tools() -> None:
    tools, run = Toolset([tool_of(list(range(50_000)))], results=MemoryResultStore()), Run()
    handle = kept_in(await call(tools, run=run))

    for _ in range(10):
        await call(tools, "read_result", run, handle=handle, path="$[*].nope")
    outcome = await call(tools, "read_result", run, handle=handle, limit=1)

    assert isinstance(outcome, Completed)


# --- what is kept


async def test_a_short_result_is_not_kept() -> None:
    tools = Toolset([tool_of("x" * 100, max_result_chars=100)], results=MemoryResultStore())

    outcome = await call(tools)

    assert isinstance(outcome, Completed)
    assert (outcome.kept, outcome.text()) == (None, "x" * 100)


async def test_without_a_store_it_is_cut() -> None:
    outcome = await call(Toolset([tool_of("x" * 101, max_result_chars=100)]))

    assert isinstance(outcome, Completed)
    assert (outcome.kept, "characters cut" in outcome.text()) == (None, True)


async def test_a_store_without_a_limit_keeps_what_tools_limit() -> None:
    store = MemoryResultStore(max_result_chars=None)

    long = await call(Toolset([tool_of("x" * 100_000)], results=store))
    limited = await call(Toolset([tool_of("x" * 100_000, max_result_chars=10)], results=store))

    assert long.text() == "x" * 100_000
    assert "res_" in limited.text()


async def test_what_is_kept_is_what_post_hooks_left() -> None:
    def without_pin(ctx: Any, result: Any, metadata: Any) -> Any:
        return [{**row, "pin": "****"} for row in result]

    tools = Toolset(
        [tool_of([{"id": n, "pin": "hunter2", "key": SecretStr("hunter3")} for n in range(5_000)])],
        post_hooks={"find": without_pin},
        results=MemoryResultStore(),
    )
    outcome = await call(tools)

    found = await call(tools, "read_result", handle=kept_in(outcome), limit=5_000)

    assert "****" in found.text()
    assert "hunter" not in outcome.text() + found.text()


async def test_the_result_of_a_hook_is_kept() -> None:
    hooks = HookSet()

    @hooks.on("find")
    async def answer(about: Any, given: Any) -> Complete:
        return Complete("x" * 50_000)

    outcome = await call(Toolset([tool_of(1)], hooks=hooks, results=MemoryResultStore()))

    assert kept_in(outcome) in outcome.text()


async def test_all_values_of_a_stream_are_kept() -> None:
    @ez_tool
    async def find() -> AsyncIterator[str]:
        for _ in range(100):
            yield "x" * 1_000

    tools = Toolset([find], results=MemoryResultStore())
    outcome = await call(tools)

    page = await call(tools, "read_result", handle=kept_in(outcome), offset=99)

    assert page.text() == f'[rows 99:100 of 100; no more]\n"{"x" * 1_000}"'


async def test_an_error_is_cut() -> None:
    @ez_tool
    def find() -> None:
        raise ValueError("x" * 50_000)

    outcome = await call(Toolset([find], results=MemoryResultStore()))

    assert "characters cut" in outcome.text()


async def test_an_image_is_shown_beside_a_long_text() -> None:
    image = Media("image/png", b"png", name="chart.png")
    tools = Toolset([tool_of([image, "x" * 50_000])], results=MemoryResultStore())

    outcome = await call(tools)
    page = await call(tools, "read_result", handle=kept_in(outcome), limit=3)

    shown = render(outcome)
    assert page.text() == "[characters 0:3 of 50000; next: offset=3]\nxxx"
    assert shown.parts[1:] == (image,)
    assert kept_in(outcome) in str(shown.parts[0])
    assert "chart.png" in shown.text


async def test_a_call_that_is_finished_again_has_the_same_handle() -> None:
    pipeline, run = Pipeline(Toolset([tool_of("x" * 50_000)], results=MemoryResultStore())), Run()
    admitted = await pipeline.admit(ToolCall("find", {}, "call_1"), run)
    assert is_call(admitted)
    executed = await pipeline.execute(admitted)
    assert is_call(executed)
    state = json.loads(json.dumps(executed.to_dict()))

    first = await pipeline.finish(executed)
    again = await pipeline.run(state, Run())

    assert kept_in(first) == kept_in(again)


async def test_an_outcome_keeps_its_handle_as_json() -> None:
    outcome = await call(Toolset([tool_of("x" * 50_000)], results=MemoryResultStore()))

    again = outcome_from_dict(json.loads(json.dumps(outcome.to_dict())))

    assert again == outcome
    assert again.text() == outcome.text()


@pytest.mark.parametrize("view", [Toolset.prefixed, None], ids=["prefixed", "as it is"])
async def test_a_result_is_read_by_the_name_that_the_tool_has(view: Callable[..., Toolset] | None) -> None:
    tools = Toolset([tool_of("x" * 50_000)], results=MemoryResultStore())
    prefix = "" if view is None else "our_"
    shown = tools if view is None else view(tools, prefix)

    outcome = await call(shown, f"{prefix}find")

    assert f' {prefix}read_result(handle="' in outcome.text()


async def test_toolsets_with_one_store_have_one_tool_that_reads() -> None:
    store = MemoryResultStore()
    inner = [Toolset([ez_tool(name=name)(lambda: "x" * 50_000)], results=store) for name in ("a", "b")]

    tools = Toolset([*inner, tool_of("x" * 50_000)], results=store)

    assert tools.names() == ["a", "read_result", "b", "find"]
    for name in ("a", "b", "find"):
        kept_in(await call(tools, name))


@pytest.mark.parametrize(
    "change",
    [
        lambda tools: (tools.subset(["find"]), Run()),
        lambda tools: (tools, Run(available=frozenset({"find"}))),
        lambda tools: (tools.hiding(["read_result"]), Run()),
    ],
    ids=["left out", "not available", "hidden"],
)
async def test_a_result_that_cannot_be_read_is_cut(change: Callable[[Toolset], tuple[Toolset, Run]]) -> None:
    tools, run = change(Toolset([tool_of("x" * 50_000)], results=MemoryResultStore()))

    outcome = await call(tools, run=run)

    assert "characters cut" in outcome.text()


async def test_what_the_store_has_no_room_for_is_cut(caplog: pytest.LogCaptureFixture) -> None:
    tools = Toolset([tool_of("x" * 50_000)], results=MemoryResultStore(max_principal_bytes=40_000))

    outcome = await call(tools)

    assert "characters cut" in outcome.text()
    assert "too long for the result store" in caplog.text


async def test_a_store_that_is_broken_loses_no_result(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(MemoryTables):
        def transaction(self, *, write: bool) -> Any:
            raise OSError("the disk is full")

    outcome = await call(Toolset([tool_of("x" * 50_000)], results=ResultStore(Broken())))

    assert "characters cut" in outcome.text()
    assert "the disk is full" in caplog.text
    assert [record.levelno for record in caplog.records if record.name == "toolcrib.results"] == [logging.ERROR]


async def test_reading_is_recorded_and_limited_as_any_call() -> None:
    asked: list[str] = []
    tools = Toolset([tool_of("x" * 50_000)], results=MemoryResultStore()).with_approval(names=["read_result"])

    async def approver(request: Any) -> Any:
        asked.append(request.tool)
        return await approve_all(request)

    run = Run(approver=approver)
    handle = kept_in(await call(tools, run=run))
    await call(tools, "read_result", run, handle=handle)

    assert asked == ["read_result"]


# --- programs

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox needs Linux")


@pytest.mark.processes
@on_linux
async def test_a_program_is_given_the_value_by_its_handle() -> None:
    value = {"rows": [{"id": n, "name": f"n{n}"} for n in range(5_000)], "total": 5_000}
    tools, run = Toolset([tool_of(value)], results=MemoryResultStore()), Run(principal="ann")
    handle = kept_in(await call(tools, run=run))
    code = f"""
whole = read_result({handle!r})
rows = read_result({handle!r}, path="$.rows[-2:].name")
[whole["total"], len(whole["rows"]), rows, read_result({handle!r}, path="$.rows[3]"), read_result({handle!r}, limit=9)]
"""

    result = await Toolkit(tools).execute_async(code, run)

    names = ["n4998", "n4999"]
    assert result.return_value == [5_000, 5_000, names, {"id": 3, "name": "n3"}, '{"rows": ']


@pytest.mark.processes
@on_linux
async def test_a_result_that_is_too_long_for_a_program_is_read_in_parts() -> None:
    tools = Toolset([tool_of([f"{n}" * 1_000 for n in range(10_000)])], results=MemoryResultStore())
    code = """
try:
    find()
except ValueError as error:
    said = str(error)
handle = said.partition('handle="')[2].partition('"')[0]
try:
    read_result(handle)
except RuntimeError as error:
    refused = str(error)
[said, refused, len(read_result(handle, offset=9_990)), len(read_result(handle, path="$[5]"))]
"""

    result = await Toolkit(tools).execute_async(code)

    said, refused, rows, row = result.return_value
    assert "too long for a program: list of 10,000 rows" in said
    assert "offset and limit" in refused
    assert (rows, row) == (10, 1_000)


@pytest.mark.processes
@on_linux
async def test_what_a_program_prints_is_kept_whole() -> None:
    toolkit = Toolkit([tool_of("x" * 90)])
    tools = Toolset([toolkit.as_tool(max_result_chars=1_000)], results=MemoryResultStore())

    outcome = await call(tools, "run_python", code="for n in range(1_000): print(n, find())")
    page = await call(tools, "read_result", handle=kept_in(outcome), search="500 xxx", limit=1)

    assert "text of 1,000 lines" in outcome.text()
    assert "500 xxx" in page.text()


LONG: Mapping[str, Any] = {
    "text": "x" * 50_000,
    "rows": [{"a": "x"}] * 20_000,
    "members": {"a": "x" * 50_000},
    "table": pd.DataFrame({"a": ["x"] * 20_000}),
}


class Removing(MemoryResultStore):
    """A store that has no more room for a result while it is read."""

    def pieces(self, handle: str, first: int = 0) -> Any:
        self._remove(handle)
        return super().pieces(handle, first)


@pytest.mark.parametrize(
    "query", [{}, {"offset": 3}, {"search": "x"}, {"path": "$[3]"}, {"path": "$[3:].a"}, {"path": "$.a"}], ids=str
)
@pytest.mark.parametrize("form", LONG)
@pytest.mark.parametrize("reader", [MODEL, ResultReader(value_chars=10_000_000)], ids=["model", "program"])
async def test_a_result_that_is_removed_while_it_is_read_is_said_to_be(
    form: str, query: dict[str, Any], reader: ResultReader
) -> None:
    store, run = Removing(), Run()
    tools = Toolset([tool_of(LONG[form])], results=store)
    handle = kept_in(await call(tools, run=run))

    outcome = await call(tools, "read_result", run.view(reader=reader), handle=handle, **query)

    assert "it has expired or was removed" in outcome.text() or store.find(handle, None) is not None
