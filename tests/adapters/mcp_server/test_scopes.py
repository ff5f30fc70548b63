"""Scopes of tools over MCP: whatever way a client tries, a tool without its scopes does not run."""

from __future__ import annotations

import sys
from typing import Any

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from tests.adapters.mcp_server.clients import IN_MEMORY, Way, every_generation, text_of
from tests.adapters.mcp_server.test_tasks import begin, of_tasks, result, send
from toolcrib.adapters.mcp_server import ServerOptions, acting_as, build_server
from toolcrib.pipeline import Access
from toolcrib.tools import Tool, ez_tool, prompt, resource
from toolcrib.toolsets import Toolset

READER = Access(frozenset({"read"}), {"sub": "ann"})
WRITER = Access(frozenset({"read", "write"}), {"sub": "ann"})
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="programs run in the sandbox of Linux")


def tools(written: list[str]) -> Toolset:
    @ez_tool
    async def write(text: str) -> str:
        """Write a text down."""
        written.append(text)
        return "written"

    @ez_tool
    async def read() -> str:
        """Read what was written."""
        return " ".join(written)

    return Toolset([read, write]).with_scopes({"*": "read", "write": "write"})


@every_generation
async def test_a_tool_without_its_scopes_is_listed_and_does_not_run(way: Way) -> None:
    written: list[str] = []
    server = build_server(tools(written))
    with acting_as("ann", READER):
        async with way(server) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            refused = await client.call_tool("write", {"text": "a"})
            read = await client.call_tool("read", {})

    assert names == ["read", "write"]  # else no client would know what to ask its user for
    assert refused.is_error
    assert "`write` needs the scope `write`" in text_of(refused)
    assert (written, read.is_error) == ([], False)


@every_generation
async def test_two_tokens_of_one_principal_allow_what_each_allows(way: Way) -> None:
    written: list[str] = []
    server = build_server(tools(written))
    for access in (WRITER, READER, WRITER, Access()):
        with acting_as("ann", access):
            async with way(server) as client:
                await client.call_tool("write", {"text": f"{len(access.scopes)}"})

    assert written == ["2", "2"]


@pytest.mark.processes
@LINUX
@every_generation
async def test_a_program_does_not_get_around_scopes(way: Way) -> None:
    written: list[str] = []
    server = build_server(tools(written), ServerOptions(code_mode=True))
    with acting_as("ann", READER):
        async with way(server) as client:
            refused = await client.call_tool("run_python", {"code": "print(read()); write('a')"})
    with acting_as("ann", WRITER):
        async with way(server) as client:
            done = await client.call_tool("run_python", {"code": "write('b')"})

    assert "needs the scope `write`" in text_of(refused)
    assert (written, done.is_error) == (["b"], False)


@every_generation
async def test_a_search_does_not_get_around_scopes(way: Way) -> None:
    pytest.importorskip("bm25s")
    written: list[str] = []

    def numbered(number: int) -> Tool[..., Any]:
        @ez_tool(name=f"tool_{number}", description=f"Count to {number}.")
        async def count() -> int:
            return number

        return count

    many = Toolset([*(numbered(n) for n in range(5)), tools(written)])
    with acting_as("ann", READER):
        async with way(build_server(many, ServerOptions(search=2))) as client:
            await client.call_tool("search_tools", {"query": "write a text down"})
            found = [tool.name for tool in (await client.list_tools()).tools]
            refused = await client.call_tool("write", {"text": "a"})

    assert "write" in found
    assert "needs the scope `write`" in text_of(refused)
    assert written == []


# --- whatever is no tool


@resource("notes://{name}", complete={"name": ["diary"]})
async def note(name: str) -> str:
    """A note."""
    return f"note {name}"


@resource("notes://diary")
async def diary() -> str:
    """The diary."""
    return "dear diary"


