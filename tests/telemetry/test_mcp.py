"""One trace from the client's tool over MCP to what the server's tool does."""

from collections.abc import Iterator
from typing import Any

import pytest
from mcp import Client
from opentelemetry import trace

from tests.telemetry.conftest import Watch
from toolcrib.adapters.mcp_client import connect
from toolcrib.adapters.mcp_server import ServerOptions, build_server
from toolcrib.calls import Completed, ToolCall
from toolcrib.pipeline import Pipeline
from toolcrib.tools import ez_tool


class Switched(trace.TracerProvider):
    """The process's provider, of which there can be one only: it hands on to that of the test that runs."""

    to: trace.TracerProvider = trace.NoOpTracerProvider()

    def get_tracer(self, *args: Any, **kwargs: Any) -> trace.Tracer:
        outer = self

        class Handing(trace.Tracer):
            def start_span(self, *a: Any, **k: Any) -> trace.Span:
                return outer.to.get_tracer(*args, **kwargs).start_span(*a, **k)

            def start_as_current_span(self, *a: Any, **k: Any) -> Any:
                return outer.to.get_tracer(*args, **kwargs).start_as_current_span(*a, **k)

        return Handing()


@pytest.fixture(scope="module")
def switched() -> Switched:
    made = Switched()
    trace.set_tracer_provider(made)
    return made


@pytest.fixture
def everywhere(switched: Switched, watch: Watch) -> Iterator[Watch]:
    switched.to = watch.tracers
    yield watch
    switched.to = trace.NoOpTracerProvider()


@pytest.mark.parametrize("generation", ["legacy", "auto"])
async def test_a_call_over_mcp_is_one_trace(everywhere: Watch, generation: Any) -> None:
    @ez_tool
    async def look_up(city: str) -> str:
        with trace.get_tracer("tool").start_as_current_span("query"):
            return f"sunny in {city}"

    server = build_server([look_up], ServerOptions(sinks=(everywhere.sink(),)))
    async with connect(Client(server, mode=generation)).open() as tools:
        outcome = await Pipeline(tools, sinks=[everywhere.sink()]).run(ToolCall("look_up", {"city": "Oslo"}))

    assert isinstance(outcome, Completed)
    calls = [span for span in everywhere.spans if span.name == "execute_tool look_up"]
    theirs, ours = calls  # what is inside ends first
    assert everywhere.place(theirs).trace_id == everywhere.place(ours).trace_id
    by_id = {everywhere.place(span).span_id: span for span in everywhere.spans}
    way = [everywhere.span("query")]
    while way[-1].parent is not None:
        way.append(by_id[way[-1].parent.span_id])
    sent = ["MCP send tools/call look_up"] if generation == "legacy" else []  # in memory, the newer one sends nothing
    names = ["query", "execute_tool look_up", "tools/call look_up", *sent, "execute_tool look_up"]
    assert [span.name for span in way] == names
    assert (way[2].attributes or {})["mcp.method.name"] == "tools/call"
    assert (way[2].attributes or {})["gen_ai.tool.name"] == "look_up"
    assert "mcp.protocol.version" in (way[2].attributes or {})
