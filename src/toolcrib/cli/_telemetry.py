"""`--telemetry`: calls as spans and measurements of the process's own providers. Needs the extra `otel`."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from opentelemetry import metrics, trace

from toolcrib.cli._show import say
from toolcrib.invoke import Sink
from toolcrib.telemetry import OtelSink

__all__ = ["flush", "telemetry_sink"]

_FLUSH_MS = 5_000
_NONE = (
    "--telemetry: this process exports nothing; run the command under opentelemetry-instrument, or have the target set "
    "a tracer provider"
)


@runtime_checkable
class _Keeps(Protocol):
    """A provider of the SDK, which may not have exported all that it was given."""

    def force_flush(self, timeout_millis: int = _FLUSH_MS) -> bool: ...


def telemetry_sink() -> Sink:
    """Return a sink for the providers that the target or the environment has set up; say so where nobody has."""
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        say(_NONE)
    return OtelSink()


def flush() -> None:
    """Have everything exported, before the process ends without saying goodbye."""
    for provider in (trace.get_tracer_provider(), metrics.get_meter_provider()):
        if isinstance(provider, _Keeps):
            provider.force_flush(_FLUSH_MS)
