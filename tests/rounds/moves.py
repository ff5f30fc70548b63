"""Whatever a model may reply and a host may do, as moves: values that a conversation makes one after the other.

Hypothesis and the seeded generators draw from the same moves, so that what one of them finds the other can replay.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from toolcrib.calls import ToolCall

IDS = ("a", "b", "c", "d", "abcdefghi", "", "long-" * 12)
FRESH = tuple(f"call{number}" for number in range(40))
NAMES = ("add", "add", "add", "wipe", "web_search", "read_file", "nope", "", "many.at_once", "é " * 40)
FITTING = {"add": '{"a": 1}', "wipe": '{"path": "/a"}', "web_search": '{"query": "x"}', "read_file": '{"path": "/b"}'}
ARGUMENTS = (*FITTING.values(), '{"a": 1, "b": 0}', '{"a": "x"}', '{"a": 1', "", "null", "[]", "7", '"x"')
BROKEN = ('{"a": NaN}', '{"path": "\ud83d"}', '{"query": "\\ud83d"}', '{"a": 1e999}', "{" * 300)
DECISIONS = ("run", "run", "complete", "reject", "ask", "nonsense", "edit", "misfit", "raise")
ANSWERS = ("run", "complete", "fail", "reject", "skip", "twice", "stray", "issue", "other name")
KINDS = ("reply", "reply", "decide", "decide", "resolve", "commit", "commit", "at once", "drop", "say", "spoil")
OFFERS = ("default", "default", "all", "some")
SENT = frozenset({*IDS, *FRESH})  # a provider's own ids, which are none of the library's making


@dataclass(frozen=True, slots=True)
class Reply:
    """The model replies, whole or in a stream that may be cut.

    Attributes:
        known: Whether the host tells which ids are in use.
        size: The characters in each chunk; 0 for a reply in one piece.
        kept: How many chunks of each hundred come; 100 for a stream that comes to its end.
        failed: Whether the provider said that it failed.
        early: Whether the provider says that the reply is not whole.
        other: Whether it asks for something that is not a call of a tool, too.
    """

    calls: tuple[ToolCall, ...]
    text: str = ""
    thinks: bool = False
    known: bool = True
    offer: str = "default"
    size: int = 0
    kept: int = 100
    failed: bool = False
    early: bool = False
    other: bool = False


@dataclass(frozen=True, slots=True)
class Decide:
    """The host applies hooks, of the round or of its plan."""

    decision: str


@dataclass(frozen=True, slots=True)
class Resolve:
    """The host hands in what a person said of each call that waits."""

    yes: bool


@dataclass(frozen=True, slots=True)
class Commit:
    """The host commits the plan with answers for its calls in turn."""

    answers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CommitAtOnce:
    """The host commits the round without having applied hooks."""


@dataclass(frozen=True, slots=True)
class Discard:
    """The host drops the round."""


@dataclass(frozen=True, slots=True)
class Say:
    """The host adds what a user says."""


@dataclass(frozen=True, slots=True)
class Damage:
    """The host's own code spoils the transcript."""

    seed: int


@dataclass(frozen=True, slots=True)
class Mend:
    """The host repairs the transcript."""


Move: TypeAlias = Reply | Decide | Resolve | Commit | CommitAtOnce | Discard | Say | Damage | Mend

# --- drawing them


def any_reply(random: Random) -> Reply:
    """Return a reply, often one of which something is wrong."""
    calls = tuple(any_call(random) for _ in range(random.choice((0, 1, 1, 2, 2, 3, 4))))
    text, thinks = random.choice(("", "Well.", "Let us see.")), random.choice((False, False, True))
    known, offer = random.choice((True, True, True, False)), random.choice(OFFERS)
    early, other = random.random() < 0.15, random.random() < 0.1
    if random.choice((True, False)):
        return Reply(calls, text, thinks, known, offer, early=early, other=other)
    size, ended = random.choice((1, 3, 8, 100)), random.choice((True, False))
    kept = 100 if ended else random.randint(0, 99)
    return Reply(calls, text, thinks, known, offer, size, kept, random.choice((False, False, False, True)), early)


def any_call(random: Random) -> ToolCall:
    """Return a call, half of the time one that can be made."""
    name = random.choice(NAMES)
    odd = random.choice((False, False, True))
    arguments = random.choice(ARGUMENTS + BROKEN) if odd or name not in FITTING else FITTING[name]
    return ToolCall(name, arguments, random.choice(random.choice((FRESH, FRESH, FRESH, IDS))))


def any_move(random: Random) -> Move:
    """Return any move, whether it makes sense now or not."""
    match random.choice(KINDS):
        case "reply":
            return any_reply(random)
        case "decide":
            return Decide(random.choice(DECISIONS))
        case "resolve":
            return Resolve(random.choice((True, False)))
        case "commit":
            return Commit(tuple(random.choice(ANSWERS) for _ in range(random.choice((1, 1, 2, 3)))))
        case "at once":
            return CommitAtOnce()
        case "drop":
            return Discard()
        case "spoil":
            return random.choice((Mend(), Mend(), Damage(random.randrange(1000))))
        case _:
            return Say()


def a_round(random: Random) -> Iterator[Move]:
    """Yield the moves of a host that mostly knows what to do, and sometimes does anything at all."""
    yield any_reply(random)
    if random.random() < 0.1:
        yield any_move(random)
    if random.random() < 0.95:
        yield Decide("run" if random.random() < 0.7 else random.choice(DECISIONS))
    if random.random() < 0.1:
        yield Decide(random.choice(DECISIONS))
    if random.random() < 0.1:
        yield any_move(random)
    yield Resolve(random.random() < 0.7)
    yield Commit(("run", "complete") if random.random() < 0.7 else tuple(random.choices(ANSWERS, k=2)))
    if random.random() < 0.2:
        yield Say()
    if random.random() < 0.02:
        yield Damage(random.randrange(1000))
    if random.random() < 0.05:
        yield Mend()


def moves_of(seed: int, rounds: int = 10) -> list[Move]:
    """Return the moves of one conversation; the same ones for the same seed."""
    random = Random(seed)
    return [move for _ in range(rounds) for move in a_round(random)]
