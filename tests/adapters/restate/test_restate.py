"""Restate beyond the contract of engines: its names and lists, versions of workers, and the shape of its journal."""

from __future__ import annotations

import asyncio
import math
import os
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import httpx2
import pytest
from starlette.requests import Request
from starlette.responses import Response

from tests.npm.restate import RestateServer, free_port
from toolcrib.approvals import SqliteApprovalStore
from toolcrib.calls import Completed, Suspended
from toolcrib.durable import DurableFailure
from toolcrib.errors import EngineError
from toolcrib.schema import IdempotencyKey
from toolcrib.testing import FakeClock
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset
from toolcrib.turns import Agent, Turn

restate = pytest.importorskip("toolcrib.adapters.restate", exc_type=ImportError)
_host: Any = pytest.importorskip("toolcrib.adapters.restate._host")
Config: Any = pytest.importorskip("hypercorn.config").Config
serve_http: Any = pytest.importorskip("hypercorn.asyncio").serve


@ez_tool()
async def charge(amount: int) -> str:
    return f"charged {amount}"


@ez_tool(requires_approval=True)
async def pay(amount: int) -> str:
    return f"paid {amount}"


@ez_tool()
async def twice() -> Any:
    yield 1
    yield 2


class Shop:
    """A client of a server, and agents with workers in this process."""

    def __init__(self, client: Any) -> None:
        self.client, self.name = client, f"shop-{uuid4().hex[:8]}"

    def agent(self, *tools: Any) -> Any:
        return restate.RestateAgent(Agent(self.name, "Tested.", tools or (charge, pay, twice)), self.client)

    @asynccontextmanager
    async def working(self, agent: Any, port: int | None = None) -> AsyncGenerator[int]:
        """Serve an agent for the body, at a port that is registered."""
        port, ended = port or free_port(), asyncio.Event()
        work = asyncio.create_task(restate.serve([agent], port=port, answers=0.05, until=ended.wait))
        try:
            await self.register(port)
            yield port
        finally:
            ended.set()
            await work

    async def register(self, port: int) -> None:
        """Register the worker at a port, as soon as it listens."""
        while True:
            try:
                return await self.client.register(f"http://127.0.0.1:{port}")
            except EngineError:
                await asyncio.sleep(0.05)

    async def journal(self, turn_id: str) -> list[str]:
        """Return the names of what the journal of a turn has, in order."""
        query = (
            "SELECT j.name, j.entry_type FROM sys_journal j JOIN sys_invocation i ON j.id = i.id "
            f"WHERE i.target_service_key = '{turn_id}' AND i.target_handler_name = 'run' ORDER BY j.index"
        )
        async with httpx2.AsyncClient() as http:
            reply = await http.post(
                f"{self.client.admin}/query", json={"query": query}, headers={"accept": "application/json"}
            )
        kinds = [(row["entry_type"].removeprefix("Command: "), row.get("name") or "") for row in reply.json()["rows"]]
        return [f"{kind} {name}".strip() for kind, name in kinds if not kind.startswith("Notification")]


@pytest.fixture
async def shop(server: RestateServer, tmp_path: Path) -> AsyncGenerator[Shop]:
    store = SqliteApprovalStore(tmp_path / "approvals.db")
    async with restate.RestateClient(server.ingress, server.admin, approvals=store) as client:
        yield Shop(client)


async def test_turns_are_listed_by_agent_id_and_status_newest_first(shop: Shop) -> None:
    agent = shop.agent()
    async with shop.working(agent):
        done = await agent.put(Turn(charge, kwargs={"amount": 1}))
        await done.outcome()
        paid = await agent.put(Turn(pay, kwargs={"amount": 1}))
        await paid.outcome()

        both = await shop.client.turns(agent=agent.name)
        completed = await shop.client.turns(agent=agent.name, status="completed")
        last = await shop.client.turns(agent=agent.name, limit=1)
        own = await shop.client.turns(turn_id=done.id)

    assert [turn.id for turn in both] == [paid.id, done.id]
    assert [[turn.id for turn in found] for found in (completed, last, own)] == [[done.id], [paid.id], [done.id]]
    assert {turn.agent for turn in both} == {agent.name}


async def test_a_turn_that_is_put_with_a_delay_does_not_begin_before(shop: Shop) -> None:
    agent = shop.agent()
    async with shop.working(agent):
        handle = await agent.put(Turn(charge, kwargs={"amount": 1}), delay=3_600)

        assert await handle.status() == "scheduled"
        await handle.cancel()


