"""Cost of a check: how long the values of a call are looked up in a run that has read 10 MB of mails.

Run it from the repository root as `python -m benchmarks.dojo.cost`. A check remembers nothing of the one before, and a
figure is the least of some tries, in microseconds of the processor: what else the machine does can only add to one.
"""

from __future__ import annotations

import argparse
import gc
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from time import process_time
from typing import Any, Final, TypeAlias

from toolcrib.provenance import Memory, Origin

__all__ = ["memory_of", "people_of"]

People: TypeAlias = Sequence[Mapping[str, Any]]
_PEOPLE: Final = 1_200
_WORDS: Final = 20_000
_TRIES: Final = 20
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"


def words_of(draw: random.Random) -> list[str]:
    """Return words, each once."""
    found = dict.fromkeys("".join(draw.choices(_LETTERS, k=draw.randint(3, 9))) for _ in range(_WORDS))
    return list(found)


def people_of(draw: random.Random, words: Sequence[str]) -> People:
    """Return the user's own contacts, whose names strangers use as well."""
    names = [draw.sample(words, 2) for _ in range(_PEOPLE)]
    return [
        {
            "name": f"{first.title()} {last.title()}",
            "address": f"{first}.{last}@{last}.com",
            "account": f"DE{draw.randrange(10**20):020}",
            "owed": number + 5_000 + draw.randrange(1, 100) / 100,
            "file": f"{last}-{first}.txt",
        }
        for number, (first, last) in enumerate(names)
    ]


def memory_of(megabytes: int, writes: int, *, is_read_last: bool) -> tuple[Memory, People]:
    """Return the memory of a run, and the contacts that it has read.

    Args:
        megabytes: How much it has read of strangers' mails.
        writes: How many calls have written unknown values.
        is_read_last: Whether the contacts were read after these calls.
    """
    draw = random.Random(34)
    words, memory = words_of(draw), Memory()
    half = len(words) // 2
    people = people_of(draw, words[:half])
    memory.hear("Read my mail; write to my contacts about my trip, with their files, and pay what I owe")
    for is_last in (False, True):
        if is_last == is_read_last:
            memory.read("contacts", "c1", {}, people, "trusted")
        for number in range(0 if is_last else megabytes):
            mails = [{"text": " ".join(draw.choices(words, k=285))} for _ in range(500)]
            memory.read("read_mail", f"m{number}", {}, mails, "untrusted")
        for number in range(0 if is_last else writes):
            value = f"q{number}x{draw.randrange(10**9)}@z{draw.choice(words[half:])}{number}.net"
            memory.write(Origin("untrusted", "add", f"w{number}"), {"value": value}, frozenset(), "create")
    return memory, people


CASES: Final[Mapping[str, Callable[[People, int], Mapping[str, Any]]]] = {
    "an address": lambda people, at: {"to": people[at]["address"]},
    "an account": lambda people, at: {"to": people[at]["account"]},
    "an amount": lambda people, at: {"amount": people[at]["owed"]},
    "two addresses in a text": lambda people, at: {"to": ", ".join(each["address"] for each in people[at : at + 2])},
    "three addresses in a text": lambda people, at: {"to": ", ".join(each["address"] for each in people[at : at + 3])},
    "a list of five and a file": lambda people, at: {
        "to": [each["address"] for each in people[at : at + 5]],
        "file": people[at]["file"],
    },
}
"""The arguments of a call, by what they are, of the contacts from a number on."""


def cost(memory: Memory, people: People, arguments_of: Callable[[People, int], Mapping[str, Any]]) -> float:
    """Return the microseconds of a check: of each call the least of some tries, and of many calls the middle one.

    Raises:
        AssertionError: A call is asked about: what is measured is a question.
    """
    least = list[float]()
    for arguments in [arguments_of(people, at) for at in range(0, _PEOPLE - 5, 5)]:
        times, asked = list[float](), 0
        for _ in range(_TRIES):
            began = process_time()
            asked += len(memory.judge("send", "send", arguments))
            times.append(process_time() - began)
        if asked:
            raise AssertionError(f"{arguments} is asked about")
        least.append(min(times))
    return median(least) * 1e6


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Measure what a check of a call costs after much was read.")
    parser.add_argument("--megabytes", type=int, default=10)
    parser.add_argument("--writes", type=int, default=1_500)
    given = parser.parse_args()
    rows: list[tuple[str, Memory, People]] = [
        ("no writes", *memory_of(given.megabytes, 0, is_read_last=False)),
        ("read before", *memory_of(given.megabytes, given.writes, is_read_last=False)),
        ("read after", *memory_of(given.megabytes, given.writes, is_read_last=True)),
    ]
    gc.collect()
    gc.freeze()  # as in a program that runs on: what was read is not looked through by each collection
    print(f"{'microseconds for':28}" + "".join(f"{name:>14}" for name, *_ in rows))
    for case, arguments_of in CASES.items():
        found = [cost(memory, people, arguments_of) for _, memory, people in rows]
        print(f"{case:28}" + "".join(f"{each:14.0f}" for each in found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
