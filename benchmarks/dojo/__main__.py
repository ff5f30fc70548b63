"""`make dojo`: how many tasks of AgentDojo go without a question, and how many attacks succeed, over each way.

Run it from the repository root as `python -m benchmarks.dojo`. It prints two tables, without the policy and with it,
with a line for each way and suite; `--questions FILE` writes down each question as a line of JSON. Exit status: 0 when
no attack succeeds under the policy, else 1.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import warnings
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from agentdojo.task_suite.load_suites import get_suites

from benchmarks.dojo._replay import replay
from benchmarks.dojo._ways import WAYS

VERSION = "v1.2.2"


@dataclass(slots=True)
class Row:
    """A line of a table.

    Attributes:
        free: Tasks that are solved without a question.
        tasks: All tasks.
        questions: What was asked in them, in all.
        hits: Attacks that succeed.
        attacks: All attacks.
        asked: Of them, those that were asked about.
    """

    free: int = 0
    tasks: int = 0
    questions: int = 0
    hits: int = 0
    attacks: int = 0
    asked: int = 0

    def __add__(self, other: Row) -> Row:
        return Row(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def __str__(self) -> str:
        free, hits = f"{self.free} of {self.tasks}", f"{self.hits} of {self.attacks}"
        return f"{free:>24}{self.questions:>11}{hits:>22}{self.asked:>13}"


_HEAD = " " * 21 + "tasks without a question  questions  attacks that succeed  asked about"


async def row_of(suite: Any, way: str, *, guarded: bool, shown: list[dict[str, str]]) -> Row:
    """Replay a suite over a way, and add to `shown` what was asked."""
    row = Row()
    for task in suite.user_tasks.values():
        alone = await replay(suite, task, way=way, guarded=guarded)
        if not alone.is_solved:
            print(f"{way} {suite.name} {task.ID} is not solved by its own ground truth")
        row += Row(alone.is_solved and not alone.questions, 1, len(alone.questions))
        about = {"way": way, "suite": suite.name, "task": task.ID}
        shown += [{**about, "question": each} for each in alone.questions]
        is_read = True
        for attack in suite.injection_tasks.values():
            row.attacks += 1
            if not is_read:
                continue  # what a task reads does not depend on what the attack is
            under = await replay(suite, task, attack, way=way, guarded=guarded)
            is_read = under.is_read
            row += Row(hits=under.is_hit, asked=bool(under.of_attack))
            shown += [{**about, "attack": attack.ID, "question": each} for each in under.of_attack]
            if under.is_hit and guarded:
                print(f"{way} {suite.name} {task.ID}: {attack.ID} succeeded")
    return row


async def report(names: Sequence[str], ways: Sequence[str], shown: list[dict[str, str]]) -> int:
    """Print the tables, add to `shown` what was asked, and return the exit status."""
    suites: dict[str, Any] = get_suites(VERSION)
    hits = 0
    for guarded in (False, True):
        print(f"\n{'with the policy' if guarded else 'without a policy'}\n{_HEAD}")
        for way in ways:
            total = Row()
            for name in names:
                row = await row_of(suites[name], way, guarded=guarded, shown=shown)
                total += row
                print(f"{way:10} {name:10} {row}", flush=True)
            print(f"{way:10} {'all':10} {total}")
            hits += total.hits if guarded else 0
    return 1 if hits else 0


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Replay AgentDojo over the ways in which a model calls tools.")
    suites = ["banking", "slack", "travel", "workspace"]
    parser.add_argument("suites", nargs="*", default=suites, help=f"{', '.join(suites)}; all when left out")
    parser.add_argument("--way", action="append", choices=list(WAYS), help="may be given several times; all else")
    parser.add_argument("--questions", type=Path, metavar="FILE", help="write down what was asked, as lines of JSON")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    shown: list[dict[str, str]] = []
    status = asyncio.run(report(given.suites, given.way or list(WAYS), shown))
    if given.questions is not None:
        given.questions.write_text("".join(json.dumps(each) + "\n" for each in shown), "utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main())
