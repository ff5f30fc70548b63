"""A call that waits for an answer in the approval store, and goes on when it is made again."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult

from tests.adapters.mcp_server.clients import IN_MEMORY, Way, booking, every_generation, every_way, request_of, text_of
from tests.approvals.expired import has_expired
from tests.postgres import Postgres
from toolcrib.adapters.mcp_server import ServerOptions, acting_as, build_server
from toolcrib.approvals import (
    MemoryApprovalStore,
    MemorySuspendedCalls,
    PostgresApprovalStore,
    SqliteApprovalStore,
    SuspendedCall,
    SuspendedCallStore,
)
from toolcrib.calls import ApprovalRequest, RunNormally
from toolcrib.errors import ApprovalRequired
from toolcrib.hooks import HookSet
from toolcrib.schema import RunContext
from toolcrib.testing import RecordingSink
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset


class TellingStore(MemoryApprovalStore):
    """A store that tells of each request."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: asyncio.Queue[ApprovalRequest] = asyncio.Queue()

    async def put(self, request: ApprovalRequest) -> None:
        await super().put(request)
        self.asked.put_nowait(request)


@every_way
async def test_the_same_call_goes_on_once_it_is_granted(way: Way) -> None:
    booked: list[str] = []
    store, watch = MemoryApprovalStore(), RecordingSink()
    server = build_server([booking(booked)], ServerOptions(approvals=store, sinks=(watch,), principal="ann"))

    async with way(server) as client:
        waiting = await client.call_tool("book", {"place": "Oslo"})
        request = (await store.show(request_of(waiting))).request
        await store.answer(request.grant("bob"))
        done = await client.call_tool("book", {"place": "Oslo"})

    assert "A person answers it in the approvals of this server" in text_of(waiting)
    assert (text_of(done), done.is_error, booked) == ("booked Oslo", False, ["Oslo"])
    approval = watch.records[-1].approval
    assert approval is not None
    assert (approval["approver"], request.principal) == ("bob", "ann")


@every_generation
async def test_it_runs_once_and_is_asked_anew_after_that(way: Way) -> None:
    booked: list[str] = []
    store = MemoryApprovalStore()
    async with way(build_server([booking(booked)], ServerOptions(approvals=store))) as client:
        first = request_of(await client.call_tool("book", {"place": "Oslo"}))
        await store.answer((await store.show(first)).request.grant())
        await client.call_tool("book", {"place": "Oslo"})

        again = await client.call_tool("book", {"place": "Oslo"})

    assert request_of(again) != first
    assert booked == ["Oslo"]


@every_generation
async def test_until_it_is_answered_the_same_call_waits_for_the_same_request(way: Way) -> None:
    booked: list[str] = []
    store = MemoryApprovalStore()
    async with way(build_server([booking(booked)], ServerOptions(approvals=store))) as client:
        first = await client.call_tool("book", {"place": "Oslo"})
        again = await client.call_tool("book", {"place": "Oslo"})
        other = await client.call_tool("book", {"place": "Rome"})

    assert request_of(again) == request_of(first) != request_of(other)
    assert len(await store.list(pending=True)) == 2
    assert booked == []


@every_generation
async def test_a_denial_is_told_with_the_approvers_words(way: Way) -> None:
    booked: list[str] = []
    store = MemoryApprovalStore()
    async with way(build_server([booking(booked)], ServerOptions(approvals=store))) as client:
        waiting = await client.call_tool("book", {"place": "Oslo"})
        request = (await store.show(request_of(waiting))).request
        await store.answer(request.deny(message="too far", by="bob"))

        refused = await client.call_tool("book", {"place": "Oslo"})

    assert (text_of(refused), refused.is_error, booked) == ("Rejected: too far", True, [])


async def test_after_a_restart_the_call_goes_on_without_its_hooks(tmp_path: Path) -> None:
    booked, hooked, path = list[str](), list[str](), tmp_path / "crib.db"
    hooks = HookSet()

    @hooks.on("book")
    async def edit(call: Any, given: Any) -> RunNormally:
        hooked.append(given.place)
        return RunNormally(given.model_copy(update={"place": given.place.upper()}))

    def started() -> Any:
        tools = Toolset([booking(booked)], hooks=hooks)
        return IN_MEMORY[1](build_server(tools, ServerOptions(approvals=SqliteApprovalStore(path))))

    async with started() as client:
        request = request_of(await client.call_tool("book", {"place": "Oslo"}))
    store = SqliteApprovalStore(path)
    await store.answer((await store.show(request)).request.grant("bob"))
    async with started() as client:
        done = await client.call_tool("book", {"place": "Oslo"})

    assert (text_of(done), booked, hooked) == ("booked OSLO", ["OSLO"], ["Oslo"])


