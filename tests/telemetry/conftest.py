"""Spans and measurements that stay in memory."""

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanContext

from toolcrib.telemetry import OtelSink


class Watch:
    """A tracer and a meter, and what they were told."""

    def __init__(self) -> None:
        self._exporter, self._reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.tracers = TracerProvider(shutdown_on_exit=False)
        self.tracers.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.meters = MeterProvider([self._reader], shutdown_on_exit=False)

    def sink(self, **options: Any) -> OtelSink:
        return OtelSink(self.tracers, self.meters, **options)

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self._exporter.get_finished_spans())

    def span(self, name: str) -> ReadableSpan:
        found = [span for span in self.spans if span.name == name]
        assert len(found) == 1, f"{len(found)} spans are called {name!r}: {[span.name for span in self.spans]}"
        return found[0]

    @staticmethod
    def place(span: ReadableSpan) -> SpanContext:
        assert span.context is not None
        return span.context

    def linked(self, span: ReadableSpan) -> list[int]:
        """Return the ids of the spans that one is linked to."""
        return [link.context.span_id for link in span.links]

    def tree(self) -> dict[str, Any]:
        """Return the names of spans, each with those inside of it, in the order they began."""
        known = {self.place(span).span_id for span in self.spans}

        def inside(parent: int | None) -> dict[str, Any]:
            of = [s for s in self.spans if (s.parent.span_id if s.parent else None) == parent]
            return {span.name: inside(self.place(span).span_id) for span in sorted(of, key=lambda s: s.start_time or 0)}

        away = {s.parent.span_id for s in self.spans if s.parent is not None} - known
        assert not away, "a span has a parent that nobody exported"
        return inside(None)

    def points(self, name: str) -> list[Any]:
        data = self._reader.get_metrics_data()
        if data is None:
            return []
        metrics = [m for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics if m.name == name]
        return [point for metric in metrics for point in metric.data.data_points]

    def close(self) -> None:
        self.tracers.shutdown()
        self.meters.shutdown()


@pytest.fixture
def watch() -> Iterator[Watch]:
    made = Watch()
    yield made
    made.close()
