"""What a crash trial comes to: the ledger of effects held against what the database has recorded."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.durable.crash_worker import STEPS
from toolcrib.adapters.dbos import Client
from toolcrib.adapters.dbos._program_journal import journal_entries, program_run

_STOOD_STILL = 2.0  # seconds in a tool that takes none


@dataclass(frozen=True)
class Asked:
    """A question to the person.

    Attributes:
        begun: When and where the call began, of one in doubt; empty for one that needs approval.
        done: How often the call in doubt had its effect by then.
    """

    run: str
    n: int
    begun: str = ""
    done: int = 0


@dataclass
class Trial:
    """What one trial came to.

    Attributes:
        agents: The runs that are turns of an agent.
        programs: The runs that are programs.
        ledger: The file that the tools write into.
        frozen: The calls that were made twice because a person approved them while their tool was frozen.
        unused: The answers that no call used in the end: the call that was in doubt had ended after all.
        asked: The questions to the person, by the request's id.
        problems: What must not be, a sentence each.
    """

    agents: list[str]
    programs: list[str]
    ledger: Path
    events: Counter[str] = field(default_factory=Counter[str])
    turns: int = 0
    calls: int = 0
    repeated: int = 0
    frozen: int = 0
    unused: int = 0
    seconds: float = 0.0
    moved: float = field(default_factory=time.monotonic)
    asked: dict[str, Asked] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        asked = [question.done for question in self.asked.values() if question.begun]
        events = ", ".join(f"{count} times {name}" for name, count in sorted(self.events.items()))
        runs = len(self.agents) + len(self.programs)
        return (
            f"{runs} runs, {self.turns} turns and {self.calls} calls, {len(self.asked)} questions in "
            f"{self.seconds:.0f} s with {self.events.total()} events, {events}: "
            f"{self.repeated} calls that may be made twice were, {len(asked)} others were in doubt "
            f"({sum(map(bool, asked))} of them after their effect), {self.frozen} were approved while their tool was "
            f"frozen and made twice, {self.unused} answers were of no use; {len(self.problems)} problems"
        )

    def effects(self) -> list[tuple[str, str, int, str]]:
        """Return what the tools did: kind, run, step and key."""
        return [(kind, run, int(n), key) for kind, run, n, key, *_ in self._rows()]

    def _frozen(self) -> Counter[tuple[str, int]]:
        """Return how often each step was done by a tool that stood still in its own code, where nothing can stop it."""
        return Counter((row[1], int(row[2])) for row in self._rows() if float(row[-1]) > _STOOD_STILL)

    def _rows(self) -> list[list[str]]:
        return [line.split() for line in self.ledger.read_text().splitlines()] if self.ledger.exists() else []

    # --- what came of it

    def judge(self) -> None:
        """Add what must not be outside of the database to the problems."""
        found = self.effects()
        counts = Counter((run, n) for _, run, n, _ in found)
        for run in (*self.agents, *self.programs):
            missing = [n for n in range(1, STEPS + 1) if not counts[run, n]]
            if missing:
                self.problems.append(f"{run}: its steps {missing} are lost")
        kinds = {(run, n): kind for kind, run, n, _ in found}
        frozen, doubts = self._frozen(), dict[tuple[str, int], list[int]]()
        for question in self.asked.values():
            if question.begun:
                doubts.setdefault((question.run, question.n), []).append(question.done)
        for (run, n), count in counts.items():
            keys = {key for _, r, k, key in found if (r, k) == (run, n)} if count > 1 else set()
            if kinds[run, n] == "put" and count > 1:
                self.repeated += 1
                if len(keys) > 1:
                    self.problems.append(f"{run}: step {n} was done under {len(keys)} keys")
            if kinds[run, n] == "add":
                asked = doubts.get((run, n), [])
                unasked = count - 1 - sum(map(bool, asked))
                self.frozen += 0 < unasked <= frozen[run, n]
                if unasked > frozen[run, n]:
                    self.problems.append(f"{run}: step {n} was done {count} times, and {asked} were agreed to")
        self.problems += [f"{run}: step {n} may be repeated, and was asked about" for run, n in doubts if n % 2]
        questions = Counter((question.run, question.n, question.begun) for question in self.asked.values())
        self.problems += [
            f"{run}: step {n} was asked about {count} times, begun {begun or 'never'}"
            for (run, n, begun), count in questions.items()
            if count > 1
        ]

    def judge_records(self, client: Client) -> None:
        """Add what must not be in the database to the problems."""
        self._judge_turns(client)
        self._judge_programs(client)

    def _judge_turns(self, client: Client) -> None:
        """Look at what was recorded: one end for each turn, and none that failed."""
        turns = Counter[tuple[str, int]]()
        for status in client.dbos.list_workflows(name="toolcrib.turn"):
            data: Any = status.input
            kwargs = data["args"][0]["turn"]["kwargs"]
            output: Any = status.output
            if status.status != "SUCCESS":
                self.problems.append(f"{kwargs['run']}: turn {kwargs['n']} ended as {status.status}: {status.error}")
            elif output["outcome"]["kind"] == "completed":
                turns[kwargs["run"], kwargs["n"]] += 1
            elif output["outcome"]["kind"] != "suspended":
                self.problems.append(f"{kwargs['run']}: turn {kwargs['n']} came to {output['outcome']}")
        self.turns = sum(turns.values())
        self.problems += [
            f"{run}: turn {n} is recorded {count} times" for (run, n), count in turns.items() if count > 1
        ]
        if len(turns) != STEPS * len(self.agents):
            self.problems.append(f"{len(turns)} turns are recorded, and {STEPS * len(self.agents)} were to be")

    def _judge_programs(self, client: Client) -> None:
        self.calls = 0
        for run in self.programs:
            stands = program_run(client, run)
            if stands is None or stands.state != "done" or not (stands.result or {}).get("success"):
                error = None if stands is None else (stands.result or {}).get("error")
                self.problems.append(f"{run}: it is {stands and stands.state}, {error}")
            ended = Counter(entry.call_id for entry in journal_entries(client, run) if entry.kind == "ended")
            self.calls += len(ended)
            self.problems += [f"{run}: the call {call} is recorded {n} times" for call, n in ended.items() if n > 1]
            if len(ended) != STEPS:
                self.problems.append(f"{run}: {len(ended)} calls are recorded, and it makes {STEPS}")