async def test_two_servers_that_take_up_one_call_at_once_make_it_once(tmp_path: Path) -> None:
    booked: list[str] = []
    path = tmp_path / "crib.db"
    servers = [build_server([booking(booked)], ServerOptions(approvals=SqliteApprovalStore(path))) for _ in range(2)]
    way = IN_MEMORY[1]

    async with way(servers[0]) as one, way(servers[1]) as other:
        request = request_of(await one.call_tool("book", {"place": "Oslo"}))
        store = SqliteApprovalStore(path)
        await store.answer((await store.show(request)).request.grant())
        results = await asyncio.gather(*(client.call_tool("book", {"place": "Oslo"}) for client in (one, other)))

    assert booked == ["Oslo"]
    done = [text_of(result) for result in results if not result.is_error]
    assert set(done) == {"booked Oslo"}  # the other one has the same result, or is told that the call is executed


@pytest.fixture(params=["memory", "file", "postgres"])
def kept_calls(request: pytest.FixtureRequest, tmp_path: Path) -> SuspendedCallStore:
    """Calls that wait, in each place where they may."""
    match request.param:
        case "memory":
            return MemorySuspendedCalls()
        case "file":
            return SqliteApprovalStore(tmp_path / "calls.db").suspended_calls()
        case _:
            postgres: Postgres = request.getfixturevalue("postgres")
            return PostgresApprovalStore(postgres.url("suspended_calls")).suspended_calls()


async def test_a_call_that_ends_leaves_the_same_call_waiting_that_was_made_meanwhile(
    kept_calls: SuspendedCallStore,
) -> None:
    later = SuspendedCall("key", "ann", "book", ("ask_2",), {})

    await kept_calls.keep(replace(later, requests=("ask_1",)))
    await kept_calls.keep(later)
    await kept_calls.drop("key", ["ask_1"])
    found = await kept_calls.find("key")
    await kept_calls.drop("key", ["ask_2"])

    assert (found, await kept_calls.find("key")) == (later, None)


async def test_calls_that_wait_are_found_by_their_request_for_their_principal(kept_calls: SuspendedCallStore) -> None:
    call = SuspendedCall("other", "ann", "book", ("ask_1", "ask_2"), {"with": "a \0"})

    await kept_calls.keep(call)

    assert [await kept_calls.find_request("ann", ask) for ask in ("ask_2", "ask_")] == [call, None]
    assert await kept_calls.find_request("eve", "ask_2") is None
    assert await kept_calls.tools() == {"book"}
    await kept_calls.drop("other", ["ask_1", "ask_2"])


async def test_a_call_that_waits_on_a_database_server_goes_on_at_another_server(postgres: Postgres) -> None:
    booked, url, way = list[str](), postgres.url("two_servers"), IN_MEMORY[1]
    stores = [PostgresApprovalStore(url) for _ in range(2)]
    servers = [build_server([booking(booked)], ServerOptions(approvals=store)) for store in stores]

    async with way(servers[0]) as one, way(servers[1]) as other:
        request = request_of(await one.call_tool("book", {"place": "Oslo"}))
        await stores[0].answer((await stores[0].show(request)).request.grant())
        done = await other.call_tool("book", {"place": "Oslo"})

    assert (text_of(done), booked) == ("booked Oslo", ["Oslo"])


@every_generation
async def test_a_request_that_was_kept_too_long_is_not_named_any_more(way: Way) -> None:
    booked: list[str] = []
    store, options = MemoryApprovalStore(), timedelta(microseconds=1)
    async with way(build_server([booking(booked)], ServerOptions(approvals=store, kept_for=options))) as client:
        asked = request_of(await client.call_tool("book", {"place": "Oslo"}))

        with pytest.raises(MCPError, match="is no longer stored"):
            await client.call_tool("book", {"place": "Rome"}, meta={"toolcrib/request": asked})


@every_generation
async def test_nobody_takes_up_the_call_of_somebody_else(way: Way) -> None:
    booked: list[str] = []
    store = MemoryApprovalStore()
    server = build_server([booking(booked)], ServerOptions(approvals=store))
    with acting_as("ann"):
        async with way(server) as client:
            hers = request_of(await client.call_tool("book", {"place": "Oslo"}))
    await store.answer((await store.show(hers)).request.grant())

    with acting_as("eve"):
        async with way(server) as client:
            waiting = await client.call_tool("book", {"place": "Oslo"})
            with pytest.raises(MCPError, match="no call of `book` waits for the request"):
                await client.call_tool("book", {}, meta={"toolcrib/request": hers})

    with acting_as("ann"):
        async with way(server) as client:
            done = await client.call_tool("book", {"place": "Oslo"})

    assert request_of(waiting) != hers
    asked = [(await store.show(request)).request.call_id for request in (hers, request_of(waiting))]
    assert asked[0] != asked[1]
    assert (text_of(done), booked) == ("booked Oslo", ["Oslo"])


