"""How many questions a principal may leave for people, and calls that are alike and ask at the same moment."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.mcp_server.clients import (
    APPROVE,
    IN_MEMORY,
    Way,
    booking,
    every_generation,
    every_way,
    request_of,
    text_of,
)
from toolcrib.adapters.mcp_server import ServerOptions, acting_as, build_server
from toolcrib.approvals import MemoryApprovalStore, SqliteApprovalStore
from toolcrib.tools import ez_tool

_OLD, _NEW = IN_MEMORY


@every_way
async def test_a_principal_leaves_so_many_questions_and_an_answer_makes_room(way: Way) -> None:
    store = MemoryApprovalStore()
    server = build_server([booking([])], ServerOptions(approvals=store, max_pending=2, principal="ann"))

    async with way(server) as client:
        first = request_of(await client.call_tool("book", {"place": "Oslo"}))
        await client.call_tool("book", {"place": "Rome"})
        refused = await client.call_tool("book", {"place": "Bonn"})
        same = await client.call_tool("book", {"place": "Oslo"})
        await store.answer((await store.show(first)).request.deny())
        asked = await client.call_tool("book", {"place": "Bonn"})

    assert "`book` needs approval and was not run, and no approver is asked: ann has 2 requests without an" in text_of(
        refused
    )
    assert "(max_pending). Have some answered" in text_of(refused)
    assert (request_of(same), len(await store.list())) == (first, 3)
    assert request_of(asked) not in (first, request_of(same))


@every_generation
async def test_what_one_principal_leaves_takes_no_room_of_another(way: Way) -> None:
    server = build_server([booking([])], ServerOptions(approvals=MemoryApprovalStore(), max_pending=1))
    for name in ("ann", "eve"):
        with acting_as(name):
            async with way(server) as client:
                waiting = await client.call_tool("book", {"place": "Oslo"})

        assert request_of(waiting)


async def test_a_question_that_nobody_can_take_up_any_more_takes_no_room() -> None:
    store = MemoryApprovalStore()
    options = ServerOptions(approvals=store, max_pending=1, kept_for=timedelta(microseconds=1))

    async with _NEW(build_server([booking([])], options)) as client:
        waiting = [await client.call_tool("book", {"place": place}) for place in ("Oslo", "Rome")]

    assert len({request_of(result) for result in waiting}) == 2


async def test_a_form_that_is_open_takes_room_as_well() -> None:
    booked, shown, filled = list[str](), asyncio.Event(), asyncio.Event()

    async def slowly(context: Any, params: Any) -> Any:
        shown.set()
        await filled.wait()
        return APPROVE

    server = build_server([booking(booked)], ServerOptions(approve_by="elicit", max_pending=1))
    async with _OLD(server, elicitation_callback=slowly) as client:
        first = asyncio.create_task(client.call_tool("book", {"place": "Oslo"}))
        await shown.wait()
        refused = await client.call_tool("book", {"place": "Rome"})
        filled.set()
        await first
        later = await client.call_tool("book", {"place": "Bonn"})

    assert "has 1 request without an answer" in text_of(refused)
    assert (text_of(later), booked) == ("booked Bonn", ["Oslo", "Bonn"])


def test_a_store_whose_requests_cannot_be_counted_is_refused() -> None:
    class Deep:
        put = answer = take = use = MemoryApprovalStore().put

    with pytest.raises(ValueError, match="Deep cannot list its requests"):
        build_server([booking([])], ServerOptions(approvals=Deep()))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="max_pending must be at least 1, and is 0"):
        ServerOptions(max_pending=0)

    assert build_server([booking([])], ServerOptions(approvals=Deep(), max_pending=None))  # type: ignore[arg-type]


# --- calls that are alike ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [lambda path: MemoryApprovalStore(), lambda path: SqliteApprovalStore(path / "a.db")])
@every_way
async def test_calls_that_are_alike_share_one_question(way: Way, kind: Callable[[Path], Any], tmp_path: Path) -> None:
    booked, store = list[str](), kind(tmp_path)

    async with way(build_server([booking(booked)], ServerOptions(approvals=store))) as client:
        waiting = await asyncio.gather(*(client.call_tool("book", {"place": "Oslo"}) for _ in range(5)))
        await store.answer((await store.list())[0].request.grant())
        done = await client.call_tool("book", {"place": "Oslo"})

    [entry] = await store.list()
    assert {request_of(result) for result in waiting} == {entry.request.id}
    assert (text_of(done), booked) == ("booked Oslo", ["Oslo"])


async def test_calls_that_are_alike_and_need_no_answer_run_side_by_side() -> None:
    together = asyncio.Barrier(2)

    @ez_tool(requires_approval=lambda arguments, ctx: False)
    async def meet(place: str) -> str:
        await together.wait()
        return place

    async with _NEW(build_server([meet], ServerOptions())) as client:
        met = await asyncio.gather(*(client.call_tool("meet", {"place": "Oslo"}) for _ in range(2)))

    assert [text_of(result) for result in met] == ["Oslo", "Oslo"]
