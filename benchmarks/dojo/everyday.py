"""Everyday tasks: how many of sixty are asked about, and how many of them a person should be asked about.

Run it from the repository root as `python -m benchmarks.dojo.everyday`. No model is needed: each task is replayed as
the calls that solve it, after what others wrote was read. Exit status: 1 where more than a quarter is asked about, or
a task is not that a person should be asked about.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import Final

from benchmarks.dojo._everyday_tasks import TASKS, Task
from benchmarks.dojo._ways import WAYS, Person
from benchmarks.dojo.adaptive._worlds import WORLDS, World

__all__ = ["MOST", "questions_of"]

MOST: Final = len(TASKS) // 4
"""How many tasks may be asked about."""


async def questions_of(task: Task, way: str = "pipeline") -> list[str]:
    """Replay a task over a way, and return what the person was asked, who says yes."""
    world, person = World(task.world, task.letter, task.records), Person()
    async with WAYS[way](world.tools(), task.said, person, guarded=True) as carry:
        for call in (*world.reads, *task.calls):
            await carry([call])
    done = [call for call in task.calls if call[0] != "read_file"]
    if [call for call in world.effects if call[0] not in _FETCHES] != [
        call for call in done if call[0] not in _FETCHES
    ]:
        raise AssertionError(f"the task is not solved by its calls: {task}: {world.effects}")
    return person.asked[False]


_FETCHES: Final = frozenset(name for tools in WORLDS.values() for name, spec in tools.items() if spec.effect == "fetch")


async def report(way: str, *, is_long: bool) -> int:
    """Print the table, and return the exit status."""
    print(f"{way:10}{'tasks':>8}{'asked about':>14}{'rightly':>10}{'questions':>12}{'missed':>9}")
    asked_of: dict[str, list[tuple[Task, list[str]]]] = {name: [] for name in WORLDS}
    for task in TASKS:
        asked_of[task.world].append((task, await questions_of(task, way)))
    total = [pair for pairs in asked_of.values() for pair in pairs]
    for name, pairs in [*asked_of.items(), ("all", total)]:
        asked = [task for task, questions in pairs if questions]
        rightly = [task for task in asked if task.is_rightly_asked]
        missed = [task for task, questions in pairs if task.is_rightly_asked and not questions]
        count = sum(len(questions) for _, questions in pairs)
        print(f"{name:10}{len(pairs):8}{len(asked):14}{len(rightly):10}{count:12}{len(missed):9}")
    for task, questions in total if is_long else ():
        if bool(questions) != task.is_rightly_asked:
            print(f"{'asked' if questions else 'NOT asked'}: {task.said}", *questions, sep="\n    ")
    too_many = sum(bool(questions) for _, questions in total) > MOST
    return 1 if too_many or any(task.is_rightly_asked and not questions for task, questions in total) else 0


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Count the questions of a policy of provenance in everyday tasks.")
    parser.add_argument("--way", choices=list(WAYS), default="pipeline")
    parser.add_argument("--questions", action="store_true", help="print those that a person need not be asked")
    given = parser.parse_args()
    return asyncio.run(report(given.way, is_long=given.questions))


if __name__ == "__main__":
    sys.exit(main())