@every_generation
async def test_a_client_may_name_the_request_in_place_of_the_arguments(way: Way) -> None:
    booked: list[str] = []
    store = MemoryApprovalStore()
    async with way(build_server([booking(booked)], ServerOptions(approvals=store))) as client:
        request = request_of(await client.call_tool("book", {"place": "Oslo"}))
        await store.answer((await store.show(request)).request.grant())

        done = await client.call_tool("book", {"place": "Rome"}, meta={"toolcrib/request": request})

    assert (text_of(done), booked) == ("booked Oslo", ["Oslo"])


@every_generation
async def test_a_call_that_was_kept_too_long_is_asked_anew(way: Way) -> None:
    booked: list[str] = []
    store = MemoryApprovalStore()
    options = ServerOptions(approvals=store, kept_for=timedelta(microseconds=1))
    async with way(build_server([booking(booked)], options)) as client:
        request = request_of(await client.call_tool("book", {"place": "Oslo"}))
        await store.answer((await store.show(request)).request.grant())

        again = await client.call_tool("book", {"place": "Oslo"})

    assert request_of(again) != request
    assert booked == []


@every_generation
async def test_a_grant_that_has_expired_opens_nothing(way: Way) -> None:
    booked: list[str] = []
    store = MemoryApprovalStore()
    async with way(build_server([booking(booked)], ServerOptions(approvals=store))) as client:
        request = (await store.show(request_of(await client.call_tool("book", {"place": "Oslo"})))).request
        await has_expired(lambda until: store.answer(request.grant(expires_at=until)))

        again = await client.call_tool("book", {"place": "Oslo"})

    assert request_of(again) == request.id
    assert booked == []


@every_generation
async def test_a_tool_that_asks_when_it_runs_goes_on_as_well(way: Way) -> None:
    store, spent = MemoryApprovalStore(), list[int]()

    @ez_tool
    async def pay(amount: int, ctx: RunContext) -> str:
        if amount > 10 and not ctx.approved:
            raise ApprovalRequired({"amount": amount})
        spent.append(amount)
        return f"paid {amount}"

    async with way(build_server([pay], ServerOptions(approvals=store))) as client:
        await client.call_tool("pay", {"amount": 5})
        request = request_of(await client.call_tool("pay", {"amount": 50}))
        await store.answer((await store.show(request)).request.grant())
        done = await client.call_tool("pay", {"amount": 50})

    assert (text_of(done), spent) == ("paid 50", [5, 50])


async def test_a_tool_that_asks_when_it_runs_goes_on_at_another_server(tmp_path: Path) -> None:
    store, spent = SqliteApprovalStore(tmp_path / "crib.db"), list[int]()

    @ez_tool
    async def pay(amount: int, ctx: RunContext) -> str:
        if not ctx.approved:
            raise ApprovalRequired({"amount": amount})
        spent.append(amount)
        return f"paid {amount}"

    way, servers = IN_MEMORY[1], [build_server([pay], ServerOptions(approvals=store)) for _ in range(2)]
    async with way(servers[0]) as one, way(servers[1]) as other:
        request = request_of(await one.call_tool("pay", {"amount": 50}))
        await store.answer((await store.show(request)).request.grant())
        await asyncio.sleep(1.05)  # as long as another server may not know of it
        done = await other.call_tool("pay", {"amount": 50})

    assert (text_of(done), spent, len(await store.list())) == ("paid 50", [50], 1)


@every_generation
async def test_a_call_can_wait_for_its_answer(way: Way) -> None:
    booked: list[str] = []
    store = TellingStore()

    async with way(build_server([booking(booked)], ServerOptions(approvals=store, wait=20))) as client:
        call = asyncio.create_task(client.call_tool("book", {"place": "Oslo"}))
        await store.answer((await store.asked.get()).grant())
        done = await call

    assert (text_of(done), booked) == ("booked Oslo", ["Oslo"])


@every_generation
async def test_a_call_that_waited_in_vain_says_how_to_go_on(way: Way) -> None:
    booked: list[str] = []
    store = MemoryApprovalStore()

    async with way(build_server([booking(booked)], ServerOptions(approvals=store, wait=0.2))) as client:
        waiting = await client.call_tool("book", {"place": "Oslo"})

    assert isinstance(waiting, CallToolResult)
    assert (await store.show(request_of(waiting))).state == "pending"
    assert booked == []


def test_a_store_that_cannot_be_waited_for_is_refused() -> None:
    class Silent:
        put = answer = take = use = MemoryApprovalStore().put

    with pytest.raises(ValueError, match="Silent cannot be waited for"):
        build_server([booking([])], ServerOptions(approvals=Silent(), wait=1))  # type: ignore[arg-type]
