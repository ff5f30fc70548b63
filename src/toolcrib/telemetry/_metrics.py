"""Metrics: the number of calls, their durations and ends, with few attributes, each of few values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry.metrics import Meter

from toolcrib.calls import ActivityEvent, CallEvent
from toolcrib.telemetry._attributes import (
    ENTRY,
    ERROR_TYPE,
    MODEL,
    OPERATION,
    OUTCOME,
    PROVIDER,
    TOOL_NAME,
    error_type,
    of_request,
    provider_of,
    tool_of,
)

# Seconds: those that the GenAI conventions advise for the duration of an operation.
_BOUNDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)

_TOKEN_BOUNDS = tuple(float(4**power) for power in range(14))


class Measures:
    """The instruments of one sink."""

    def __init__(self, meter: Meter) -> None:
        self._calls = meter.create_counter("toolcrib.tool.calls", "{call}", "Calls that ended")
        self._errors = meter.create_counter("toolcrib.tool.errors", "{call}", "Calls that failed")
        self._suspensions = meter.create_counter("toolcrib.tool.suspensions", "{call}", "Calls that wait for a person")
        self._duration = meter.create_histogram(
            "toolcrib.tool.duration",
            "s",
            "How long a call took, people's time included",
            explicit_bucket_boundaries_advisory=_BOUNDS,
        )
        self._requests = meter.create_histogram(
            "mcp.server.operation.duration",
            "s",
            "How long a request of an MCP client took",
            explicit_bucket_boundaries_advisory=_BOUNDS,
        )

        self._answers = meter.create_histogram(
            "gen_ai.client.operation.duration",
            "s",
            "How long a request to a model took",
            explicit_bucket_boundaries_advisory=_BOUNDS,
        )
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage",
            "{token}",
            "How many tokens a request to a model took",
            explicit_bucket_boundaries_advisory=_TOKEN_BOUNDS,
        )

    def answered(self, event: ActivityEvent, asked: Mapping[str, Any]) -> None:
        """Count a request to a model that ended; not where the model measures it itself."""
        if asked.get("has_span"):
            return
        labels: dict[str, str] = {OPERATION: "chat", PROVIDER: provider_of(asked)}
        if asked.get("model"):
            labels[MODEL] = str(asked["model"])
        usage = event.data.get("usage", {})
        for kind in ("input", "output"):
            if usage.get(f"{kind}_tokens"):
                self._tokens.record(usage[f"{kind}_tokens"], {**labels, "gen_ai.token.type": kind})
        if event.data["outcome"] != "completed":
            labels[ERROR_TYPE] = str(event.data.get("error_type") or event.data["outcome"])
        self._answers.record(float(event.data["duration_ms"]) / 1000, labels)

    def suspended(self, event: CallEvent) -> None:
        """Count a call that waits for a person."""
        self._suspensions.add(1, {TOOL_NAME: event.tool, ENTRY: event.entry})

    def ended(self, event: CallEvent) -> None:
        """Count a call that ended."""
        if event.record is None:
            return
        outcome = event.record.outcome
        labels = {TOOL_NAME: tool_of(event), ENTRY: event.entry, OUTCOME: str(outcome["kind"])}
        failure = error_type(outcome)
        if failure is not None:
            labels[ERROR_TYPE] = failure
            self._errors.add(1, labels)
        self._calls.add(1, labels)
        self._duration.record(event.record.duration_ms / 1000, labels)

    def requested(self, event: ActivityEvent) -> None:
        """Count a request that was answered."""
        labels = {"mcp.method.name": of_request(event.data).get("mcp.method.name", event.name)}
        outcome = str(event.data.get("outcome"))
        if outcome not in ("completed", "suspended"):
            labels[ERROR_TYPE] = outcome
        self._requests.record(float(event.data.get("duration_ms", 0)) / 1000, labels)
