"""One validated call with OpenTelemetry: left out, switched on with nobody listening, and with spans kept in memory."""

# ruff: noqa: PLC0415 -- a contender's process imports what that contender needs, and nothing of the others

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks._measure import Contender, Measure, Metric, Sample, Target
from benchmarks._timing import async_sample
from benchmarks._tools import get_weather
from benchmarks.calls import ANSWER, COUNT, RAW


def _calls(*sinks: Any, between: Callable[[], object] = lambda: None) -> Sample:
    from toolcrib.calls import ToolCall
    from toolcrib.pipeline import Pipeline, Run
    from toolcrib.tools import tool
    from toolcrib.toolsets import Toolset

    pipeline = Pipeline(Toolset([tool()(get_weather)]), sinks=sinks)

    async def batch() -> Any:
        scope = Run()
        for _ in range(COUNT):
            outcome = await pipeline.run(ToolCall("get_weather", RAW), scope)
        between()
        return outcome.value

    return async_sample("us", batch, COUNT, ANSWER)


def left_out() -> Sample:
    return _calls()


def nobody_listens() -> Sample:
    from toolcrib.telemetry import OtelSink

    return _calls(OtelSink())


def every_event() -> Sample:
    from toolcrib.record import ListSink

    kept = ListSink()
    return _calls(kept, between=kept.events.clear)


def in_memory() -> Sample:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from toolcrib.telemetry import OtelSink

    spans, tracers = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    meters = MeterProvider([InMemoryMetricReader()], shutdown_on_exit=False)

    def check() -> None:
        if len(spans.get_finished_spans()) != COUNT:
            raise RuntimeError("not every call has a span")
        spans.clear()

    return _calls(OtelSink(tracers, meters), between=check)


def bare_span() -> Sample:
    """What the SDK itself takes for a span of the same attributes, and one measurement."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    spans, tracers = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    tracer = tracers.get_tracer("benchmark")
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get_weather",
        "gen_ai.tool.call.id": "call_1",
        "gen_ai.tool.type": "function",
    }

    async def batch() -> Any:
        for _ in range(COUNT):
            with tracer.start_as_current_span("execute_tool get_weather", attributes=attributes):
                outcome = await get_weather("Oslo", "c")
        spans.clear()
        return outcome

    return async_sample("us", batch, COUNT, ANSWER)


MEASURE = Measure(
    name="telemetry",
    title="one validated call with OpenTelemetry, JSON text to outcome",
    metrics=(Metric("us", "per call", "us"),),
    contenders=(
        Contender("toolcrib", left_out),
        Contender("toolcrib, OtelSink, no SDK", nobody_listens),
        Contender("toolcrib, every event recorded", every_event),
        Contender("toolcrib, OtelSink, spans in memory", in_memory),
        Contender("await in a span of the SDK's, in memory", bare_span),
    ),
    baseline="toolcrib",
    often=3,
    targets=(Target("us", "toolcrib, OtelSink, spans in memory", "toolcrib, every event recorded", 4),),
    notes=("Without a sink nothing is made or asked: that a telemetry package exists costs a call nothing.",),
)