async def test_a_worker_without_the_tool_leaves_a_turn_to_one_that_has_it(shop: Shop) -> None:
    newer, older = shop.agent(), shop.agent(pay)
    async with shop.working(older) as port:
        handle = await newer.put(Turn(charge, kwargs={"amount": 1}))
        while not (await shop.client.turns(turn_id=handle.id))[0].problem:  # noqa: ASYNC110 -- the server has it
            await asyncio.sleep(0.05)
        problem = (await shop.client.turns(turn_id=handle.id))[0].problem
    async with shop.working(newer, port):
        outcome = await handle.outcome()

    assert f"waits for a worker that has the tool `charge` of the agent `{newer.name}`" in problem
    assert isinstance(outcome, Completed)


async def test_the_journal_of_a_turn_has_the_shape_that_turns_of_older_workers_have(shop: Shop) -> None:
    """A worker that goes on with a turn has to ask for the same entries in the same order: it is a stored form."""
    agent = shop.agent()
    async with shop.working(agent):
        handle = await agent.put(Turn(pay, kwargs={"amount": 1}))
        asked = await handle.outcome()
        assert isinstance(asked, Suspended)
        await agent.approve(asked.request, "ann")
        await handle.outcome(through=True)
        stream = await agent.put(Turn(twice))
        await stream.outcome()

        journals = [await shop.journal(handle.id), await shop.journal(stream.id)]

    ends = ["Output"]
    assert journals == [
        [
            *("Input", "Run admit 0.0", "SetState", "GetPromise", "ClearState"),
            *("Run admit 1.0", "Run execute 1.0", *ends),
        ],
        [
            *("Input", "Run admit 0.0"),
            *("Run execute 0.0", "SetState", "Run execute 0.1", "SetState", "Run execute 0.2", *ends),
        ],
    ]


@pytest.mark.parametrize("kind", ["gate", "stream"])
async def test_what_is_silent_for_long_is_not_cut_off(shop: Shop, kind: str) -> None:
    """The server has no inactivity timeout for it; a turn that waits for a person has ended its attempt meanwhile."""

    @ez_tool()
    async def silent() -> Any:
        yield 1
        await asyncio.sleep(2)
        yield 2

    class SlowGate:
        stage, name = "approve", "slow"

        async def check(self, call: Any) -> None:
            await asyncio.sleep(2)

    tools = Toolset([charge]).with_gates(SlowGate()) if kind == "gate" else Toolset([silent])
    agent = restate.RestateAgent(Agent(shop.name, "Tested.", tools), shop.client)
    async with shop.working(agent):
        handle = await agent.put(Turn(charge, kwargs={"amount": 1}) if kind == "gate" else Turn(silent))

        outcome = await handle.outcome()

    assert isinstance(outcome, Completed), outcome.text()
    assert outcome.value == ("charged 1" if kind == "gate" else [1, 2])


async def test_a_turn_waits_for_a_person_without_a_connection_and_goes_on_however_often_it_was_woken(
    shop: Shop,
) -> None:
    agent = shop.agent()
    async with shop.working(agent):
        handle = await agent.put(Turn(pay, kwargs={"amount": 1}))
        asked = await handle.outcome()
        assert isinstance(asked, Suspended)
        for _ in range(2):
            while await handle.status() != "suspended":  # noqa: ASYNC110 -- the server has it
                await asyncio.sleep(0.05)
            await shop.client.ask(agent.name, handle.id, "answered", asked.request.id)  # there is no answer
            asked = await handle.outcome()
            assert isinstance(asked, Suspended)

        await agent.approve(asked.request, "ann")

        assert (await handle.outcome(through=True)).text() == "paid 1"


async def test_of_many_who_pass_on_one_answer_at_once_one_lets_the_turn_go_on(shop: Shop) -> None:
    agent = shop.agent()
    async with shop.working(agent):
        handle = await agent.put(Turn(pay, kwargs={"amount": 1}))
        asked = await handle.outcome()
        asks = [shop.client.ask(agent.name, handle.id, "answered", asked.request.id) for _ in range(30)]
        found = await asyncio.gather(*asks, return_exceptions=True)
        await handle.cancel()

    assert sorted(map(str, found)) == [*["False"] * 29, "True"]


