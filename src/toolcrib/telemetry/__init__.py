"""OpenTelemetry: a sink that makes spans and metrics of the events of calls and runs, and nothing else.

It reads events and changes nothing; a span has only data that is in an event.
"""

from toolcrib._extras import Extra

with Extra("telemetry", "otel", ("opentelemetry",)):
    from toolcrib.telemetry._sink import OtelSink

__all__ = ["OtelSink"]
