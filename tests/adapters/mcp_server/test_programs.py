"""Code mode: programs over MCP, and what becomes of them when a call has to wait."""

import asyncio
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.mcp_server.clients import (
    ALLOW,
    ANY_PLACE,
    APPROVE,
    DENY,
    Way,
    answering,
    booking,
    every_generation,
    request_of,
    text_of,
)
from toolcrib.adapters.mcp_server import ServerOptions, acting_as, build_server
from toolcrib.approvals import MemoryApprovalStore, SqliteApprovalStore
from toolcrib.pipeline import Run
from toolcrib.provenance import Provenance
from toolcrib.tools import ez_tool

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="programs are taken up by the sandbox of Linux")

_TWO = "a = add(1, 2)\nprint(book('Oslo'), a)"


@ez_tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def coding(booked: list[str], **options: Any) -> Any:
    return build_server([add, booking(booked)], ServerOptions(code_mode=True, **options))


@every_generation
async def test_two_tools_are_served(way: Way) -> None:
    async with way(coding([])) as client:
        run, search = (await client.list_tools()).tools

    assert (run.name, search.name) == ("run_python", "search_tools")
    assert "def add(a: int, b: int)" in (run.description or "")


@every_generation
async def test_a_program_runs_with_the_tools_as_functions(way: Way) -> None:
    async with way(coding([])) as client:
        said = await client.call_tool("run_python", {"code": "print(add(1, 2) * 2)"})
        failed = await client.call_tool("run_python", {"code": "add(1, 'two')"})
        missing = await client.call_tool("run_python", {})

    assert (text_of(said), said.is_error) == ("6", False)
    assert failed.is_error
    assert "it is required" in text_of(missing)


@every_generation
async def test_functions_are_found_by_what_they_do(way: Way) -> None:
    async with way(coding([])) as client:
        found = await client.call_tool("search_tools", {"query": "add numbers"})
        refused = await client.call_tool("search_tools", {"query": "add", "limit": 0})

    assert found.structured_content["found"][0]["name"] == "add"
    assert "limit" in text_of(refused)


@every_generation
@pytest.mark.parametrize("by", ["program", "request"])
async def test_a_paused_program_goes_on_when_it_is_granted(way: Way, by: str, tmp_path: Path) -> None:
    booked, path = list[str](), tmp_path / "crib.db"
    async with way(coding(booked, approvals=SqliteApprovalStore(path))) as client:
        waiting = await client.call_tool("run_python", {"code": _TWO})
    store = SqliteApprovalStore(path)
    request = request_of(waiting)
    await store.answer((await store.show(request)).request.grant("bob"))

    async with way(coding(booked, approvals=SqliteApprovalStore(path))) as client:  # after a restart
        given = {"code": _TWO} if by == "program" else {"request": request}
        done = await client.call_tool("run_python", given)

    assert (text_of(done), booked) == ("booked Oslo 3", ["Oslo"])


@every_generation
async def test_a_denial_is_an_error_in_the_program(way: Way) -> None:
    booked, store = list[str](), MemoryApprovalStore()
    async with way(coding(booked, approvals=store)) as client:
        request = (await store.show(request_of(await client.call_tool("run_python", {"code": _TWO})))).request
        await store.answer(request.deny(message="too far"))
        refused = await client.call_tool("run_python", {"code": _TWO})

    assert refused.is_error
    assert "PermissionError: too far" in text_of(refused)
    assert booked == []


@every_generation
@pytest.mark.parametrize(("answer", "said"), [(APPROVE, "booked Oslo 3"), (DENY, "PermissionError: not this week")])
async def test_the_client_may_be_asked_while_a_program_runs(way: Way, answer: Any, said: str) -> None:
    booked: list[str] = []
    async with way(coding(booked, approve_by="elicit"), elicitation_callback=answering(answer)) as client:
        done = await client.call_tool("run_python", {"code": _TWO})

    assert said in text_of(done)
    assert booked == (["Oslo"] if answer is APPROVE else [])


@every_generation
async def test_a_yes_for_further_calls_lets_a_program_go_on_without_a_further_question(way: Way) -> None:
    booked, shown = list[str](), list[str]()
    server = coding(booked, approve_by="elicit", elicit_always=timedelta(hours=1))
    callback = answering(ANY_PLACE, ALLOW, asked=shown)
    async with way(server, elicitation_callback=callback) as client:
        await client.call_tool("run_python", {"code": "print(book('Oslo'), book('Rome'))"})

    assert booked == ["Oslo", "Rome"]
    assert [text.partition(";")[0] for text in shown] == ['book needs approval\n  place = "Oslo"', "book: place any"]


@every_generation
async def test_nobody_takes_up_the_program_of_somebody_else(way: Way) -> None:
    booked, store = list[str](), MemoryApprovalStore()
    server = coding(booked, approvals=store)
    with acting_as("ann"):
        async with way(server) as client:
            hers = request_of(await client.call_tool("run_python", {"code": _TWO}))
    await store.answer((await store.show(hers)).request.grant())

    with acting_as("eve"):
        async with way(server) as client:
            waiting = await client.call_tool("run_python", {"code": _TWO})

    assert request_of(waiting) != hers
    assert booked == []


@every_generation
async def test_programs_that_are_alike_share_one_question(way: Way) -> None:
    store = MemoryApprovalStore()

    async with way(coding([], approvals=store)) as client:
        waiting = await asyncio.gather(*(client.call_tool("run_python", {"code": _TWO}) for _ in range(3)))

    [entry] = await store.list()
    assert {request_of(result) for result in waiting} == {entry.request.id}


@every_generation
async def test_a_program_that_was_written_late_waits_and_goes_on_when_it_is_granted(way: Way) -> None:
    saved, store, run = list[str](), MemoryApprovalStore(), Run(features=[Provenance(frozen=True)])

    @ez_tool(effect="none")
    async def read_file(path: str) -> str:
        """Read a file."""
        return "save x"

    @ez_tool(effect="none", source="trusted")
    async def save(text: str) -> str:
        """Save."""
        saved.append(text)
        return "saved"

    options = ServerOptions(code_mode=True, approvals=store, run=lambda name: run)
    async with way(build_server([read_file, save], options)) as client:
        await client.call_tool("run_python", {"code": "print(read_file('a.txt'))"})
        found = await client.call_tool("search_tools", {"query": "save"})
        waiting = await client.call_tool("run_python", {"code": "print(save('x'))"})
        before = list(saved)
        await store.answer((await store.show(request_of(waiting))).request.grant("bob"))
        done = await client.call_tool("run_python", {"code": "print(save('x'))"})

    assert found.structured_content["found"][0]["name"] == "save"
    assert before == []
    assert (text_of(done), saved) == ("saved", ["x"])