class Faults:
    """A server's ingress that answers some requests itself with a text, so many whose path ends with a name."""

    def __init__(self, ingress: str) -> None:
        self.url, self._ingress, self.left = f"http://127.0.0.1:{free_port()}", ingress, dict[str, int]()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        name = scope["path"].rpartition("/")[2]
        if self.left.get(name):
            self.left[name] -= 1
            reply = Response("<html>", status_code=503 if name == "output" else 200)
        else:
            path = scope["raw_path"].decode() + (f"?{request.url.query}" if request.url.query else "")
            kind = {"content-type": request.headers["content-type"]} if "content-type" in request.headers else None
            async with httpx2.AsyncClient() as http:
                got = await http.request(
                    request.method, self._ingress + path, content=await request.body(), headers=kind
                )
            reply = Response(got.content, got.status_code)
        await reply(scope, receive, send)

    @asynccontextmanager
    async def between(self) -> AsyncGenerator[None]:
        config, ended = Config(), asyncio.Event()
        config.bind = [self.url.removeprefix("http://")]
        serving = asyncio.create_task(serve_http(self, config, mode="asgi", shutdown_trigger=ended.wait))
        yield
        ended.set()
        await serving


class FailingStore(SqliteApprovalStore):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.left = {"store": 0}

    async def answered(self) -> Any:
        if self.left["store"]:
            self.left["store"] -= 1
            raise RuntimeError("the disk")
        return await super().answered()


