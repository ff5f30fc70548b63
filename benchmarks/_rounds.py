"""Runs a measure: every contender in its own process, in turn, round after round (A B C A B C)."""

from __future__ import annotations

import json
import selectors
import subprocess
import sys
from collections.abc import Mapping
from tempfile import TemporaryFile
from types import TracebackType
from typing import Any

from benchmarks._measure import Contender, Measure, Results

_PATIENCE = 120.0
"""Seconds that a contender may take to get ready or to give one sample."""


class _Lost(Exception):
    """The contender's process ended, or gave no answer in time."""


class _Process:
    def __init__(self, measure: Measure, contender: Contender) -> None:
        command = [sys.executable, "-m", "benchmarks._contender", measure.name, contender.name]
        self._said = TemporaryFile("w+")  # noqa: SIM115 -- closed by __exit__; a pipe that nobody reads would fill up
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said, text=True
        )

    def __enter__(self) -> _Process:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.kill()
        self._process.communicate()
        self._said.close()

    def ready(self) -> str | None:
        """Wait until the setup is done; return why it could not be, or None."""
        return self._read().get("missing")

    def sample(self) -> Mapping[str, float]:
        """Return the figures of one round."""
        assert self._process.stdin is not None  # opened as a pipe above
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None  # opened as a pipe above
        with selectors.DefaultSelector() as waiting:
            waiting.register(self._process.stdout, selectors.EVENT_READ)
            if not waiting.select(_PATIENCE):
                raise _Lost(f"no answer in {_PATIENCE:g} s")
        line = self._process.stdout.readline()
        if not line:
            status = self._process.wait()
            self._said.seek(0)
            last = self._said.read().strip().splitlines()[-1:] or ["no message"]
            raise _Lost(f"its process ended with status {status}: {last[0]}")
        return json.loads(line)


def run(measure: Measure, rounds: int) -> Results:
    """Return the figures of the rounds asked for; what cannot be measured is in `missing`, with the reason."""
    return _run_fresh(measure, rounds) if measure.fresh else _run_warm(measure, rounds * measure.often)


def _run_warm(measure: Measure, rounds: int) -> Results:
    results = Results(measure)
    processes: dict[str, _Process] = {}
    try:
        for contender in measure.contenders:  # one after the other, so that no start-up disturbs another's warm-up
            process = processes[contender.name] = _Process(measure, contender)
            _note_missing(results, contender, process)
        for _ in range(rounds):
            for contender in measure.contenders:
                _take(results, contender, processes[contender.name])
    finally:
        for process in processes.values():
            process.__exit__(None, None, None)
    return results


def _run_fresh(measure: Measure, rounds: int) -> Results:
    results = Results(measure)
    for _ in range(rounds):
        for contender in measure.contenders:
            if contender.name in results.missing:
                continue
            with _Process(measure, contender) as process:
                _note_missing(results, contender, process)
                _take(results, contender, process)
    return results


def _note_missing(results: Results, contender: Contender, process: _Process) -> None:
    try:
        missing = process.ready()
    except _Lost as error:
        missing = str(error)
    if missing:
        results.samples.pop(contender.name, None)  # what was measured before it stopped working says nothing
        results.missing[contender.name] = missing


def _take(results: Results, contender: Contender, process: _Process) -> None:
    if contender.name in results.missing:
        return
    try:
        results.samples.setdefault(contender.name, []).append(process.sample())
    except (_Lost, BrokenPipeError) as error:
        results.samples.pop(contender.name, None)
        results.missing[contender.name] = str(error)
