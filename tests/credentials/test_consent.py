"""Consent over a real authorization server: a call is suspended with a link, and goes on once after the consent."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette

from tests.adapters.mcp_client.servers import outcome_of, serving
from tests.credentials.authority import Browser, Guarded, guarded, held_in, query_of, with_query
from tests.networks import free_port
from toolcrib.adapters.mcp_client import connect
from toolcrib.approvals import MemoryApprovalStore
from toolcrib.calls import Completed, Outcome, Suspended
from toolcrib.credentials import (
    ApiKeys,
    CredentialKeys,
    CredentialStore,
    MemoryCredentialStore,
    OAuth,
    SqliteCredentialStore,
    new_key,
)
from toolcrib.errors import ToolcribError
from toolcrib.pipeline import Pipeline, Run
from toolcrib.record import ListSink
from toolcrib.serving.http.consent import consent_routes, consent_server
from toolcrib.toolsets import Toolset


class Place:
    """A guarded server, our pages, and an open toolset."""

    def __init__(self, server: Guarded, store: CredentialStore, oauth: OAuth, tools: Toolset, pages: str) -> None:
        self.server, self.store, self.oauth, self.tools, self.pages = server, store, oauth, tools, pages
        self.approvals = MemoryApprovalStore()

    def run(self, principal: str) -> Run:
        return Run(principal=principal, approvals=self.approvals)

    def browser(self, person: str) -> Browser:
        return Browser(self.server.authority, person)

    async def link(self, principal: str) -> str:
        consent = await self.oauth.consent_for(principal, self.server.url)
        assert consent is not None
        return consent.url

    async def consents(self, principal: str) -> None:
        async with self.browser(f"{principal}@there") as browser:
            page = await browser.gives_access(await self.link(principal))
        assert page.status_code == 200, page.text

    async def whoami(self, principal: str) -> Outcome:
        return await outcome_of(self.tools, "whoami", run=self.run(principal))


@asynccontextmanager
async def place(store: CredentialStore | None = None, **options: Any) -> AsyncGenerator[Place]:
    kept = store or MemoryCredentialStore()
    pages = f"http://127.0.0.1:{free_port()}/consent"
    oauth = OAuth(kept, pages=pages, **options)
    async with guarded() as server, connect(server.url, credentials=oauth).open() as tools:
        made = Place(server, kept, oauth, tools, pages)
        async with consent_server(pages, kept, made.approvals):
            yield made


async def suspended(here: Place, principal: str, tool: str = "whoami") -> tuple[Suspended, str]:
    outcome = await outcome_of(here.tools, tool, run=here.run(principal))
    assert isinstance(outcome, Suspended), outcome
    assert outcome.request.consent is not None
    return outcome, outcome.request.consent.url


# --- the way


async def test_first_consent_lists_the_tools_and_each_principal_is_who_they_are() -> None:
    async with place() as here:
        names = list(here.tools.names())
        first, link = await suspended(here, "ann", "get_access")
        async with here.browser("ann@there") as browser:
            assert (await browser.gives_access(link)).status_code == 200
        listed = await Pipeline(here.tools).run(first, here.run("ann"))
        ann = await here.whoami("ann")
        waiting, link = await suspended(here, "bob")
        async with here.browser("bob@there") as browser:
            assert (await browser.gives_access(link)).status_code == 200
        bob = await Pipeline(here.tools).run(waiting, here.run("bob"))
        again = await Pipeline(here.tools).run(waiting, here.run("bob"))

    assert names == ["get_access"]
    assert isinstance(listed, Completed)
    assert "whoami" in listed.value
    assert (ann.value, bob.value) == ("ann@there", "bob@there")  # type: ignore[union-attr]
    assert not isinstance(again, Completed)
    assert [who for who, _ in here.server.called] == ["ann@there", "bob@there"]
    assert await here.approvals.list(pending=True) == ()


async def test_server_that_has_to_be_there_may_wait_for_its_first_consent() -> None:
    oauth = OAuth(MemoryCredentialStore(), pages="http://127.0.0.1:1/consent")
    async with guarded() as server, connect(server.url, credentials=oauth, required=True).open() as tools:
        assert list(tools.names()) == ["get_access"]


async def test_all_calls_that_wait_for_one_consent_go_on() -> None:
    async with place() as here:
        await here.consents("ann")
        await outcome_of(here.tools, "get_access", run=here.run("ann"))
        waiting = [await suspended(here, "bob") for _ in range(3)]
        pending = len(await here.approvals.list(pending=True))
        await here.consents("bob")
        left = len(await here.approvals.list(pending=True))
        outcomes = [await Pipeline(here.tools).run(one, here.run("bob")) for one, _ in waiting]

    assert len({link for _, link in waiting}) == 1
    assert (pending, left) == (3, 0)
    assert all(isinstance(one, Completed) for one in outcomes)


async def test_consent_that_a_principal_takes_back_is_asked_for_again() -> None:
    async with place() as here:
        await here.consents("ann")
        await outcome_of(here.tools, "get_access", run=here.run("ann"))
        await here.whoami("ann")
        here.server.authority.take_back("ann@there")
        failed = await here.whoami("ann")
        after = await here.whoami("ann")

    assert "ann has not given access" in failed.text()
    assert isinstance(after, Suspended)
    assert len(here.server.called) == 1


async def test_forgotten_token_is_revoked_at_the_authorization_server() -> None:
    async with place() as here:
        await here.consents("ann")
        await outcome_of(here.tools, "get_access", run=here.run("ann"))
        await here.whoami("ann")
        known = set(here.server.authority.tokens) | set(here.server.authority.refresh)
        forgotten = await here.oauth.forget("ann", here.server.url)
        after = await here.whoami("ann")

    assert forgotten
    assert set(here.server.authority.revoked) == known
    assert isinstance(after, Suspended)


async def test_server_is_registered_with_once() -> None:
    async with place() as here:
        for principal in ("ann", "bob", "eve"):
            await here.consents(principal)

    assert len(here.server.authority.clients) == 1


# --- attacks


async def test_answer_counts_once() -> None:
    async with place() as here, here.browser("ann@there") as browser:
        back = await browser.sent_back(await here.link("ann"))
        first, second = await browser.http.get(back), await browser.http.get(back)

    assert (first.status_code, second.status_code) == (200, 400)
    assert "used before" in second.text


async def test_answer_of_another_browser_does_not_count() -> None:
    async with place() as here, here.browser("eve@there") as eve, here.browser("ann@there") as ann:
        back = await eve.sent_back(await here.link("ann"))  # eve has ann's browser go on with eve's account
        page = await ann.http.get(back)
        holders = await here.oauth.holders(here.server.url)

    assert page.status_code == 400
    assert "another browser" in page.text
    assert holders == ()


async def test_code_with_the_state_of_another_principal_does_not_count() -> None:
    async with place() as here, here.browser("eve@there") as eve, here.browser("ann@there") as ann:
        evil = query_of(await eve.sent_back(await here.link("eve")))
        back = await ann.sent_back(await here.link("ann"))
        page = await ann.http.get(with_query(back, code=evil["code"]))  # PKCE: the code is for eve's verifier

    assert page.status_code == 400
    assert await here.oauth.holders(here.server.url) == ()


@pytest.mark.parametrize(
    "change", [{"state": "made-up"}, {"state": ""}, {"iss": "https://evil.example"}, {"code": ""}, {"error": "<b>"}]
)
async def test_changed_answer_does_not_count(change: dict[str, str]) -> None:
    async with place() as here, here.browser("ann@there") as browser:
        page = await browser.http.get(with_query(await browser.sent_back(await here.link("ann")), **change))

    assert page.status_code == 400
    assert "<b>" not in page.text
    assert await here.oauth.holders(here.server.url) == ()


async def test_answer_that_says_something_twice_does_not_count() -> None:
    async with place() as here, here.browser("ann@there") as browser:
        page = await browser.http.get(await browser.sent_back(await here.link("ann")) + "&code=other")

    assert page.status_code == 400


async def test_link_is_worth_nothing_after_its_use() -> None:
    async with place() as here, here.browser("ann@there") as browser:
        link = await here.link("ann")
        await browser.gives_access(link)
        page = await browser.http.get(link)

    assert page.status_code == 400
    assert "is no longer valid" in page.text


async def test_answer_after_the_link_was_used_by_another_answer_does_not_count() -> None:
    async with place() as here, here.browser("eve@there") as eve, here.browser("ann@there") as ann:
        link = await here.link("ann")
        late = await eve.sent_back(link)
        assert (await ann.gives_access(link)).status_code == 200
        page = await eve.http.get(late)
        await outcome_of(here.tools, "get_access", run=here.run("ann"))
        who = await here.whoami("ann")

    assert page.status_code == 400
    assert who.value == "ann@there"  # type: ignore[union-attr]


async def test_form_of_another_site_is_refused() -> None:
    async with place() as here, here.browser("ann@there") as browser:
        link = await here.link("ann")
        page = await browser.http.get(link)
        proof = page.text.partition('name="proof" value="')[2].partition('"')[0]
        foreign = await browser.http.post(link, data={"proof": proof}, headers={"origin": "https://evil.example"})
        forged = await browser.http.post(link, data={"proof": "x" * 64})
        async with here.browser("eve@there") as eve:
            other = await eve.http.post(link, data={"proof": proof})

    assert (foreign.status_code, forged.status_code, other.status_code) == (403, 400, 400)
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    assert page.headers["referrer-policy"] == "same-origin"
    assert "httponly" in page.headers["set-cookie"].lower()


async def test_page_names_principal_and_server_as_text() -> None:
    async with place() as here, here.browser("ann@there") as browser:
        page = await browser.http.get(await here.link("<script>ann"))

    assert "&lt;script&gt;ann" in page.text
    assert "<script>" not in page.text
    assert here.server.url in page.text


async def test_made_up_link_leads_nowhere() -> None:
    async with place() as here, here.browser("ann@there") as browser:
        page = await browser.http.get(f"{here.pages}/made-up")

    assert page.status_code == 400


async def test_link_is_for_its_principal_where_the_host_knows_who_is_there() -> None:
    store, port = MemoryCredentialStore(), free_port()
    oauth = OAuth(store, pages=f"http://127.0.0.1:{port}/consent")
    routes = consent_routes("/consent", store, identify=lambda request: request.headers.get("x-user"))
    async with guarded() as server, serving(Starlette(routes=routes), port), httpx2.AsyncClient(timeout=60) as http:
        consent = await oauth.consent_for("ann", server.url)
        assert consent is not None
        eve = await http.get(consent.url, headers={"x-user": "eve"})
        nobody = await http.get(consent.url)
        ann = await http.get(consent.url, headers={"x-user": "ann"})

    assert (eve.status_code, nobody.status_code, ann.status_code) == (400, 400, 200)


# --- keys of principals


async def test_api_key_is_entered_on_the_page_and_sent_for_its_principal_alone() -> None:
    store, approvals = MemoryCredentialStore(), MemoryApprovalStore()
    pages = f"http://127.0.0.1:{free_port()}/consent"
    async with guarded() as server, consent_server(pages, store, approvals):
        keys = ApiKeys(store, pages=pages, header="X-Api-Key")
        consent = await keys.consent_for("ann", server.url)
        assert consent is not None
        async with Browser(server.authority, "ann") as browser:
            empty = await browser.agrees(consent.url, key="two\nlines")
            done = await browser.agrees(consent.url, key=" key-of-ann ")
        signed = httpx2.Request("POST", server.url)
        await keys.sign("ann", server.url, signed)

        assert (empty.status_code, done.status_code) == (400, 200)
        assert "key-of-ann" not in done.text
        assert signed.headers["x-api-key"] == "key-of-ann"
        assert await keys.consent_for("ann", server.url) is None
        assert await keys.consent_for("bob", server.url) is not None


# --- nothing is told


async def test_no_secret_reaches_a_record_a_log_an_error_or_the_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    path, sink = tmp_path / "c.db", ListSink()
    seen: list[str] = []
    async with place(SqliteCredentialStore(path, CredentialKeys([new_key()]))) as here:
        authority = here.server.authority
        here.approvals = MemoryApprovalStore()
        first = await outcome_of(here.tools, "get_access", run=here.run("ann"), sink=sink)
        authority.lasts = 10  # seconds: each use refreshes
        await here.consents("ann")
        pipeline = Pipeline(here.tools, sinks=(sink,))
        await pipeline.run(first, here.run("ann"))  # type: ignore[arg-type]
        await here.whoami("ann")
        outcomes = [await outcome_of(here.tools, "whoami", run=here.run("ann"), sink=sink) for _ in range(3)]
        secrets = {*authority.tokens, *authority.refresh, *authority.spent}
        secrets |= {client.client_secret or "-" * 9 for client in authority.clients.values()}
        seen += [repr(one) + str(one) for one in outcomes]
        authority.take_back("ann@there")
        failed = [await outcome_of(here.tools, "whoami", run=here.run("ann"), sink=sink) for _ in range(3)]
        seen += [repr(one) + one.text() for one in failed]
        seen += [repr(await here.store.read("token", "ann", here.server.url)), repr(here.oauth), repr(here.store)]
        seen += [repr(entry) for entry in await here.approvals.list()]
        try:
            await here.oauth.sign("ann", here.server.url, httpx2.Request("GET", here.server.url))
        except ToolcribError as error:
            seen.append(repr(error) + str(error))
    # Logs of httpx and the SDK at DEBUG are others': they have addresses, and the browser's are the tests' own.
    seen += [record.getMessage() for record in caplog.records if record.name.startswith("toolcrib")]
    seen += [repr(event) + repr(event.to_dict()) for event in sink.events]
    told = "\n".join(seen).encode() + held_in(tmp_path)

    assert len(secrets) > 4
    assert [secret for secret in secrets if secret.encode() in told] == []


async def test_key_in_the_address_is_sent_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    sent: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        sent.append(scope["query_string"].decode())
        await send({"type": "http.response.start", "status": 401, "headers": ()})
        await send({"type": "http.response.body", "body": b""})

    keys, port = ApiKeys(MemoryCredentialStore(), query="api_key"), free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    await keys.add("ann", url, "key-of-ann")
    async with serving(app, port), connect(url, credentials=keys, required=False).open():
        pass

    assert "api_key=key-of-ann" in sent
    assert "key-of-ann" not in caplog.text