class LateStore(SqliteApprovalStore):
    """An approval store whose reply comes late, once a call begins: as to a worker that stood still meanwhile."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.has_begun, self.replies = asyncio.Event(), asyncio.Event()

    async def begin(self, *given: Any, **options: Any) -> Any:
        begun = await super().begin(*given, **options)
        self.has_begun.set()
        await self.replies.wait()
        return begun


@pytest.mark.parametrize("is_taken", [True, False], ids=["taken over", "still its own"])
async def test_an_attempt_that_hears_late_begins_its_call_unless_another_has_the_turn(
    server: RestateServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_taken: bool
) -> None:
    monkeypatch.setattr("toolcrib.adapters.restate._host._COUNTS_SECONDS", 0.5)
    done: list[int] = []

    @ez_tool(requires_approval=True)
    async def add(amount: int) -> str:
        done.append(amount)
        return "added"

    store, answers = LateStore(tmp_path / "approvals.db"), asyncio.Queue[bool]()

    class Asked(restate.RestateClient):
        async def ask(self, agent: str, turn_id: str, handler: str, about: Any = None) -> Any:
            answer = await super().ask(agent, turn_id, handler, about)
            if handler == "taken" and store.replies.is_set():
                answers.put_nowait(answer)
            return answer

    async with Asked(server.ingress, server.admin, approvals=store) as client:
        shop = Shop(client)
        agent = shop.agent(add)
        async with shop.working(agent):
            handle = await agent.put(Turn(add, kwargs={"amount": 1}))
            asked = await handle.outcome()
            assert isinstance(asked, Suspended)
            await agent.approve(asked.request, "ann")
            await store.has_begun.wait()
            await asyncio.sleep(0.6)  # longer than the attempt counts
            if is_taken:
                await client.ask(agent.name, handle.id, "take", 1)  # as the next attempt does
            store.replies.set()

            heard, ends = (asyncio.ensure_future(each) for each in (answers.get(), handle.outcome(through=True)))
            await asyncio.wait((heard, ends), return_when=asyncio.FIRST_COMPLETED)
            assert heard.done()
            assert heard.result() is is_taken
            if is_taken:
                ends.cancel()
            else:
                await ends

    assert done == ([] if is_taken else [1])


async def test_a_call_in_doubt_is_asked_about_once_no_attempt_before_can_begin_it() -> None:
    """What an attempt may still begin that has not seen that the turn was taken over ends with the wait."""
    said, clock = list[str](), FakeClock()

    async def ask(handler: str, number: int) -> None:
        said.append(f"{handler} {number} at {clock.monotonic()}")

    host = _host.RestateHost(cast("Any", None), 2, ask, clock=clock)
    waits = asyncio.create_task(host.begun_before({"c1": {"at": 0.0, "worker": "w1"}}))
    while not (clock.skip() or waits.done()):  # noqa: ASYNC110 -- as soon as it sleeps
        await asyncio.sleep(0)
    begun = await waits

    assert said == ["take 2 at 0.0"]
    assert clock.monotonic() == _host._COUNTS_SECONDS
    assert begun == {"c1": {"begun": "1970-01-01T00:00:00+00:00 by the worker w1"}}


@pytest.mark.parametrize("fault", ["output", "answered", "store"])
async def test_a_turn_goes_on_though_a_look_for_its_answer_failed(
    server: RestateServer, tmp_path: Path, fault: str
) -> None:
    store, faults = FailingStore(tmp_path / "approvals.db"), Faults(server.ingress)
    async with faults.between(), restate.RestateClient(faults.url, server.admin, approvals=store) as client:
        shop = Shop(client)
        agent = shop.agent()
        async with shop.working(agent):
            handle = await agent.put(Turn(pay, kwargs={"amount": 1}))
            asked = await handle.outcome()
            assert isinstance(asked, Suspended)
            failing = store.left if fault == "store" else faults.left
            failing[fault] = 1
            await store.answer(asked.request.grant("ann"))

            while failing[fault]:  # noqa: ASYNC110 -- a look of the worker counts it down
                await asyncio.sleep(0.05)
            assert (await handle.outcome(through=True)).text() == "paid 1"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_worker_that_has_run_a_turn_ends_at_a_signal(shop: Shop, number: signal.Signals) -> None:
    agent, port = shop.agent(), free_port()
    work = asyncio.create_task(restate.serve([agent], port=port))
    await shop.register(port)
    await (await agent.put(Turn(charge, kwargs={"amount": 1}))).outcome()

    os.kill(os.getpid(), number)

    await asyncio.wait_for(work, 60)


async def test_an_unknown_turn_is_an_error_that_names_it(shop: Shop) -> None:
    agent = shop.agent()
    async with shop.working(agent):
        with pytest.raises(EngineError, match="there is no turn none of the agent"):
            await agent.handle("none").outcome()
        with pytest.raises(EngineError, match="there is no turn none of the agent"):
            await agent.handle("none").cancel()
        assert await agent.handle("it's").status() == "UNKNOWN"


async def test_a_server_that_does_not_answer_is_an_error_that_names_it(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    store = SqliteApprovalStore(tmp_path / "approvals.db")
    async with restate.RestateClient(url, url, approvals=store) as client:
        agent = restate.RestateAgent(Agent("shop", "Tested.", [charge]), client)

        with pytest.raises(EngineError, match=f"no Restate server answers at {url}"):
            await agent.put(Turn(charge, kwargs={"amount": 1}))


def test_an_agent_whose_name_restate_does_not_take_is_refused(tmp_path: Path) -> None:
    client = restate.RestateClient(approvals=SqliteApprovalStore(tmp_path / "approvals.db"))

    with pytest.raises(ValueError, match="the agent `my shop` needs a name of letters"):
        restate.RestateAgent(Agent("my shop", "Tested.", [charge]), client)


@pytest.mark.parametrize("wrong", [0, -1, True, "3", math.nan, math.inf])
@pytest.mark.parametrize(
    ("name", "give"),
    [
        ("retention", lambda n: restate.RestateAgent(Agent("shop", "Tested.", [charge]), no_client(), retention=n)),
        ("polling", lambda n: restate.RestateHandle(no_client(), "shop", "t", polling=n)),
        ("answers", lambda n: asyncio.run(restate.serve([], answers=n))),
        ("limit", lambda n: asyncio.run(no_client().turns(limit=n))),
    ],
)
def test_a_wrong_number_is_refused_by_its_name(name: str, give: Callable[[Any], Any], wrong: Any) -> None:
    with pytest.raises((ValueError, TypeError), match=name):
        give(wrong)


def no_client() -> Any:
    return restate.RestateClient.__new__(restate.RestateClient)


async def test_turns_are_listed_in_pages_and_by_their_time(shop: Shop) -> None:
    agent, begin = shop.agent(), datetime.now(UTC)
    async with shop.working(agent):
        handles = [await agent.put(Turn(charge, kwargs={"amount": n}), delay=3_600) for n in range(3)]
        pages = [await shop.client.turns(agent=agent.name, limit=2, start=start) for start in (0, 2, 4)]
        by_time = [
            await shop.client.turns(agent=agent.name, **{name: begin + timedelta(minutes=minutes)})
            for name, minutes in (("since", -1), ("since", 1), ("until", -1), ("until", 1))
        ]
        for turn in by_time[0]:
            await shop.client.cancel(turn.agent, turn.id)

    assert [len(page) for page in pages] == [2, 1, 0]
    assert {turn.id for page in pages for turn in page} == {handle.id for handle in handles}
    assert [len(found) for found in by_time] == [3, 0, 0, 3]


async def test_a_turn_that_fails_at_each_try_is_paused_and_resumed(shop: Shop) -> None:
    newer, older = shop.agent(), shop.agent(pay)

    async def reached(status: str) -> None:
        while await handle.status() != status:  # noqa: ASYNC110 -- the server has it
            await asyncio.sleep(0.05)

    async with shop.working(older) as port:
        handle = await newer.put(Turn(charge, kwargs={"amount": 1}))
        await reached("backing-off")
        await handle.pause()
        await reached("paused")
    async with shop.working(newer, port):
        await shop.client.resume(newer.name, handle.id, at_newest=True)
        outcome = await handle.outcome()
        await handle.cancel()  # it has ended, and stays as it is
        again = await handle.outcome()
        with pytest.raises(EngineError, match=r"refused PATCH .*/pause"):
            await handle.pause()

    assert isinstance(outcome, Completed)
    assert again == outcome


async def test_a_turn_is_forked_as_a_new_turn_that_asks_again(shop: Shop) -> None:
    agent = shop.agent()
    async with shop.working(agent):
        handle = await agent.put(Turn(pay, kwargs={"amount": 1}), conversation_id="case 7")
        asked = await handle.outcome()
        await agent.approve(asked.request)
        await handle.outcome(through=True)

        fork = agent.handle(await shop.client.fork(agent.name, handle.id))
        again = await fork.outcome()
        await agent.approve(again.request)
        outcome = await fork.outcome(through=True)
        with pytest.raises(EngineError, match="there is no turn nobody of the agent"):
            await shop.client.fork(agent.name, "nobody")

    assert isinstance(again, Suspended)
    assert (again.call_id, again.request.conversation_id) == (fork.id, "case 7")
    assert again.request.id != asked.request.id
    assert outcome == Completed("pay", fork.id, "paid 1")


async def test_a_turn_calls_another_and_waits_for_it(shop: Shop) -> None:
    charges: list[int] = []

    @ez_tool(idempotent=True)
    async def price(amount: int) -> int:
        charges.append(amount)
        return amount * 100

    @ez_tool(idempotent=True)
    async def offer(amount: int) -> str:
        found = await agent.call(Turn(price, kwargs={"amount": amount}))
        return f"for {found.value} cents"

    agent = shop.agent(price, offer)
    async with shop.working(agent):
        handle = await agent.put(Turn(offer, kwargs={"amount": 4}))
        outcome = await handle.outcome()
        turns = await shop.client.turns(agent=agent.name)

    assert outcome.value == "for 400 cents"
    assert charges == [4]
    assert [(turn.status, turn.problem) for turn in turns] == [("completed", "")] * 2


@pytest.mark.parametrize("pause", [0.05, 1.5])
async def test_a_call_of_an_idempotent_tool_that_fails_is_made_again_with_the_same_key(
    shop: Shop, pause: float
) -> None:
    keys: list[str] = []

    @ez_tool(idempotent=True, requires_approval=True)
    async def fetch(good: int, key: IdempotencyKey) -> str:
        keys.append(key)
        if len(keys) < good:
            raise ConnectionError("the line is dead")
        return f"fetched in try {len(keys)}"

    retry = restate.RetryPolicy(3, pause=pause, longest=pause)
    agent = restate.RestateAgent(Agent(shop.name, "Tested.", [fetch]), shop.client, retries={"fetch": retry})
    outcomes: list[Any] = []
    async with shop.working(agent):
        for good in (3, 9):
            keys.clear()
            handle = await agent.put(Turn(fetch, kwargs={"good": good}))
            asked = await handle.outcome()
            await agent.approve(asked.request)
            outcomes.append((await handle.outcome(through=True), len(keys), len(set(keys))))

    (fetched, *of_first), (failed, *of_second) = outcomes
    assert (fetched.value, failed.message) == ("fetched in try 3", "the line is dead")
    assert (of_first, of_second) == ([3, 1], [3, 1])


async def test_a_turn_waits_for_its_next_try_without_a_connection_and_is_cancelled(shop: Shop) -> None:
    @ez_tool(idempotent=True)
    async def fetch() -> None:
        raise ConnectionError("the line is dead")

    retry = restate.RetryPolicy(2, pause=3600.0, longest=3600.0)
    agent = restate.RestateAgent(Agent(shop.name, "Tested.", [fetch]), shop.client, retries={"fetch": retry})
    async with shop.working(agent):
        handle = await agent.put(Turn(fetch))
        async with asyncio.timeout(60):
            while await handle.status() != "suspended":  # noqa: ASYNC110 -- the server has it
                await asyncio.sleep(0.05)
        await handle.cancel()

        with pytest.raises(DurableFailure, match="cancelled"):
            await handle.outcome()


async def test_retries_are_for_idempotent_tools(shop: Shop) -> None:
    with pytest.raises(ValueError, match="`charge` is not idempotent"):
        restate.RestateAgent(
            Agent(shop.name, "Tested.", [charge]), shop.client, retries={"charge": restate.RetryPolicy(3)}
        )
