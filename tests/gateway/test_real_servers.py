"""Gateway of servers that people use, from one file: one is killed, one changes, one is slow, and nothing is lost."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client

from tests.adapters.mcp_client.servers import EVERYTHING, FILESYSTEM, MEMORY
from tests.adapters.mcp_server.clients import IN_MEMORY, Way
from tests.npm.programs import node, script
from tests.sandbox.acting import descendants
from toolcrib.adapters.mcp_client import ServerStatus, server_statuses
from toolcrib.adapters.mcp_server import build_server
from toolcrib.gateway import toolset_of_file
from toolcrib.toolsets import Toolset

THINKING = "@modelcontextprotocol/server-sequential-thinking"
ROUNDS = 12  # calls of each server while the others are disturbed


class Desk:
    """A folder with a file of five servers, and what they have an effect on.

    Attributes:
        node: The program that runs the server of memory; the server cannot start while it is away.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.notes, self.repository = folder, folder / "notes", folder / "work"
        self.memory, self.node = folder / "memory.jsonl", folder / "node"
        self.notes.mkdir()
        self.repository.mkdir()
        self.node.symlink_to(node())
        for words in (["init", "-q"], ["config", "user.name", "Ann"], ["config", "user.email", "ann@example.org"]):
            subprocess.run(["git", *words], cwd=self.repository, check=True)
        self.file = folder / "mcp.json"
        git = ["-m", "mcp_server_git", "--repository", str(self.repository)]
        servers: dict[str, dict[str, Any]] = {
            "everything": {"command": node(), "args": [script(EVERYTHING)]},
            "files": {"command": node(), "args": [script(FILESYSTEM), str(self.notes)]},
            "memory": {
                "command": str(self.node),
                "args": [script(MEMORY)],
                "env": {"MEMORY_FILE_PATH": str(self.memory)},
            },
            "git": {"command": sys.executable, "args": git, "env": {"PATH": os.environ["PATH"]}},
            "time": {"command": sys.executable, "args": ["-m", "mcp_server_time", "--local-timezone", "Europe/Oslo"]},
        }
        self.file.write_text(json.dumps({"mcpServers": servers}))

    def entities(self) -> list[str]:
        """Return the names that the server of memory keeps."""
        return [json.loads(line)["name"] for line in self.memory.read_text().splitlines() if line]

    def commits(self) -> list[str]:
        """Return the messages of the commits, the first one first."""
        words = ["git", "log", "--reverse", "--format=%s"]
        return subprocess.run(words, cwd=self.repository, check=True, capture_output=True, text=True).stdout.split("\n")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@asynccontextmanager
async def gateway(desk: Desk, way: Way) -> AsyncIterator[tuple[Client, Toolset]]:
    tools = toolset_of_file(desk.file)
    async with way(build_server(tools)) as client:
        yield client, tools


async def called(client: Client, name: str, /, **arguments: Any) -> str:
    """Return the text of a result; AssertionError for an error."""
    result = await client.call_tool(name, arguments)
    assert not result.is_error, f"{name}: {result.content}"
    return "\n".join(getattr(part, "text", "") for part in result.content)


def process_of(words: str) -> int:
    """Return the process below this one whose command line has some words."""
    for pid in descendants(os.getpid()):
        if words in Path("/proc", str(pid), "cmdline").read_text().replace("\0", " "):
            return pid
    raise LookupError(words)


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 -- it is of other processes
            await asyncio.sleep(0.02)


def status_of(tools: Toolset, server: str) -> ServerStatus:
    return next(one for one in server_statuses(tools) if one.server == server)


