"""Whatever comes in, the server answers or ignores it, and lives on."""

import asyncio
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp.server.stdio import stdio_server

from tests.adapters.mcp_server.corpus import HOSTILE, hostile_messages
from tests.effort import examples
from toolcrib.adapters.mcp_server import McpServer, ServerOptions, build_server
from toolcrib.tools import ez_tool


@ez_tool
async def echo(text: str = "") -> str:
    return text


def serving(**options: Any) -> McpServer:
    return build_server([echo], ServerOptions(search=1, **options))


async def answered(server: McpServer, lines: list[bytes]) -> dict[str, Any]:
    """Send lines to a server over stdio, and after them a request; return what that is answered."""
    (to_server, from_client), (to_client, from_server) = os.pipe(), os.pipe()
    server_in = os.fdopen(to_server, encoding="utf-8", errors="replace")
    server_out = os.fdopen(from_server, "w", encoding="utf-8")

    async def serve() -> None:
        with server_in, server_out:
            async with stdio_server(anyio.wrap_file(server_in), anyio.wrap_file(server_out)) as (read, write):
                await server.run(read, write, server.create_initialization_options())

    last = b'{"jsonrpc": "2.0", "id": "the last", "method": "ping"}'
    running = asyncio.create_task(serve())

    def talk() -> dict[str, Any]:
        with os.fdopen(to_client, "rb") as heard, os.fdopen(from_client, "wb") as asks:
            asks.write(b"".join(line.replace(b"\n", b" ") + b"\n" for line in [*lines, last]))
            asks.flush()
            return next(found for found in map(json.loads, heard) if found.get("id") == "the last")

    try:
        return await asyncio.to_thread(talk)
    finally:
        await running


@pytest.mark.parametrize("line", HOSTILE, ids=lambda line: line[:40].decode("ascii", "replace"))
async def test_a_hostile_line_is_survived(line: bytes) -> None:
    reply = await answered(serving(), [line])

    assert reply.keys() & {"result", "error"}


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(hostile_messages(), max_size=6))
def test_any_lines_are_survived(lines: list[bytes]) -> None:
    reply = asyncio.run(answered(serving(), lines))

    assert reply.keys() & {"result", "error"}


def test_a_process_keeps_its_stdout_for_the_protocol_and_ends_with_its_client(tmp_path: Path) -> None:
    script = tmp_path / "tools.py"
    script.write_text(
        "import os, subprocess, sys\n"
        "from toolcrib.adapters.mcp_server import serve\n"
        "from toolcrib.tools import ez_tool\n"
        "@ez_tool\n"
        "async def noisy() -> str:\n"
        "    print('printed'); sys.stdout.write('no end of line'); os.write(1, b'from below')\n"
        "    subprocess.run(['echo', 'from a child'])\n"
        "    return 'done'\n"
        "serve([noisy])\n"
    )
    lines = [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}}},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "noisy", "arguments": {}}},
    ]
    lines[0]["params"]["clientInfo"] = {"name": "test", "version": "1"}  # type: ignore[index]
    asked = "".join(json.dumps({"jsonrpc": "2.0", **line}) + "\n" for line in lines)

    with subprocess.Popen(
        [sys.executable, str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(asked)
        process.stdin.flush()
        replies = [json.loads(process.stdout.readline()) for _ in range(2)]
        rest, errors = process.communicate()

    assert [reply["id"] for reply in replies] == [1, 2]
    assert replies[1]["result"]["content"][0]["text"] == "done"
    assert (rest, process.returncode) == ("", 0)
    assert "printed" in errors
    assert "from a child" in errors
    assert (tmp_path / "toolcrib.db").exists()


def test_a_process_ends_in_order_when_nobody_reads_its_answers(tmp_path: Path) -> None:
    script = tmp_path / "tools.py"
    script.write_text("from toolcrib.adapters.mcp_server import serve\nserve([])\n")

    with subprocess.Popen(
        [sys.executable, str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        _, errors = process.communicate(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')

    # From 3.13 on, Python itself says of the SDK's buffer that its last line could not be written.
    ignored = rb"Exception ignored (in|while finalizing file):? <_io.BufferedWriter name=\d+>:?\n"
    assert re.fullmatch(rb"(%sBrokenPipeError: [^\n]*\n)?" % ignored, errors)
    assert process.returncode == 0
