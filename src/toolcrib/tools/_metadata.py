"""Metadata of a tool: name, description, schemas, and the times of its last run."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from toolcrib import schema
from toolcrib.errors import SchemaError


class ToolMetadata:
    """Name, description, schemas and the times of the last run, which are for display only."""

    __slots__ = ("_name", "_spec", "ended", "started")

    def __init__(self, spec: schema.ToolSpec, name: str) -> None:
        self._spec, self._name = spec, name
        self.started: float | None = None  # seconds since the epoch: a float costs less per run than a datetime
        self.ended: float | None = None

    @property
    def name(self) -> str:
        """The short name; a subtool's without its parent's."""
        return self._name

    @property
    def description(self) -> str:
        """The purpose of the tool."""
        return self._spec.description

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON schema of the input; raises SchemaError for a type pydantic cannot describe."""
        return self._spec.parameters

    @property
    def output_schema(self) -> dict[str, Any] | None:
        """The JSON schema of the result, if it is known."""
        return self._spec.return_schema

    @property
    def start_time(self) -> datetime | None:
        """The time at which the last run began, in UTC; None before the first."""
        return None if self.started is None else datetime.fromtimestamp(self.started, UTC)

    @property
    def end_time(self) -> datetime | None:
        """The time at which the last run ended, in UTC; None before that."""
        return None if self.ended is None else datetime.fromtimestamp(self.ended, UTC)

    def dict(self) -> dict[str, Any]:
        """Return all of it as JSON shapes; a schema that cannot be made is None."""
        try:
            schemas = {"input_schema": self.input_schema, "output_schema": self.output_schema}
        except SchemaError:
            schemas = {"input_schema": None, "output_schema": None}
        start, end = self.start_time, self.end_time
        times = {"start_time": start and start.isoformat(), "end_time": end and end.isoformat()}
        return {"name": self.name, "description": self.description, **schemas, **times}
