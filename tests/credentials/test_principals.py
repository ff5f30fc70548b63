"""A thousand principals on one process: the server, which notes who called, never sees one as another."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterable
from contextlib import AsyncExitStack
from typing import Any, TypeVar

import httpx2
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.adapters.mcp_client.servers import outcome_of, serving
from tests.credentials.authority import guarded
from tests.effort import examples
from tests.networks import free_port
from toolcrib.adapters.mcp_client import connect
from toolcrib.calls import Completed, Outcome, Suspended
from toolcrib.credentials import ApiKeys, MemoryCredentialStore, OAuth, PrincipalAuth
from toolcrib.pipeline import Run

T = TypeVar("T")
POPULATION = 1000
PEOPLE = st.lists(st.integers(0, POPULATION - 1), min_size=1, max_size=12)
FEW = st.lists(st.integers(0, POPULATION - 1), min_size=1, max_size=5)


class Principals(RuleBasedStateMachine):
    """Calls of many principals at once, while their tokens end, are refreshed, taken back and forgotten.

    What happens to a token happens to one of a principal who calls in the same moment, or to any.
    """

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.stack = AsyncExitStack()
        self.holding: set[int] = set()
        self.at_once = asyncio.Semaphore(50)

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    @initialize(first=FEW)
    def begin(self, first: list[int]) -> None:
        self.do(self._begin(first))

    async def _begin(self, first: list[int]) -> None:
        self.server = await self.stack.enter_async_context(guarded())
        self.authority, self.store = self.server.authority, MemoryCredentialStore()
        self.oauth = OAuth(self.store, pages="http://127.0.0.1:9/consent")
        self.template = await self._registered()
        await self._consent([*first, 0])
        self.tools = await self.stack.enter_async_context(connect(self.server.url, credentials=self.oauth).open())

    async def _registered(self) -> dict[str, Any]:
        """Register with the authorization server, and return a token's row without its tokens."""
        place = self.server.url.removesuffix("/mcp")
        about = {"redirect_uris": ["http://127.0.0.1:9/consent/back"], "token_endpoint_auth_method": "none"}
        async with httpx2.AsyncClient(timeout=60) as http:
            client = (await http.post(f"{place}/register", json=about)).json()
        endpoints = {"issuer": place, "authorize": f"{place}/authorize", "token": f"{place}/token"}
        rest = {"register": "", "revoke": "", "scopes": [], "says_issuer": False, "takes_documents": False}
        endpoints |= {**rest, "methods": ["none"], "resource": self.server.url}
        client = {"client_id": client["client_id"], "secret": "", "method": "none"}
        return {"endpoints": endpoints, "client": client}

    async def _consent(self, people: Iterable[int]) -> None:
        for one in people:
            made = self.authority._made(self.template["client"]["client_id"], [], f"p{one}@there", None)
            held = {"access": made.access_token, "refresh": made.refresh_token, "expires_at": time.time() + 3600}
            await self.store.write("token", f"p{one}", self.server.url, {**held, **self.template})
            self.holding.add(one)

    async def _call(self, one: int) -> Outcome:
        async with self.at_once:
            return await outcome_of(self.tools, "whoami", run=Run(principal=f"p{one}"), note=f"p{one}")

    async def _calls(self, people: list[int], meanwhile: Coroutine[Any, Any, Any] | None = None) -> list[Outcome]:
        calls = asyncio.gather(*(self._call(one) for one in people))
        if meanwhile is not None:
            await asyncio.sleep(0)
            await meanwhile
        return await calls

    def _check(self, people: list[int], outcomes: list[Outcome], disturbed: Iterable[int] = ()) -> None:
        for one, outcome in zip(people, outcomes, strict=True):
            if isinstance(outcome, Completed):
                assert outcome.value == f"p{one}@there"
            elif one not in disturbed:
                assert one not in self.holding, outcome
                assert isinstance(outcome, Suspended), outcome
                assert outcome.request.consent is not None
                assert outcome.request.consent.principal == f"p{one}"

    @rule(people=PEOPLE)
    def call(self, people: list[int]) -> None:
        self._check(people, self.do(self._calls(people)))

    @rule(people=FEW)
    def consent(self, people: list[int]) -> None:
        self.do(self._consent(people))

    @rule(people=PEOPLE, chosen=FEW)
    def tokens_end_at_the_server(self, people: list[int], chosen: list[int]) -> None:
        async def end() -> None:
            for one in chosen:
                self.authority.end(f"p{one}@there")

        self._check([*people, *chosen], self.do(self._calls([*people, *chosen], end())))

    @rule(people=PEOPLE, chosen=FEW)
    def tokens_are_about_to_end(self, people: list[int], chosen: list[int]) -> None:
        async def age() -> None:
            for one in chosen:
                place = "token", f"p{one}", self.server.url
                row = await self.store.read(*place)
                if row is not None and await self.store.claim(*place, row.version, 60):  # it is not refreshed just now
                    await self.store.swap(*place, row.version, {**row.value, "expires_at": time.time() + 1})

        self._check([*people, *chosen], self.do(self._calls([*people, *chosen], age())))

    @rule(people=PEOPLE, chosen=FEW)
    def access_is_taken_back(self, people: list[int], chosen: list[int]) -> None:
        async def take_back() -> None:
            for one in chosen:
                self.authority.take_back(f"p{one}@there")

        outcomes = self.do(self._calls([*people, *chosen], take_back()))
        self.holding -= set(chosen)
        self._check([*people, *chosen], outcomes, chosen)
        self.do(self._calls(chosen))  # who had no call in that moment learns of it now

    @rule(people=PEOPLE, chosen=FEW)
    def tokens_are_forgotten(self, people: list[int], chosen: list[int]) -> None:
        async def forget() -> None:
            await asyncio.gather(*(self.oauth.forget(f"p{one}", self.server.url) for one in set(chosen)))

        outcomes = self.do(self._calls([*people, *chosen], forget()))
        self.holding -= set(chosen)
        self._check([*people, *chosen], outcomes, chosen)

    def teardown(self) -> None:
        try:
            called = self.server.called
            assert [(who, note) for who, note in called if who != f"{note}@there"] == []
            assert self.authority.reused == []
        finally:
            self.do(self.stack.aclose())
            self.loop.close()