@resource("notes://secret/{+path}", complete={"path": ["plans"]})
async def secret(path: str) -> str:
    """A secret."""
    return f"secret {path}"


@prompt(complete={"who": ["ann"]})
def letter(who: str) -> str:
    """Write a letter."""
    return f"Dear {who}"


NOTES = Toolset([note, diary, secret, letter]).with_scopes({"diary": "diary", "secret": "secret", "letter": "post"})
ALL = Access(frozenset({"diary", "secret", "post"}))
REQUESTS: list[tuple[str, str, dict[str, Any]]] = [
    ("diary", "resources/read", {"uri": "notes://diary"}),
    ("secret", "resources/read", {"uri": "notes://secret/plans"}),
    ("post", "prompts/get", {"name": "letter", "arguments": {"who": "Ben"}}),
    (
        "post",
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "letter"}, "argument": {"name": "who", "value": ""}},
    ),
    (
        "secret",
        "completion/complete",
        {"ref": {"type": "ref/resource", "uri": "notes://secret/{+path}"}, "argument": {"name": "path", "value": ""}},
    ),
]
SUBSCRIBE = ("diary", "resources/subscribe", {"uri": "notes://diary"})
LISTEN = (
    "diary",
    "subscriptions/listen",
    {"notifications": {"resourceSubscriptions": ["notes://other", "notes://diary"]}},
)


@every_generation
async def test_nothing_that_is_no_tool_gets_around_scopes(way: Way) -> None:
    server = build_server(NOTES)
    wanted = [*REQUESTS, LISTEN if way.is_new else SUBSCRIBE]
    with acting_as("ann", Access()):
        async with way(server) as client:
            listed = (await client.list_resources()).resources
            free = await client.read_resource("notes://other")
            refused: list[types.ErrorData] = []
            for _, method, params in wanted:
                with pytest.raises(MCPError) as caught:
                    await send(client, method, **params)
                refused.append(caught.value.error)
    with acting_as("ann", ALL):
        async with way(server) as client:
            done = [await send(client, method, **params) for _, method, params in REQUESTS]

    assert [one.uri for one in listed] == ["notes://diary"]
    assert isinstance(free.contents[0], types.TextResourceContents)
    assert [one.data for one in refused] == [{"reason": "insufficient_scope", "scopes": [one[0]]} for one in wanted]
    assert "`diary` needs the scope `diary`" in refused[0].message
    assert [one["completion"]["values"] for one in done if "completion" in one] == [["ann"], ["plans"]]


async def test_a_resource_that_a_template_without_scopes_names_too_keeps_its_own() -> None:
    @resource("files://{+path}")
    async def file(path: str) -> str:
        """A file."""
        return path

    @resource("files://private/{name}")
    async def private(name: str) -> str:
        """A private file."""
        return name

    server = build_server(Toolset([file, private]).with_scopes({"private": "private"}))
    with acting_as("ann", Access()):
        async with IN_MEMORY[1](server) as client:
            await client.read_resource("files://public/a")
            with pytest.raises(MCPError, match="`private` needs the scope `private`"):
                await client.read_resource("files://private/a")


@every_generation
async def test_a_task_is_not_read_or_changed_without_the_scopes_of_its_tool(way: Way) -> None:
    @ez_tool(tags=["task"])
    async def write() -> str:
        """Write."""
        return "written"

    server = build_server(Toolset([write]).with_scopes({"write": "write"}))
    methods = ["tasks/get", "tasks/cancel", "tasks/update" if way.is_new else "tasks/result"]
    with acting_as("ann", WRITER):
        async with of_tasks(way, server) as writer:
            task = await begin(writer, way, "write")
            with acting_as("ann", READER):
                async with of_tasks(way, server) as reader:
                    for method in methods:
                        with pytest.raises(MCPError, match="`write` needs the scope `write`"):
                            await send(reader, method, taskId=task["taskId"], inputResponses={})
            text = await result(writer, way, task)

    assert text == "written"
