"""The measures by name, in the order they are run."""

from __future__ import annotations

from benchmarks import (
    calls,
    code_mode,
    console,
    definitions,
    frameworks,
    imports,
    mcp_servers,
    programs,
    rounds,
    streaming,
    telemetry,
    turns,
)
from benchmarks._measure import Measure

MEASURES: tuple[Measure, ...] = (
    calls.MEASURE,
    telemetry.MEASURE,
    streaming.MEASURE,
    imports.MEASURE,
    imports.COMMANDS,
    code_mode.MEASURE,
    *programs.MEASURES,
    definitions.MEASURE,
    *rounds.MEASURES,
    *turns.MEASURES,
    console.MEASURE,
    *mcp_servers.MEASURES,
    *frameworks.MEASURES,
)


def find(name: str) -> Measure:
    """Return the measure of that name; raises KeyError."""
    return {measure.name: measure for measure in MEASURES}[name]
