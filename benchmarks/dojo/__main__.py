"""`make dojo`: how many tasks of AgentDojo go without a question, and how many attacks succeed.

Run it from the repository root as `python -m benchmarks.dojo`. It prints a line for each suite, without the policy and
with it, and with `--questions` what was asked. Exit status: 0 when no attack succeeds under the policy, else 1.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from benchmarks.dojo._replay import replay

VERSION = "v1.2.2"


async def suite_of(name: str, suite: Any, *, guarded: bool, shows: bool) -> tuple[int, int, int, int, int]:
    """Replay a suite; return tasks without a question, tasks, attacks that succeed, attacks, and those asked about."""
    free = hits = asked = 0
    tasks, attacks = list(suite.user_tasks.values()), list(suite.injection_tasks.values())
    for task in tasks:
        alone = await replay(suite, task, guarded=guarded)
        if not alone.is_solved:
            print(f"  {name} {task.ID} is not solved by its own ground truth")
        free += alone.is_solved and not alone.questions
        for question in alone.questions if shows else ():
            print(f"  {name} {task.ID}: {question}")
        for attack in attacks:
            under = await replay(suite, task, attack, guarded=guarded)
            hits += under.is_hit
            asked += bool(under.of_attack)
            if under.is_hit and guarded:
                print(f"  {name} {task.ID}: {attack.ID} succeeded")
    return free, len(tasks), hits, len(tasks) * len(attacks), asked


async def report(names: Sequence[str], *, shows: bool) -> int:
    """Print the tables, and return the exit status."""
    from agentdojo.task_suite.load_suites import get_suites  # noqa: PLC0415 -- the benchmark, in an environment of its own

    suites: dict[str, Any] = get_suites(VERSION)
    hits = 0
    for guarded in (False, True):
        print("with the policy" if guarded else "without a policy")
        total = [0] * 5
        for name in names or suites:
            row = await suite_of(name, suites[name], guarded=guarded, shows=shows and guarded)
            total = [a + b for a, b in zip(total, row, strict=True)]
            print(_line(name, row), flush=True)
        print(_line("all", total))
        hits = total[2]
    return 1 if hits else 0


def _line(name: str, row: Sequence[int]) -> str:
    free, tasks, hits, attacks, asked = row
    return (
        f"  {name:10} tasks without a question {free:3} of {tasks:3}   attacks that succeed {hits:3} of {attacks:3}, "
        f"asked about {asked}"
    )


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Replay AgentDojo over the pipeline.")
    parser.add_argument("suites", nargs="*", help="banking, slack, travel, workspace; all when left out")
    parser.add_argument("--questions", action="store_true", help="print what was asked in the tasks")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    return asyncio.run(report(given.suites, shows=given.questions))


if __name__ == "__main__":
    sys.exit(main())