TestPrincipals = Principals.TestCase
TestPrincipals.settings = settings(
    max_examples=examples(15), stateful_step_count=10, deadline=None, suppress_health_check=list(HealthCheck)
)


@pytest.mark.systems
async def test_thousand_principals_call_at_once_and_share_no_session() -> None:
    machine, people = Principals(), range(examples(POPULATION))
    machine.loop.close()
    try:
        await machine._begin([])
        await machine._consent(people)
        first = await machine._calls([*people])
        machine.authority.tokens = {}  # all end at once
        second = await machine._calls([*people])
    finally:
        await machine.stack.aclose()

    wanted = [f"p{one}@there" for one in people]
    assert [one.value if isinstance(one, Completed) else one for one in first] == wanted
    assert [one.value if isinstance(one, Completed) else one for one in second] == wanted
    assert all(who == f"{note}@there" for who, note in machine.server.called)
    assert len(machine.server.called) == 2 * len(people)
    assert machine.authority.refreshes == len(people)
    assert machine.authority.reused == []


async def test_credential_goes_to_its_server_alone() -> None:
    seen: list[tuple[int, str]] = []

    def app(port: int, status: int, headers: list[tuple[bytes, bytes]]) -> Any:
        async def answer(scope: Any, receive: Any, send: Any) -> None:
            seen.append((port, dict(scope["headers"]).get(b"x-key", b"").decode()))
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": b""})

        return answer

    own, other = free_port(), free_port()
    url = f"http://127.0.0.1:{own}/mcp"
    keys = ApiKeys(MemoryCredentialStore(), header="X-Key")
    await keys.add("ann", url, "key-of-ann")

    async def ann(request: httpx2.Request) -> str:
        return "ann"

    to_other = [(b"location", f"http://127.0.0.1:{other}/x".encode())]
    async with (
        serving(app(own, 307, to_other), own),
        serving(app(other, 200, []), other),
        httpx2.AsyncClient(auth=PrincipalAuth(keys, url, ann)) as http,
    ):
        first = await http.post(url)
        await http.send(http.build_request("POST", first.headers["location"]))

    assert seen == [(own, "key-of-ann"), (other, "")]
