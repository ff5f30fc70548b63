"""`serve` in a process of its own, over both transports, and what is answered from a second terminal."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from mcp.client.client import Client
from mcp.client.extension import advertise
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from tests.adapters.mcp_server.clients import send
from tests.adapters.mcp_server.http import COMMAND, command_over_http
from tests.cli.conftest import Command
from toolcrib.approvals import SqliteApprovalStore
from toolcrib.pipeline import local_user

SECRET = "0123456789abcdef"
SAMPLE = '''
from toolcrib import tool

print("loading")


@tool(requires_approval=True)
async def buy(item: str) -> str:
    """Buy something."""
    print("buying")
    return f"bought {item}"
'''

BROKEN = """
from toolcrib import tool


@tool()
async def buy() -> str:
    raise KeyError("hunter2")
"""


@pytest.fixture
def shop(tmp_path: Path) -> str:
    """The path of a file with a tool that needs approval, and prints."""
    path = tmp_path / "shop.py"
    path.write_text(SAMPLE, "utf-8")
    return str(path)


@asynccontextmanager
async def connected(transport: str, folder: Path, target: str, mode: Any, **options: Any) -> AsyncIterator[Client]:
    """A client of `toolcrib serve`, which runs in a process of its own."""
    async with AsyncExitStack() as stack:
        if transport == "stdio":
            log = stack.enter_context((folder / "log").open("w"))
            command, *arguments = [*COMMAND, "serve", target]
            place = stdio_client(StdioServerParameters(command=command, args=arguments, cwd=folder), errlog=log)
        else:
            url = stack.enter_context(command_over_http(folder, target, TOOLCRIB_TOKENS=f"ann={SECRET}"))
            http = await stack.enter_async_context(httpx.AsyncClient(headers={"authorization": f"Bearer {SECRET}"}))
            place = streamable_http_client(url, http_client=http)
        yield await stack.enter_async_context(Client(place, mode=mode, **options))


@pytest.mark.parametrize(("transport", "mode"), [("stdio", "auto"), ("http", "legacy")])
async def test_a_call_is_approved_from_a_second_terminal(
    tmp_path: Path, shop: str, toolcrib: Command, transport: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = await SqliteApprovalStore(tmp_path / "toolcrib.db").issue_token("ben")
    monkeypatch.setenv("TOOLCRIB_APPROVER_TOKEN", token)

    async def second_terminal(*arguments: str) -> str:  # this process is another than that of the server
        done = await asyncio.to_thread(toolcrib, "approvals", *arguments)
        assert done.exit_code == 0, done.stderr
        return done.stdout

    async with connected(transport, tmp_path, shop, mode) as client:
        waiting = await client.call_tool("buy", {"item": "tea"})
        (asked,) = json.loads(await second_terminal("list", "--json"))
        await second_terminal("approve", asked["id"], "--by", "ben", "--yes")
        done = await client.call_tool("buy", {"item": "tea"})
        again = await client.call_tool("buy", {"item": "tea"})

    assert waiting.is_error
    assert "A person answers it in the console, or the approvals of toolcrib.db" in waiting.content[0].text
    assert "toolcrib approvals" not in str(waiting)  # a model with a shell would run it
    assert asked["principal"] == ("ann" if transport == "http" else asked["principal"])
    assert (done.is_error, done.content[0].text) == (False, "bought tea")
    assert again.is_error  # a yes counts once


@pytest.mark.parametrize(("transport", "mode"), [("stdio", "legacy"), ("http", "auto")])
async def test_a_task_that_waits_for_a_second_terminal_outlives_its_server(
    tmp_path: Path, shop: str, toolcrib: Command, transport: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "TOOLCRIB_APPROVER_TOKEN", await SqliteApprovalStore(tmp_path / "toolcrib.db").issue_token("ben")
    )
    is_new, call = mode == "auto", {"name": "buy", "arguments": {"item": "tea"}}
    offers: dict[str, Any] = {"extensions": [advertise("io.modelcontextprotocol/tasks")]}

    async with connected(transport, tmp_path, shop, mode, **offers) as client:
        begun = await send(client, "tools/call", **call, **({} if is_new else {"task": {}}))
        task = begun if is_new else begun["task"]
        now: dict[str, Any] = {}
        while "a person has to answer" not in now.get("statusMessage", ""):
            now = await send(client, "tasks/get", taskId=task["taskId"])
    [asked] = json.loads((await asyncio.to_thread(toolcrib, "approvals", "list", "--json")).stdout)
    approved = await asyncio.to_thread(toolcrib, "approvals", "approve", asked["id"], "--yes")
    async with connected(transport, tmp_path, shop, mode, **offers) as client:
        if is_new:
            ended: dict[str, Any] = {}
            while "result" not in ended:
                ended = await send(client, "tasks/get", taskId=task["taskId"])
            result = ended["result"]
        else:
            result = await send(client, "tasks/result", taskId=task["taskId"])

    assert (now["status"], approved.exit_code) == ("working", 0)
    assert result["content"][0]["text"] == "bought tea"


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [((), "Error: `buy` failed (reference e_"), (("--errors", "message"), "KeyError: 'hunter2'")],
)
async def test_over_http_an_error_is_masked_unless_the_host_says_so(
    tmp_path: Path, arguments: tuple[str, ...], shown: str
) -> None:
    (tmp_path / "shop.py").write_text(BROKEN, "utf-8")
    with command_over_http(tmp_path, "shop.py", *arguments) as url:
        async with Client(streamable_http_client(url)) as client:
            result = await client.call_tool("buy", {})

    assert result.content[0].text.startswith(shown)


@pytest.mark.parametrize(("arguments", "shows"), [((), True), (("--errors", "masked"), False)])
async def test_over_stdio_an_error_is_shown_unless_the_host_says_so(
    tmp_path: Path, arguments: tuple[str, ...], shows: bool
) -> None:
    (tmp_path / "shop.py").write_text(BROKEN, "utf-8")
    command, *rest = [*COMMAND, "serve", "shop.py", *arguments]
    with (tmp_path / "log").open("w") as log:
        place = stdio_client(StdioServerParameters(command=command, args=rest, cwd=tmp_path), errlog=log)
        async with Client(place) as client:
            result = await client.call_tool("buy", {})

    assert ("hunter2" in result.content[0].text) is shows


def test_stdout_is_for_the_protocol_and_ctrl_c_ends_it(tmp_path: Path, shop: str) -> None:
    start = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from toolcrib.cli import main; main()"
    )
    command = [sys.executable, "-c", start, "serve", shop, "--record", "calls.db"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=tmp_path, text=True, **pipes) as process:
        assert process.stderr is not None
        said = ""
        while "toolcrib approvals list" not in said:
            said += process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, rest = process.communicate()

    assert (process.returncode, out) == (0, "")
    assert re.search(r'loading\nserving .*shop.py over stdio.*\n\{"mcpServers": \{"shop": ', said)
    assert rest == "stopped\n"


@pytest.mark.parametrize("tokens", [(), ("--token", f"ann={SECRET}")])
def test_who_serves_over_http_without_tokens_is_told_that_all_clients_are_one(
    tmp_path: Path, shop: str, tokens: tuple[str, ...]
) -> None:
    command = [*COMMAND, "serve", shop, "--http", "--port", "0", *tokens]
    with subprocess.Popen(command, cwd=tmp_path, text=True, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        said = ""
        while "toolcrib approvals list" not in said:
            said += process.stderr.readline()
        process.terminate()

    assert (f"without tokens: every client on this machine is the one principal `{local_user()}`" in said) is not bool(
        tokens
    )


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--transport", "sse"], "'sse' is not one of 'stdio', 'http'"),
        (["--approve-by", "nobody"], "'nobody' is not one of 'store', 'elicit'"),
        (["--errors", "all"], "'all' is not one of 'message', 'masked'"),
        (["--code-mode", "--search"], "leave out --search"),
        (["--token", "ann"], "write NAME=SECRET, or NAME=@FILE"),
        (["--token", "ann=@gone"], "cannot read gone: No such file"),
        (["--token", f"ann={SECRET}", "--token", f"ann={SECRET}2"], "two tokens are given for ann"),
        (["--transport", "http", "--host", "0.0.0.0"], "Give tokens with --token NAME=SECRET"),
        (["--transport", "http", "--token", "ann=short"], "the token of ann must have at least 16 characters"),
        (["--database", "gone/a.db"], "the database gone/a.db cannot be used"),
        (["--record", "gone/calls.jsonl"], "cannot write the record to gone/calls.jsonl"),
    ],
)
def test_what_cannot_be_served_is_one_sentence(toolcrib: Command, shop: str, args: list[str], said: str) -> None:
    done = toolcrib("serve", shop, *args)

    assert done.exit_code == 2
    assert said in " ".join(re.sub("[│╭╰─╮╯]", "", done.stderr).split())


def test_a_token_is_read_from_a_file(tmp_path: Path, shop: str) -> None:
    (tmp_path / "token").write_text(f"{SECRET}\n", "utf-8")

    with command_over_http(tmp_path, shop, "--token", "ann=@token") as url:
        statuses = [
            httpx.post(url, json={}, headers={"authorization": f"Bearer {t}"}).status_code for t in (SECRET, "x")
        ]

    assert statuses == [400, 401]