@pytest.mark.parametrize("way", IN_MEMORY, ids=lambda way: way.title)
async def test_of_five_servers_the_others_go_on_while_one_dies_one_changes_and_one_is_slow(
    way: Way, desk: Desk
) -> None:
    progress = dict.fromkeys(("echo", "files", "git", "time"), 0)

    async def repeated(name: str, act: Callable[[int], Coroutine[Any, Any, None]]) -> None:
        for number in range(ROUNDS):
            await act(number)
            progress[name] += 1

    async with gateway(desk, way) as (client, tools):

        async def echo(number: int) -> None:
            assert await called(client, "everything_echo", message=f"n{number}") == f"Echo: n{number}"

        async def write(number: int) -> None:
            await called(client, "files_write_file", path=str(desk.notes / f"{number}.txt"), content=f"note {number}")

        async def commit(number: int) -> None:
            (desk.repository / "log").write_text(str(number))
            await called(client, "git_git_add", repo_path=str(desk.repository), files=["log"])
            await called(client, "git_git_commit", repo_path=str(desk.repository), message=f"step-{number}")

        async def convert(number: int) -> None:
            told = await called(
                client, "time_convert_time", source_timezone="UTC", time="12:30", target_timezone="Asia/Tokyo"
            )
            assert "21:30" in told

        await remember(client, "first")
        slow, victim = process_of("mcp_server_git"), process_of(script(MEMORY))
        os.kill(slow, signal.SIGSTOP)
        acts = {"echo": echo, "files": write, "git": commit, "time": convert}
        work = asyncio.gather(*(repeated(*each) for each in acts.items()))
        try:
            desk.node.unlink()
            os.kill(victim, signal.SIGKILL)
            await until(lambda: status_of(tools, "memory").state == "down")
            refused = await client.call_tool("memory_create_entities", entities_named("lost"))
            down = status_of(tools, "memory")
            await called(client, "everything_gzip-file-as-resource", name="new.gz", data="data:text/plain,hello")
            await until(lambda: progress["echo"] == progress["files"] == progress["time"] == ROUNDS)
            during = dict(progress)
        finally:
            os.kill(slow, signal.SIGCONT)
        await work
        desk.node.symlink_to(node())
        await until(lambda: status_of(tools, "memory").state == "up")
        await remember(client, "last")
        names = {tool.name for tool in (await client.list_tools()).tools}
        states = {one.server: one.state for one in server_statuses(tools)}

    assert refused.is_error
    assert "`memory`" in str(refused.content)
    assert down.reason
    assert during == {"echo": ROUNDS, "files": ROUNDS, "time": ROUNDS, "git": 0}
    assert progress["git"] == ROUNDS
    assert "everything_read_new_gz" in names
    assert set(states.values()) == {"up"}
    assert desk.entities() == ["first", "last"]
    assert desk.commits()[:-1] == [f"step-{number}" for number in range(ROUNDS)]
    assert {file.name: file.read_text() for file in desk.notes.iterdir()} == {
        f"{number}.txt": f"note {number}" for number in range(ROUNDS)
    }


def entities_named(name: str) -> dict[str, Any]:
    return {"entities": [{"name": name, "entityType": "thing", "observations": []}]}


async def remember(client: Client, name: str) -> None:
    await called(client, "memory_create_entities", **entities_named(name))


# --- two more


class _Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(404 if self.path == "/robots.txt" else 200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<html><body><article><p>The ferry leaves at nine.</p></article></body></html>")

    def log_message(self, *words: Any) -> None:
        pass


@pytest.fixture
def page() -> Iterator[str]:
    """The address of a page on this machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Page) as server:
        thread = threading.Thread(target=partial(server.serve_forever, 0.05))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


async def test_a_page_is_fetched_and_thoughts_are_kept_in_order(tmp_path: Path, page: str) -> None:
    place = tmp_path / "mcp.json"
    servers = {
        "web": {"command": sys.executable, "args": ["-m", "mcp_server_fetch", "--allow-private-ips"]},
        "mind": {"command": node(), "args": [script(THINKING)], "toolcrib": {"prefix": ""}},
    }
    place.write_text(json.dumps({"mcpServers": servers}))

    async with IN_MEMORY[1](build_server(toolset_of_file(place))) as client:
        fetched = await called(client, "web_fetch", url=page)
        thought = {"thought": "one", "nextThoughtNeeded": True, "thoughtNumber": 1, "totalThoughts": 2}
        first = await client.call_tool("sequentialthinking", thought)
        second = await client.call_tool("sequentialthinking", {**thought, "thought": "two", "thoughtNumber": 2})

    assert "The ferry leaves at nine." in fetched
    assert first.structured_content is not None
    assert second.structured_content is not None
    assert [one.structured_content["thoughtHistoryLength"] for one in (first, second)] == [1, 2]
