"""OpenTelemetry: a sink that makes spans and metrics of the events of calls and runs, and nothing else.

It reads events and changes nothing; what is not in an event cannot get into a span.
"""

from toolcrib.errors import MissingExtraError

try:
    from toolcrib.telemetry._sink import OtelSink
except ModuleNotFoundError as error:
    if not (error.name or "").startswith("opentelemetry"):
        raise
    raise MissingExtraError("telemetry", "otel") from error

__all__ = ["OtelSink"]
