"""Several endpoints of one file: each with servers, tools and groups of its own, on one port and with one record."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client import Client
from mcp.client.extension import advertise
from mcp.shared.exceptions import MCPError

from tests.adapters.mcp_client.servers import outcome_of
from tests.adapters.mcp_server.clients import NEW, booking, request_of, send
from tests.adapters.mcp_server.http import COMMAND, command_over_http
from tests.adapters.mcp_server.test_tasks import after_work
from tests.gateway.test_options import written
from tests.gateway.test_servers import ENVIRONMENT, small
from toolcrib.adapters.mcp_client import connect
from toolcrib.adapters.mcp_server import AuthorizationServer, HttpEndpoint, HttpOptions, ServerOptions, serve_endpoints
from toolcrib.approvals import SqliteApprovalStore
from toolcrib.calls import Suspended
from toolcrib.errors import TargetError
from toolcrib.gateway import read_gateway, toolset_of_file
from toolcrib.pipeline import Run
from toolcrib.tools import ez_tool

RULE = {"rules": [{"name": "books", "tools": ["books_add"], "of": "finance"}], "groups": {"finance": ["bob"]}}
ENDPOINTS = {
    "/finance/mcp": {"servers": ["books"], "name": "finance", "approvers": RULE},
    "/support/mcp": {"servers": ["desk"], "instructions": "Be kind."},
}


def two(tmp_path: Path, endpoints: Any = ENDPOINTS, **section: Any) -> Path:
    return written(tmp_path, {"name": "all", "endpoints": endpoints, **section}, books=small(), desk=small())


async def test_an_endpoint_has_its_servers_and_its_options_in_place_of_those_of_the_file(tmp_path: Path) -> None:
    path = two(tmp_path)
    finance, support = (read_gateway(path, ENVIRONMENT, one).options for one in ENDPOINTS)

    async with (
        toolset_of_file(path, ENVIRONMENT, "/finance/mcp").open() as books,
        toolset_of_file(path, ENVIRONMENT, "/support/mcp").open() as desk,
    ):
        asked = await outcome_of(books, "books_add", run=Run(principal="ada"), a=1, b=1)
        done = await outcome_of(desk, "desk_add", run=Run(principal="ada"), a=1, b=1)
        names = [name.partition("_")[0] for tools in (books, desk) for name in tools.names()]

    assert isinstance(asked, Suspended)
    assert done.kind == "completed"
    assert list(dict.fromkeys(names)) == ["books", "desk"]
    assert (finance.name, support.name, support.instructions) == ("finance", "all", "Be kind.")
    assert (finance.http.path, support.http.path) == ("/finance/mcp", "/support/mcp")
    assert read_gateway(path, ENVIRONMENT).endpoints == tuple(ENDPOINTS)


def test_a_file_with_endpoints_gives_no_tools_until_one_is_named(tmp_path: Path) -> None:
    path = two(tmp_path)

    with pytest.raises(
        TargetError, match=r"it has the endpoints /finance/mcp, /support/mcp: name one, as in mcp.json#/f"
    ):
        toolset_of_file(path, ENVIRONMENT)
    with pytest.raises(TargetError, match=r"no endpoint `/finance`. Did you mean `/finance/mcp`"):
        toolset_of_file(path, ENVIRONMENT, "/finance")


@pytest.mark.parametrize(
    ("endpoints", "problem"),
    [
        ({"finance": {"servers": ["books"]}}, 'finance`: write it as "/finance/mcp"'),
        ({"/f": ["books"]}, 'f`: write it as "/finance/mcp"'),
        ({"/f": {"servers": []}}, "endpoints./f.servers`: list should have at least 1 item"),
        ({"/f": {}}, "endpoints./f.servers`: field required"),
        ({"/f": {"servers": ["boks"]}}, "there is no server `boks`. Did you mean `books`"),
        ({"/f": {"servers": ["books"], "group": {}}}, "an endpoint has no such option. Did you mean `groups`"),
        ({"/f": {"servers": ["books"], "approvals": {}}}, "an endpoint has no such option"),
    ],
)
def test_an_endpoint_that_is_wrong_is_an_error(tmp_path: Path, endpoints: Any, problem: str) -> None:
    with pytest.raises(TargetError, match=problem):
        toolset_of_file(two(tmp_path, endpoints), ENVIRONMENT, "/f")


def test_behind_a_proxy_each_endpoint_says_its_own_url(tmp_path: Path) -> None:
    url = "https://tools.example.org/f"
    path = two(tmp_path, {"/f": {"servers": ["books"], "public_url": url}})

    assert read_gateway(path, ENVIRONMENT, "/f").options.http.public_url == url
    with pytest.raises(TargetError, match="give each its own `public_url`"):
        toolset_of_file(two(tmp_path, http={"public_url": url}), ENVIRONMENT, "/finance/mcp")


# --- over HTTP


@ez_tool
async def pay() -> str:
    """Pay."""
    return "paid"


@ez_tool
async def answer() -> str:
    """Answer."""
    return "answered"


async def test_each_path_has_its_own_tools_and_its_own_callers() -> None:
    tokens = [{"ann": "a-token-of-finance-0123"}, {"bob": "a-token-of-support-0123"}]
    endpoints = [
        HttpEndpoint([tool], http=HttpOptions(port=0, path=path, tokens=known, grace_seconds=0.2))
        for tool, path, known in zip((pay, answer), ENDPOINTS, tokens, strict=True)
    ]
    urls = asyncio.Queue[str]()
    serving = asyncio.create_task(serve_endpoints(endpoints, started=urls.put_nowait))
    try:
        finance, support = [await urls.get(), await urls.get()]
        found: list[list[str]] = []
        for url, known in zip((finance, support), tokens, strict=True):
            bearer = {"authorization": f"Bearer {next(iter(known.values()))}"}
            async with connect(url, headers=bearer).open() as tools:
                found.append([*tools.names()])
        base = finance.removesuffix("/finance/mcp")
        async with httpx2.AsyncClient() as client:
            other = {"authorization": f"Bearer {tokens[1]['bob']}"}
            crossed = (await client.post(finance, json={}, headers=other)).status_code
            nowhere = (await client.post(f"{base}/mcp", json={}, headers=other)).status_code
            health = [(await client.get(f"{base}/{name}")).status_code for name in ("healthz", "readyz")]
    finally:
        serving.cancel()
        await asyncio.wait([serving])

    assert found == [["pay"], ["answer"]]
    assert (crossed, nowhere, health) == (401, 404, [200, 200])


async def test_a_task_of_one_endpoint_is_found_and_cancelled_at_no_other(tmp_path: Path) -> None:
    done: list[str] = []
    store = SqliteApprovalStore(tmp_path / "approvals.db")
    options = ServerOptions(approvals=store)
    endpoints = [
        HttpEndpoint([tool], options, HttpOptions(port=0, path=path, grace_seconds=0.2))
        for tool, path in zip((booking(done), answer), ENDPOINTS, strict=True)
    ]
    urls = asyncio.Queue[str]()
    serving = asyncio.create_task(serve_endpoints(endpoints, started=urls.put_nowait))
    client: dict[str, Any] = {"mode": NEW, "extensions": [advertise("io.modelcontextprotocol/tasks")]}
    try:
        async with (
            Client(await urls.get(), **client) as finance,
            Client(await urls.get(), **client) as support,
        ):
            task = await send(finance, "tools/call", name="book", arguments={"place": "Oslo"})
            while not (asked := await store.list()):  # noqa: ASYNC110 -- the server puts it there
                await asyncio.sleep(0.05)
            for method in ("tasks/get", "tasks/cancel"):
                with pytest.raises(MCPError, match="there is no such task"):
                    await send(support, method, taskId=task["taskId"])
            await store.answer(asked[0].request.grant("ann"))
            end = await after_work(finance, task)
    finally:
        serving.cancel()
        await asyncio.wait([serving])

    assert (end["status"], done) == ("completed", ["Oslo"])


async def test_a_suspended_call_of_one_endpoint_goes_on_at_no_other_that_has_the_tool(tmp_path: Path) -> None:
    done: list[str] = []
    store = SqliteApprovalStore(tmp_path / "approvals.db")
    endpoints = [
        HttpEndpoint([booking(done)], ServerOptions(approvals=store), HttpOptions(port=0, path=path, grace_seconds=0.2))
        for path in ENDPOINTS
    ]
    urls = asyncio.Queue[str]()
    serving = asyncio.create_task(serve_endpoints(endpoints, started=urls.put_nowait))
    try:
        async with Client(await urls.get()) as finance, Client(await urls.get()) as support:
            asked = request_of(await finance.call_tool("book", {"place": "Oslo"}))
            named: Any = {"meta": {"toolcrib/request": asked}}
            await store.answer((await store.list())[0].request.grant("ann"))
            with pytest.raises(MCPError, match="no call of `book` waits for the request"):
                await support.call_tool("book", {"place": "Oslo"}, **named)
            await finance.call_tool("book", {"place": "Oslo"}, **named)
    finally:
        serving.cancel()
        await asyncio.wait([serving])

    assert done == ["Oslo"]


async def test_each_endpoint_behind_a_proxy_has_its_metadata_where_its_clients_look() -> None:
    issuer = AuthorizationServer(issuer="https://id.example.org")
    public = [f"https://tools.example.org/{name}" for name in ("f", "s")]
    endpoints = [
        HttpEndpoint([tool], http=HttpOptions(port=0, path=path, public_url=url, authorization_server=issuer))
        for tool, path, url in zip((pay, answer), ENDPOINTS, public, strict=True)
    ]
    urls = asyncio.Queue[str]()
    serving = asyncio.create_task(serve_endpoints(endpoints, started=urls.put_nowait))
    try:
        base = (await urls.get()).removesuffix("/finance/mcp")
        async with httpx2.AsyncClient(headers={"host": "tools.example.org"}) as client:
            places = [f"{base}/.well-known/oauth-protected-resource/{name}" for name in ("f", "s")]
            found = [(await client.get(place)).json()["resource"] for place in places]
    finally:
        serving.cancel()
        await asyncio.wait([serving])

    assert found == public


async def test_two_endpoints_at_one_path_are_refused() -> None:
    with pytest.raises(ValueError, match="each endpoint has a path of its own"):
        await serve_endpoints([HttpEndpoint([pay]), HttpEndpoint([answer])])


async def test_the_command_serves_all_of_a_file_on_one_port_with_one_record(tmp_path: Path) -> None:
    path = two(tmp_path, record="calls.jsonl")

    with command_over_http(tmp_path, str(path), **ENVIRONMENT) as url:
        base = url.removesuffix("/finance/mcp")
        for place, tool in (("/support/mcp", "desk_add"), ("/finance/mcp", "books_add")):
            async with connect(f"{base}{place}").open() as tools:
                await outcome_of(tools, tool, a=1, b=1)

    records = [json.loads(line) for line in (tmp_path / "calls.jsonl").read_text().splitlines()]
    assert [one["tool"] for one in records] == ["desk_add", "books_add"]


def test_over_stdio_one_of_them_is_named(tmp_path: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "serve", str(two(tmp_path))], capture_output=True, text=True, env={**os.environ, **ENVIRONMENT}
    )

    assert done.returncode == 2
    assert "add --http, or name one of them" in " ".join(done.stderr.split())
