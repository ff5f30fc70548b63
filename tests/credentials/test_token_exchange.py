"""Token exchange: a caller's token becomes one of the server behind, for this caller alone, and is kept nowhere."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import httpx2
import pytest
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from tests.adapters.mcp_client.servers import outcome_of, serving
from tests.adapters.mcp_server.clients import text_of
from tests.adapters.mcp_server.http import served
from tests.adapters.mcp_server.test_http import connected
from tests.credentials.authority import Guarded, guarded
from tests.networks import free_port
from toolcrib._subject_tokens import SubjectTokens, subject_tokens
from toolcrib.adapters.mcp_client import connect
from toolcrib.adapters.mcp_server import ServerOptions
from toolcrib.approvals import MemoryApprovalStore
from toolcrib.calls import Completed, Failed, Suspended
from toolcrib.credentials import IdJag, TokenExchange
from toolcrib.credentials import _token_exchange as module
from toolcrib.errors import TargetError
from toolcrib.gateway import toolset_of_file
from toolcrib.pipeline import Run

ISSUER: Any = "https://login.example"
HERE: Any = "http://127.0.0.1:8000/mcp"
AUTH = AuthSettings(issuer_url=ISSUER, resource_server_url=HERE, validate_token_resource=False)
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"


@pytest.fixture(autouse=True)
def tokens(monkeypatch: pytest.MonkeyPatch) -> SubjectTokens:
    """Keep the tokens of each test apart."""
    kept = SubjectTokens()
    for place in ("toolcrib.credentials._token_exchange", "toolcrib.adapters.mcp_server._http"):
        monkeypatch.setattr(f"{place}.subject_tokens", kept)
    return kept


class Exchanger:
    """The authorization servers: one exchanges tokens, the other takes its assertions.

    Attributes:
        asked: The forms that came, in order.
        lasts: Seconds that a token lasts, where it says so.
        refused: Subjects for whom it refuses.
    """

    def __init__(self, behind: Guarded) -> None:
        self.behind, self.asked = behind, list[dict[str, str]]()
        self.lasts: int | None = 3600
        self.refused: set[str] = set()
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/token"

    async def token(self, request: Request) -> JSONResponse:
        form = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
        self.asked.append(form)
        subject = {"client_credentials": "the gateway", EXCHANGE: form.get("subject_token", "")}.get(
            form["grant_type"], form.get("assertion", "").removeprefix("jag of ")
        )
        if subject in self.refused:
            return JSONResponse({"error": "invalid_target"}, 400)
        if form.get("requested_token_type", "").endswith(":id-jag"):
            kind = "urn:ietf:params:oauth:token-type:id-jag"
            return JSONResponse({"access_token": f"jag of {subject}", "issued_token_type": kind, "token_type": "N_A"})
        made = self.behind.authority._made("gateway", [], subject, form.get("resource"))
        ends = {} if self.lasts is None else {"expires_in": self.lasts}
        return JSONResponse({"access_token": made.access_token, "token_type": "Bearer", **ends})

    def subjects(self) -> list[str]:
        return [form["subject_token"] for form in self.asked if "subject_token" in form]


@asynccontextmanager
async def exchanger() -> AsyncIterator[Exchanger]:
    async with guarded() as behind:
        known = Exchanger(behind)
        app = Starlette(routes=[Route("/token", known.token, methods=["POST"])])
        async with serving(app, known.port):
            yield known


class Verifier:
    """Takes each token for one of a person whose name it is."""

    async def verify_token(self, token: str) -> AccessToken | None:
        return AccessToken(token=token, client_id="app", subject=token, scopes=[], expires_at=int(time.time()) + 600)


@asynccontextmanager
async def gateway(credentials: TokenExchange, behind: Guarded, **options: Any) -> AsyncIterator[str]:
    async with connect(behind.url, credentials=credentials).open() as tools:
        kept = ServerOptions(approvals=MemoryApprovalStore(), **options)
        async with served(tools, kept, token_verifier=Verifier(), auth=AUTH) as url:
            yield url


async def called(url: str, person: str, mode: Any = "auto") -> str:
    async with connected(url, person, mode) as client:
        return text_of(await client.call_tool("whoami", {"note": person}))


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_each_caller_is_themselves_at_the_server_behind(mode: Any) -> None:
    async with exchanger() as known:
        credentials = TokenExchange(known.url, client_id="gateway", client_secret="s", audience="tools", scopes=["use"])
        async with gateway(credentials, known.behind) as url:
            said = await asyncio.gather(*(called(url, person, mode) for person in ("ann", "bob", "ann", "cem")))

    assert said == ["ann", "bob", "ann", "cem"]
    assert known.behind.called.count(("ann", "ann")) == 2
    assert {subject == note for subject, note in known.behind.called} == {True}
    assert sorted(known.subjects()) == ["ann", "bob", "cem"]  # once each
    form = next(form for form in known.asked if form.get("subject_token") == "ann")
    assert form["subject_token_type"] == "urn:ietf:params:oauth:token-type:access_token"
    assert (form["audience"], form["scope"], form["resource"]) == ("tools", "use", known.behind.url)


async def test_an_assertion_of_the_identity_provider_is_taken_to_the_servers_own_authority() -> None:
    async with exchanger() as known:
        behind = IdJag("https://as.example", known.url, "us-there")
        credentials = TokenExchange(known.url, client_id="us", id_jag=behind)
        async with gateway(credentials, known.behind) as url:
            said = await called(url, "ann")

    assert said == "ann"
    exchanged, granted = known.asked[-2:]
    assert exchanged["audience"] == "https://as.example"
    assert exchanged["client_id"] == "us"
    assert granted["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
    assert (granted["assertion"], granted["client_id"]) == ("jag of ann", "us-there")
    assert "subject_token" not in granted


async def test_a_caller_without_a_token_here_is_told_and_nobody_elses_is_used() -> None:
    async with exchanger() as known:
        credentials = TokenExchange(known.url, client_id="gateway")
        subject = module.subject_tokens
        subject.keep("ann", "ann", None)
        async with connect(known.behind.url, credentials=credentials).open() as tools:
            outcome = await outcome_of(tools, "whoami", run=Run(principal="bob"))

    assert isinstance(outcome, Suspended), outcome
    assert outcome.request.consent is not None
    assert "bob has no access token here" in outcome.request.reason
    assert known.subjects() == []
    assert known.behind.called == []


async def test_a_suspended_call_goes_on_when_the_token_is_there() -> None:
    async with exchanger() as known:
        credentials = TokenExchange(known.url, client_id="gateway")
        async with connect(known.behind.url, credentials=credentials).open() as tools:
            run = Run(principal="bob")
            first = await outcome_of(tools, "whoami", run=run)
            module.subject_tokens.keep("bob", "bob", time.time() + 60)
            outcome = await outcome_of(tools, "whoami", run=run)

    assert isinstance(first, Suspended)
    assert isinstance(outcome, Completed), outcome
    assert outcome.value == "bob"


async def test_who_is_refused_fails_and_others_do_not() -> None:
    async with exchanger() as known:
        known.refused = {"eve"}
        credentials = TokenExchange(known.url, client_id="gateway")
        for person in ("ann", "eve"):
            module.subject_tokens.keep(person, person, None)
        async with connect(known.behind.url, credentials=credentials).open() as tools:
            refused = await outcome_of(tools, "whoami", run=Run(principal="eve"))
            good = await outcome_of(tools, "whoami", run=Run(principal="ann"))

    assert isinstance(refused, Failed), refused
    assert refused.code == "hook_error"
    assert "invalid_target" in str(refused.exception)
    assert "invalid_target" not in refused.message
    assert "eve" not in [subject for subject, _ in known.behind.called]
    assert isinstance(good, Completed)


async def test_a_token_that_the_server_refuses_is_exchanged_anew_once() -> None:
    async with exchanger() as known:
        credentials = TokenExchange(known.url, client_id="gateway")
        module.subject_tokens.keep("ann", "ann", None)
        async with connect(known.behind.url, credentials=credentials).open() as tools:
            before = await outcome_of(tools, "whoami", run=Run(principal="ann"))
            known.behind.authority.end("ann")
            after = await outcome_of(tools, "whoami", run=Run(principal="ann"))

    assert isinstance(before, Completed)
    assert isinstance(after, Completed), after
    assert known.subjects() == ["ann", "ann"]


@pytest.mark.parametrize("change", ["it ends", "the caller comes with another token", "it was forgotten"])
async def test_a_token_is_exchanged_anew_when(change: str) -> None:
    async with exchanger() as known:
        known.lasts = 1 if change == "it ends" else None  # less than it is renewed before
        credentials = TokenExchange(known.url, client_id="gateway", list_as="ann")
        server, request = known.behind.url, httpx2.Request("POST", known.behind.url)
        module.subject_tokens.keep("ann", "ann", None)
        first = await credentials.sign("ann", server, request)
        assert (await credentials.sign("ann", server, request) == first) is (change != "it ends")
        if change == "it was forgotten":
            assert await credentials.forget("ann", server)
        elif change != "it ends":
            module.subject_tokens.keep("ann", "ann again", None)
        second = await credentials.sign("ann", server, request)

    assert second != first
    assert known.subjects()[-1] == ("ann again" if "another" in change else "ann")


async def test_a_token_that_has_ended_is_exchanged_no_more() -> None:
    async with exchanger() as known:
        credentials = TokenExchange(known.url, client_id="gateway")
        module.subject_tokens.keep("ann", "ann", time.time() - 1)

        assert await credentials.consent_for("ann", known.behind.url) is not None
        assert await credentials.holders(known.behind.url) == ("<gateway>",)
    assert known.asked == []


def test_tokens_are_kept_for_exchange_alone_and_no_more_of_them_than_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolcrib._subject_tokens._MOST", 2)
    kept = SubjectTokens()
    kept.keep("ann", "secret", None)
    assert kept.token_of("ann") is None

    kept.is_wanted = True
    for person in ("ann", "bob", "ann", "cem"):
        kept.keep(person, f"of {person}", None)

    assert kept.principals() == ("ann", "cem")
    assert not subject_tokens.is_wanted or subject_tokens is not kept


async def test_no_token_stands_in_a_record_a_request_or_a_text(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    async with exchanger() as known:
        known.refused = {"eves-own-token"}
        credentials = TokenExchange(known.url, client_id="gateway", client_secret="hush-hush")
        subject = module.subject_tokens
        subject.keep("eve", "eves-own-token", None)
        subject.keep("ann", "anns-own-token", None)
        async with connect(known.behind.url, credentials=credentials).open() as tools:
            outcomes = [await outcome_of(tools, "whoami", run=Run(principal=one)) for one in ("eve", "ann")]

    text = " ".join(json.dumps(one.to_dict(), default=str) for one in outcomes[:1]) + caplog.text + repr(credentials)
    secrets = ["eves-own-token", "anns-own-token", "hush-hush", *known.behind.authority.tokens]
    assert [one for one in secrets if one in text] == []


# --- in a file


def written(folder: Path, section: Any) -> Path:
    path = folder / "mcp.json"
    entry = {"url": "https://tools.example/mcp", "toolcrib": {"credentials": section}}
    path.write_text(json.dumps({"mcpServers": {"tools": entry}}))
    return path


async def test_a_file_exchanges_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY_SECRET", "hush-hush")
    async with exchanger() as known:
        section = {"token": known.url, "client_id": "gateway", "client_secret_env": "GATEWAY_SECRET", "scopes": ["use"]}
        path = written(tmp_path, {"exchange": section})
        path.write_text(path.read_text().replace("https://tools.example/mcp", known.behind.url))
        async with toolset_of_file(path).open() as tools:
            module.subject_tokens.keep("ann", "ann", None)
            outcome = await outcome_of(tools, "whoami", run=Run(principal="ann"))

    assert isinstance(outcome, Completed), outcome
    assert outcome.value == "ann"
    assert "credentials.db" not in os.listdir(tmp_path)


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        ({"client_id": "us"}, "exchange.token"),
        ({"token": "http://login.example/token", "client_id": "us"}, "https address of a token endpoint"),
        ({"token": "https://login.example/token", "client_id": ""}, "client_id"),
        ({"token": "https://login.example/token", "client_id": "us", "scope": ["a"]}, "scope"),
        ({"token": "https://login.example/token", "client_id": "us", "id_jag": {"issuer": "x"}}, "id_jag.token"),
    ],
)
def test_a_mistake_names_the_field(tmp_path: Path, section: Any, problem: str) -> None:
    with pytest.raises(TargetError) as error:
        toolset_of_file(written(tmp_path, {"exchange": section}))

    assert problem in str(error.value)


def test_a_principal_whose_token_has_ended_is_not_listed() -> None:
    tokens = SubjectTokens()
    tokens.is_wanted = True

    tokens.keep("ann", "of-ann", 1.0)
    tokens.keep("ben", "of-ben", None)

    assert tokens.principals() == ("ben",)
