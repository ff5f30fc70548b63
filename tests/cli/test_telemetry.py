"""`--telemetry`: the trace of a client's call goes on in the process of the server, and a worker traces its work."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from tests.adapters.mcp_server.http import COMMAND, command_over_http

TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SAMPLE = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

from toolcrib import tool

provider, file = TracerProvider(), open("spans", "a")
writer = ConsoleSpanExporter(out=file, formatter=lambda span: span.to_json(None) + chr(10))
provider.add_span_processor(SimpleSpanProcessor(writer))
trace.set_tracer_provider(provider)


@tool
async def look_up(city: str) -> str:
    with trace.get_tracer("shop").start_as_current_span("SELECT cities"):
        return f"sunny in {city}"
"""


@pytest.fixture
def shop(tmp_path: Path) -> str:
    """The path of a file with a tool, and a provider that writes spans to a file."""
    path = tmp_path / "shop.py"
    path.write_text(SAMPLE, "utf-8")
    return str(path)


def exported(file: Path) -> list[Any]:
    """Return the three spans of the trace, in the order they ended; the last one ends when its client is answered."""
    end = time.monotonic() + 60
    while file.read_text("utf-8").count(f'"0x{TRACE}"') < 3 and time.monotonic() < end:
        time.sleep(0.02)
    spans = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    return [span for span in spans if span["context"]["trace_id"] == f"0x{TRACE}"]


@pytest.mark.parametrize(("transport", "mode"), [("stdio", "auto"), ("http", "legacy")])
async def test_a_trace_goes_on_in_the_server(tmp_path: Path, shop: str, transport: str, mode: Any) -> None:
    async with AsyncExitStack() as stack:
        if transport == "stdio":
            log = stack.enter_context((tmp_path / "log").open("w"))
            command, *arguments = [*COMMAND, "serve", shop, "--telemetry"]
            place = stdio_client(StdioServerParameters(command=command, args=arguments, cwd=tmp_path), errlog=log)
        else:
            place = streamable_http_client(stack.enter_context(command_over_http(tmp_path, shop, "--telemetry")))
        client = await stack.enter_async_context(Client(place, mode=mode))
        await client.call_tool("look_up", {"city": "Oslo"}, meta={"traceparent": f"00-{TRACE}-{CALLER}-01"})
        query, call, request = await asyncio.to_thread(exported, tmp_path / "spans")

    assert [query["name"], call["name"]] == ["SELECT cities", "execute_tool look_up"]
    assert (request["name"], request["parent_id"]) == ("tools/call look_up", f"0x{CALLER}")
    assert query["parent_id"] == call["context"]["span_id"]
    assert call["parent_id"] == request["context"]["span_id"]
    assert ("mcp.session.id" in request["attributes"]) == (mode == "legacy")


def test_a_worker_traces_its_work(tmp_path: Path, shop: str) -> None:
    enqueue = ["enqueue", shop, "look_up", '{"city": "Oslo"}', "--database", "work.db"]
    subprocess.run([*COMMAND, *enqueue], cwd=tmp_path, check=True, capture_output=True)
    arguments = ["worker", shop, "--telemetry", "--database", "work.db"]
    with subprocess.Popen([*COMMAND, *arguments], cwd=tmp_path, stderr=subprocess.PIPE, text=True) as worker:
        assert worker.stderr is not None
        began = worker.stderr.readline()
        while "execute_tool look_up" not in (tmp_path / "spans").read_text("utf-8"):
            assert worker.poll() is None
        worker.send_signal(signal.SIGTERM)
        worker.stderr.read()

    spans = [json.loads(line) for line in (tmp_path / "spans").read_text("utf-8").splitlines()]
    by_name = {span["name"]: span for span in spans}
    assert " takes work from shop in " in began
    assert by_name["SELECT cities"]["parent_id"] == by_name["execute_tool look_up"]["context"]["span_id"]


def test_a_process_that_exports_nothing_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text("from toolcrib import tool\n\n@tool\nasync def ping() -> str: ...\n", "utf-8")
    command = [*COMMAND, "serve", "plain.py", "--telemetry", "--record", "gone/calls.jsonl"]

    # in a process of its own: a process has one provider, which cannot be taken back, and another test may have set it
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert "--telemetry: this process exports nothing; run the command under opentelemetry-instrument" in done.stderr
