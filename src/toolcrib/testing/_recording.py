"""Recorded runs: the calls of a model and the results of its tools, as a script and as fakes for a test."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import pytest

from toolcrib._numbers import count_text
from toolcrib.calls import CallEvent, CallRecord, Completed, Failed, ToolCall, outcome_from_dict
from toolcrib.errors import ModelRetry
from toolcrib.pipeline import Call, Pipeline
from toolcrib.record import EventLog, sqlite_events
from toolcrib.testing._scripted import ScriptedModel, Step
from toolcrib.toolsets import ToolsetLike


class RecordedError(Exception):
    """The error of a recorded tool, with the class and the message that it had."""


@dataclass(frozen=True, slots=True)
class Recording:
    """The calls of one recorded run, for a regression test without its model and without its tools' effects.

    Attributes:
        records: The records of the calls, in the order in which they came; each as `CallRecord.to_dict` has it.
    """

    records: tuple[Mapping[str, Any], ...]

    @classmethod
    def load(cls, path: str | Path, run_id: str = "") -> Recording:
        """Read a run from a file of `JsonLinesSink`, or from a SQLite file.

        Args:
            path: The file.
            run_id: Which run; it may be left out where the file has one.

        Raises:
            ValueError: There is no such run, or there are several and none is named; or the file has something else.
        """
        path = Path(path)
        with path.open("rb") as file:
            is_sqlite = file.read(16) == b"SQLite format 3\0"
        found = list(_records_in(sqlite_events(path)) if is_sqlite else _lines(path))
        runs = {record["run_id"]: None for record in found}
        if not run_id and len(runs) > 1:
            raise ValueError(
                f"{path} has {count_text(len(runs), 'run')}; name one as `run_id`: {', '.join(list(runs)[:10])}"
            )
        wanted = [record for record in found if record["run_id"] == (run_id or record["run_id"])]
        if not wanted:
            raise ValueError(f"{path} has no call of {f'the run {run_id!r}' if run_id else 'any run'} that has ended")
        return cls(tuple(sorted(wanted, key=_started)))

    @classmethod
    def of(cls, records: Iterable[CallRecord]) -> Recording:
        """Return the recording of records of one run, such as those of a `ListSink`; TypeError for the sink itself."""
        if isinstance(records, str) or not isinstance(records, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
            raise TypeError(f"{records!r:.80} is not a list of records; give those of the sink: sink.records")
        return cls(tuple(sorted((record.to_dict() for record in records), key=_started)))

    def save(self, path: str | Path) -> None:
        """Write the records to a file, a line of JSON each, from which `load` reads them."""
        lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in self.records)
        Path(path).write_text("".join(lines), encoding="utf-8")

    def rounds(self) -> list[list[ToolCall]]:
        """Return the calls that a model made, those of one reply together.

        A call that came before those of the reply before had ended is of the same reply. Calls that tools and programs
        made are left out.
        """
        ids = {record["call_id"] for record in self.records}
        rounds: list[list[ToolCall]] = []
        until: datetime | None = None
        for record in self.records:
            parent = record["parent_id"] or ""
            if parent in ids or parent.startswith("program_"):
                continue
            if until is None or _started(record) >= until:
                rounds.append([])
                until = None
            ended = datetime.fromisoformat(record["ended_at"])
            until = ended if until is None else max(until, ended)
            asked = record["arguments"] if record["requested"] is None else record["requested"]
            rounds[-1].append(ToolCall(record["tool"], asked, record["call_id"]))
        return rounds

    def model(self, *more: Step) -> ScriptedModel:
        """Return a model that makes the recorded calls again, and then plays these steps, such as its last words."""
        return ScriptedModel(*self.rounds(), *more)

    def pipeline(self, tools: ToolsetLike) -> Pipeline:
        """Return a pipeline of the tools that takes their results from the record, and runs none of them.

        All gates are asked as ever. A call that gets as far as its tool takes the result of the first recorded call
        of the same tool and arguments that is left. Without one, the test fails, and the message names both.
        """
        recorded = _RecordedResults(self.records)
        return Pipeline(tools, sinks=[recorded], executor=recorded)


def _lines(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the records in a file of JSON lines, which has records, or events."""
    for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1):
        try:
            data: Any = json.loads(line)
        except ValueError:
            data = None
        if not isinstance(data, dict):
            raise ValueError(f"{path} has no record in line {number}; name a file of JsonLinesSink, or a database")
        data = cast("dict[str, Any]", data)
        record = data if "outcome" in data else data.get("record")
        if record is not None:
            yield record


def _records_in(log: EventLog) -> Iterator[Mapping[str, Any]]:
    """Yield the records in a database."""
    for event in log.all():
        if event.source == "call" and event.data.get("record"):
            yield event.data["record"]


def _started(record: Mapping[str, Any]) -> datetime:
    return datetime.fromisoformat(record["started_at"])


def _key(tool: str, arguments: object) -> tuple[str, str]:
    return tool, json.dumps(arguments, sort_keys=True)


@dataclass(slots=True)
class _RecordedResults:
    """Answers executions with what was recorded; as a sink, it learns the arguments as a record has them."""

    records: tuple[Mapping[str, Any], ...]
    _remaining: dict[tuple[str, str], deque[Completed | Failed]] = field(init=False)
    _begun: dict[str, Any] = field(init=False, default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        self._remaining = {}
        for record in self.records:
            outcome = None if record["outcome"]["kind"] == "cancelled" else outcome_from_dict(record["outcome"])
            if not isinstance(outcome, Completed | Failed) or record["arguments"] is None:
                continue
            if isinstance(outcome, Failed) or outcome.source == "tool":
                self._remaining.setdefault(_key(record["tool"], record["arguments"]), deque()).append(outcome)

    def emit(self, event: CallEvent) -> None:
        """Keep the arguments that a call began with."""
        if event.kind == "started":
            self._begun[event.call_id] = event.data["arguments"]

    async def execute(self, call: Call, run: Callable[[], Awaitable[Any]]) -> Any:
        """Return the tool's result, or raise its error."""
        arguments = self._begun.pop(call.id)
        outcomes = self._remaining.get(_key(call.name, arguments))
        if not outcomes:
            known = [json.loads(text) for name, text in self._remaining if name == call.name]
            pytest.fail(
                f"`{call.name}` was called with {arguments}, which is not recorded (again); recorded are {known}"
            )
        outcome = outcomes.popleft()
        if isinstance(outcome, Completed):
            return outcome.value
        if outcome.code == ModelRetry.code:
            raise ModelRetry(outcome.message)
        raise type(outcome.error_type, (RecordedError,), {})(outcome.message)
