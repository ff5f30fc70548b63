"""The sink of `--telemetry`, of the commands `serve` and `worker`."""

from __future__ import annotations

import importlib
from typing import Annotated, Any

import typer

from toolcrib.cli._formatting import say

_NOTHING_EXPORTED = (
    "--telemetry: this process exports nothing; run the command under opentelemetry-instrument, or have the target set "
    "a tracer provider"
)
TelemetryOption = Annotated[bool, typer.Option("--telemetry", help="Make OpenTelemetry spans and metrics.")]


def telemetry_sink() -> Any:
    """Return the sink of `--telemetry`; raises MissingExtraError when the extra `otel` is not installed."""
    sink = importlib.import_module("toolcrib.telemetry").OtelSink()
    if not sink.has_provider:
        say(_NOTHING_EXPORTED)
    return sink
