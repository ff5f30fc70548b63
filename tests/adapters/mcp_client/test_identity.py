"""Identity of a server: an approval is for the tool of one server, whatever name that has, and for what it says."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.server.mcpserver import MCPServer

from tests.adapters.mcp_client import small_server as module
from tests.adapters.mcp_client.servers import served
from tests.adapters.mcp_client.small_server import small_server
from tests.networks import free_port
from toolcrib.adapters.mcp_client import connect
from toolcrib.adapters.mcp_client._options import target_identity
from toolcrib.approvals import SqliteApprovalStore
from toolcrib.calls import Completed, Failed, Outcome, Suspended, ToolCall
from toolcrib.pipeline import Pipeline, Run
from toolcrib.toolsets import Toolset

COMMAND = (sys.executable, module.__file__)
ADD = ToolCall("add", {"a": 1, "b": 2}, "c1")
ELSEWHERE = "the server or object behind the tool is another one"


def started(*words: str, **options: Any) -> Toolset:
    return connect([*COMMAND, "notes", *words], approval=True, **options)


def commanded(**options: Any) -> Toolset:
    parameters = StdioServerParameters(command=COMMAND[0], args=[COMMAND[1], "notes"], **options)
    return connect(Client(parameters), approval=True)


async def outcome(tools: Toolset, call: ToolCall | Suspended = ADD, run: Run | None = None, **options: Any) -> Outcome:
    async with tools.open() as opened:
        return await Pipeline(opened).run(call, run, **options)


OTHERS: dict[str, tuple[Toolset, Toolset]] = {
    "argument": (started("--database", "staging"), started("--database", "production")),
    "environment": (started(env={"DATABASE": "staging"}), started(env={"DATABASE": "production"})),
    "folder": (started(cwd="/"), started(cwd=Path(__file__).parent)),
    "command under one name": (started("staging", name="db"), started("production", name="db")),
    "object under the name": (started(name="small"), connect(small_server(), name="small", approval=True)),
    "client": (commanded(env={"DATABASE": "staging"}), commanded(env={"DATABASE": "production"})),
    "object": (connect(small_server("one"), approval=True), connect(small_server("two"), approval=True)),
    "what the host says": (
        connect(small_server(), approval=True).with_identity("staging").prefixed(""),
        connect(small_server(), approval=True).with_identity("production"),
    ),
    "name": (started(name="one"), started(name="two")),
}


@pytest.mark.parametrize(("other", "kind"), [*((other, "grant") for other in OTHERS), ("argument", "always")])
async def test_an_approval_is_for_one_server(tmp_path: Path, other: str, kind: str) -> None:
    first, second = OTHERS[other]
    run = Run(approvals=SqliteApprovalStore(tmp_path / "approvals.db"))
    asked = await outcome(first, run=run)
    assert isinstance(asked, Suspended)
    await run.approvals.answer(getattr(asked.request, kind)("ann"))  # type: ignore[union-attr]

    elsewhere = await outcome(second, asked, run)

    assert isinstance(elsewhere, Suspended)
    assert elsewhere.request.id != asked.request.id


@pytest.mark.parametrize("kind", ["grant", "always"])
async def test_it_holds_for_the_same_server_when_it_is_started_again(tmp_path: Path, kind: str) -> None:
    run = Run(approvals=SqliteApprovalStore(tmp_path / "approvals.db"))
    asked = await outcome(started("staging", env={"A": "1", "B": "2"}), run=run)
    assert isinstance(asked, Suspended)
    await run.approvals.answer(getattr(asked.request, kind)("ann"))  # type: ignore[union-attr]

    again = await outcome(started("staging", env={"B": "2", "A": "1"}), asked, run)

    assert isinstance(again, Completed)


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        *(
            (name, False)
            for name in ("TOKEN", "GITHUB_TOKEN", "api_key", "APIKEY", "KEYS_OLD", "DB_PASSWORD", "SECRET1")
        ),
        *((name, True) for name in ("DATABASE_URL", "KEYSPACE", "MONKEY", "TOKENIZER", "REGION")),
    ],
)
def test_the_value_of_a_variable_counts_unless_its_name_says_that_it_is_secret(name: str, counts: bool) -> None:
    old, new, absent = (
        target_identity(StdioServerParameters(command="run", env=env)) for env in ({name: "a"}, {name: "b"}, {})
    )

    assert (old != new, old != absent) == (counts, True)


@pytest.mark.parametrize("kind", ["grant", "always"])
async def test_an_approval_holds_on_where_a_token_is_renewed(tmp_path: Path, kind: str) -> None:
    run = Run(approvals=SqliteApprovalStore(tmp_path / "approvals.db"))
    asked = await outcome(started(env={"API_TOKEN": "old"}), run=run)
    assert isinstance(asked, Suspended)
    await run.approvals.answer(getattr(asked.request, kind)("ann"))  # type: ignore[union-attr]

    again = await outcome(started(env={"API_TOKEN": "new"}), asked, run)

    assert isinstance(again, Completed)


async def test_the_query_of_a_url_counts_and_headers_do_not() -> None:
    port, asking = free_port(), Run()
    url = f"http://127.0.0.1:{port}/mcp"
    async with served(small_server(), port):
        asked = await outcome(connect(f"{url}?database=staging", approval=True, headers={"x-key": "old"}), run=asking)
        assert isinstance(asked, Suspended)
        grant = asked.request.grant("ann")
        other = await outcome(connect(f"{url}?database=production", approval=True), asked, grant=grant)
        same = await outcome(
            connect(f"{url}?database=staging", approval=True, headers={"x-key": "new"}), asked, grant=grant
        )

    assert isinstance(other, Suspended)
    assert isinstance(same, Completed)


async def test_a_grant_for_another_server_s_call_says_so() -> None:
    first, second = OTHERS["argument"]
    asked = await outcome(first)
    assert isinstance(asked, Suspended)

    refused = await outcome(second, ADD, grant=asked.request.grant("ann"))

    assert isinstance(refused, Failed)
    assert ELSEWHERE in refused.message


async def test_what_is_secret_in_a_source_is_not_in_the_request() -> None:
    asked = await outcome(started("--password", "sesame", env={"TOKEN": "hunter2"}))

    assert isinstance(asked, Suspended)
    said = json.dumps(asked.to_dict()) + asked.request.text() + repr(asked.request)
    assert "sesame" not in said
    assert "hunter2" not in said


def describing(description: str, parameter: str = "Which.") -> Toolset:
    server = MCPServer("drafts", log_level="CRITICAL")

    def delete(id: str) -> str:
        return "deleted"

    server.add_tool(delete, description=description)
    schema = server._tool_manager.get_tool("delete").parameters  # type: ignore[union-attr]
    schema["properties"]["id"]["description"] = parameter
    return connect(server, approval=True)


@pytest.mark.parametrize("now", [("Delete an account.",), ("Delete.", "The account.")], ids=["tool", "parameter"])
async def test_an_approval_is_for_what_the_server_says_of_the_tool(now: tuple[str, ...]) -> None:
    asked = await outcome(describing("Delete."), ToolCall("delete", {"id": "1"}))
    assert isinstance(asked, Suspended)

    again = await outcome(describing(*now), asked, grant=asked.request.grant("ann"))

    assert isinstance(again, Suspended)
    assert again.request.replaces == asked.request.id
    assert "has changed since this was asked before" in again.request.reason
