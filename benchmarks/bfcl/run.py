"""`make bfcl`: replay the benchmark's multi-turn conversations over the counter, and compare with plain Python.

Run it from the repository root as `python -m benchmarks.bfcl.run`. It prints for each way of calling how many
conversations go as they do in plain Python, and what differs. Exit status: 0 when nothing does, 1 otherwise, 2 on bad
usage.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks.bfcl._as_calls import run_as_calls
from benchmarks.bfcl._as_programs import run_as_programs
from benchmarks.bfcl._as_rounds import run_as_rounds
from benchmarks.bfcl._compare import Difference, differences
from benchmarks.bfcl._corrections import CORRECTIONS
from benchmarks.bfcl._data import FILES, Conversation, DataMissing, load_conversations
from benchmarks.bfcl._runs import Replay, run_directly
from toolcrib.formats import PROVIDERS

TITLE = "Replay the benchmark's multi-turn conversations over the counter, and compare with plain Python."
ROUNDS = {f"rounds-{format}": partial(run_as_rounds, format=format) for format in PROVIDERS}
PROGRAMS = {f"code-{name}": partial(run_as_programs, sandbox=name) for name in ("process", "monty")}
MODES: dict[str, Callable[..., Awaitable[Replay]]] = {"json": run_as_calls, **PROGRAMS, **ROUNDS}
GROUPS = {"all": [*MODES], "code": [*PROGRAMS], "rounds": [*ROUNDS], **{mode: [mode] for mode in MODES}}
SHOWN = 20  # how many differences are printed


@dataclass(frozen=True, slots=True)
class Report:
    """How the conversations of one file went in one mode."""

    file: str
    mode: str
    conversations: int
    calls: int
    seconds: float
    differences: tuple[Difference, ...]

    @property
    def same(self) -> int:
        """How many conversations have no difference."""
        return self.conversations - len({difference.conversation for difference in self.differences})

    def __str__(self) -> str:
        score = f"{self.same}/{self.conversations}"
        return f"{self.file:24}{self.mode:23}{score:>9}  {self.calls:6,} calls  {self.seconds:6.1f} s"


async def replay(file: str, mode: str, conversations: Iterable[Conversation], *, as_published: bool = False) -> Report:
    """Return how the conversations go in one mode, beside the same calls made directly."""
    count = calls = 0
    found: list[Difference] = []
    began = time.perf_counter()
    for conversation in conversations:
        directly = run_directly(conversation, as_published=as_published)
        run = await MODES[mode](conversation, as_published=as_published)
        found += differences(conversation, directly, run)
        count += 1
        calls += conversation.calls
    return Report(file, mode, count, calls, time.perf_counter() - began, tuple(found))


def select(conversations: Sequence[Conversation], ids: Sequence[str], limit: int | None) -> list[Conversation]:
    """Return the conversations of those ids (or numbers), at most `limit` of them.

    Raises:
        LookupError: No conversation has one of the ids.
    """
    if not ids:
        return list(conversations[:limit])
    by_id = {key: one for one in conversations for key in (one.id, one.id.rpartition("_")[2])}
    unknown = [name for name in ids if name not in by_id]
    if unknown:
        raise LookupError(f"no conversation is called {', '.join(unknown)}; they go from {conversations[0].id} on")
    return [by_id[name] for name in ids][:limit]


async def replay_all(options: argparse.Namespace) -> list[Report]:
    """Return a report for each file and mode that was asked for, printing each as it is done."""
    reports: list[Report] = []
    for file in FILES if options.file == "all" else [options.file]:
        chosen = select(load_conversations(file), options.ids, options.limit)
        for mode in GROUPS[options.mode]:
            report = await replay(file, mode, chosen, as_published=options.as_published)
            print(report, flush=True)
            reports.append(report)
    return reports


def print_corrections(reports: Sequence[Report]) -> None:
    """Print what was put right in the classes that these files use."""
    long_context = any(report.file == "multi_turn_long_context" for report in reports)
    for correction in CORRECTIONS:
        if correction.concerns(correction.api, long_context):
            print(f"corrected in {correction.api}: {correction.text}")


def read_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options of the command line, or exit with 2 and the usage."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bfcl.run", description=TITLE)
    parser.add_argument("--file", default=FILES[0], choices=[*FILES, "all"], help="which conversations")
    ways = "JSON tool calls, programs in each sandbox or in one, rounds in each wire format or in one, or all of these"
    parser.add_argument("--mode", default="all", choices=GROUPS, help=ways)
    parser.add_argument("--ids", nargs="+", default=[], metavar="ID", help="only these, as multi_turn_base_7 or 7")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N")
    parser.add_argument("--as-published", action="store_true", help="leave out the corrections")
    options = parser.parse_args(arguments)
    if options.limit is not None and options.limit < 1:
        parser.error("--limit must be at least 1")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay what the command line asks for and return the exit status."""
    options = read_options(arguments)
    try:
        reports = asyncio.run(replay_all(options))
    except (DataMissing, LookupError) as error:
        print(error, file=sys.stderr)
        return 1 if isinstance(error, DataMissing) else 2
    if not options.as_published:
        print_corrections(reports)
    found = [(report.mode, difference) for report in reports for difference in report.differences]
    for mode, difference in found[:SHOWN]:
        print(f"{mode}: {difference}")
    if len(found) > SHOWN:
        print(f"... and {len(found) - SHOWN} more")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
