"""Tools of all documents in a folder, as `make apis` makes them: what came of each, and what did not.

    python -m tests.openapi.directory FOLDER

Each schema has to be one by the rules of JSON Schema, and each tool has to be offered to each provider, by a name of
its own that all of them take.
"""

from __future__ import annotations

import logging
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from jsonschema import Draft202012Validator

from toolcrib import Toolset
from toolcrib.errors import DocumentError
from toolcrib.openapi import toolset

__all__ = ["faults_of", "main"]

FORMATS = ("openai", "anthropic", "gemini")
_NAME = re.compile(r"[A-Za-z0-9_]{1,64}")
_NOTHING = "has no operation that could become a tool"  # documents of what a server calls


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def faults_of(file: Path) -> tuple[int, list[str]]:
    """Return how many tools a document makes, and what is wrong with them."""
    log = _Lines()
    names = ("toolcrib.openapi", "toolcrib.formats")
    for name in names:
        logging.getLogger(name).addHandler(log)
    try:
        tools = toolset(file, server="https://api.test")
        return len(tools), [*_faults(tools), *log.lines]
    except DocumentError as error:
        return 0, [] if _NOTHING in str(error) else [str(error)]
    finally:
        for name in names:
            logging.getLogger(name).removeHandler(log)


def _faults(tools: Toolset) -> Iterator[str]:
    names = [entry.name for entry in tools]
    if len({name.lower() for name in names}) < len(names) or not all(map(_NAME.fullmatch, names)):
        yield "a name is taken twice, or is none that providers take"
    for entry in tools:
        for schema in (entry.parameters, entry.return_schema or {}):
            problem = next(Draft202012Validator(Draft202012Validator.META_SCHEMA).iter_errors(schema), None)
            if problem is not None:
                yield f"{entry.name}: {problem.message:.200}"
    for form in FORMATS:
        tools.definitions(format=form)  # one that is not offered is in the log


def main(folder: Path) -> int:
    """Print what came of the documents in a folder; 1 where something is wrong with one."""
    began, wrong, made = time.perf_counter(), 0, 0
    files = sorted(folder.rglob("*.json"))
    for file in files:
        count, faults = faults_of(file)
        made += count
        wrong += bool(faults)
        for fault in faults:
            print(f"{file.relative_to(folder)}: {fault:.300}", flush=True)
    print(f"{made:,} tools of {len(files):,} documents in {time.perf_counter() - began:.0f} s; {wrong} with faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
