"""Requests that are reminded of, escalated, delegated, answered and expired in any order, by a clock that may go back.

What may be is said a second time here, without our code: who may answer at a time, and who counts as one person.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.approvers.stores import wall_clock
from tests.approvers.test_expiry import asked, refund
from tests.effort import examples
from toolcrib import Pipeline, Run, Toolset
from toolcrib.approvals import LedgerStore, MemoryApprovalStore, Notice, SqliteApprovalStore
from toolcrib.approvers import ApproverRule, ApproverRules, Delegation, Groups, Identity
from toolcrib.calls import ApprovalRequest, Suspended
from toolcrib.clock import time_of
from toolcrib.errors import ApprovalError

FINANCE, MANAGERS = ["ann", "bob", "cid"], ["eve"]
WHO = st.sampled_from(["ann", "bob", "cid", "eve", "fay", "gil", "ada"])
MINUTES = st.integers(1, 9)  # tens of them
ADDRESSES = {"all": (), "managers": ("managers",)}


def minutes(number: float) -> timedelta:
    return timedelta(minutes=10 * number)


class Asked(RuleBasedStateMachine):
    """One request, its clock, and what the model knows of it: times are tens of minutes after it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.folder, self.runner = TemporaryDirectory(), asyncio.Runner()
        self.time, self.is_closed, self.is_approved = 0.5, False, False
        self.answers: list[tuple[str, float]] = []
        self.sent: list[tuple[str, str]] = []
        self.read: list[tuple[str, tuple[Notice, ...]]] = []
        self.begun: list[tuple[str, tuple[Notice, ...]]] = []

    def teardown(self) -> None:
        self.runner.close()
        self.folder.cleanup()

    @initialize(
        in_file=st.booleans(),
        asker=st.sampled_from(["ada", "cid", "eve"]),
        people=st.integers(1, 2),
        times=st.tuples(MINUTES, MINUTES, MINUTES),
        given=st.dictionaries(WHO, st.tuples(WHO, MINUTES, MINUTES), max_size=2),
    )
    def ask(self, in_file: bool, asker: str, people: int, times: tuple[int, int, int], given: dict[str, Any]) -> None:
        self.asker, self.people = asker, people
        self.remind, self.escalate = sorted(times)[0], times[1]
        self.expires = max(times) + 1
        self.clock = wall_clock()
        self.given = [
            (person, to, begins, begins + lasts)
            for person, (to, begins, lasts) in given.items()
            if to != person and to not in given and person in (*FINANCE, *MANAGERS)
        ]
        self.store: LedgerStore = (
            SqliteApprovalStore(Path(self.folder.name) / "approvals.db", clock=self.clock)
            if in_file
            else MemoryApprovalStore(clock=self.clock)
        )
        self.pipeline, self.run_ = self._guarded(), Run(principal=asker, approvals=self.store)
        self.waiting: Suspended = self.runner.run(asked(self.pipeline, self.run_))
        self.clock.advance(minutes(0.5).total_seconds())

    def _guarded(self) -> Pipeline:
        began = time_of(self.clock)
        rule = ApproverRule(
            name="refunds",
            of={"finance": self.people},
            remind=minutes(self.remind),
            escalate={minutes(self.escalate): "managers"},
            expires=minutes(self.expires),
        )
        rights = [Delegation(one, to, began + minutes(end), began + minutes(at)) for one, to, at, end in self.given]
        groups = Groups({"finance": FINANCE, "managers": MANAGERS}, delegations=rights)
        return Pipeline(Toolset([refund]).with_gates(ApproverRules([rule], groups)))

    @property
    def request(self) -> ApprovalRequest:
        return self.waiting.request

    # --- the model

    def look(self) -> None:
        """What the store does whenever it is read or written."""
        self.is_closed = self.is_closed or self.time >= self.expires

    def linked(self, who: str, at: float) -> set[str]:
        """Return who counts as one person with another at a time."""
        pairs = [{person, to} for person, to, begins, ends in self.given if begins <= at < ends]
        found = {who}
        for _ in pairs:
            found = found.union(*(pair for pair in pairs if pair & found))
        return found

    def may(self, who: str, at: float) -> bool:
        givers = {person for person, to, begins, ends in self.given if to == who and begins <= at < ends}
        entitled = {*FINANCE, *(MANAGERS if at >= self.escalate else [])}
        return bool({who, *givers} & entitled) and self.asker not in self.linked(who, at)

    def counts(self, answers: list[tuple[str, float]]) -> int:
        people: list[set[str]] = []
        for who, at in answers:
            names = self.linked(who, at)
            people = [
                *(one for one in people if not one & names),
                names.union(*(one for one in people if one & names)),
            ]
        return len(people)

    # --- what happens

    @rule(by=st.integers(-6, 9))
    def pass_time(self, by: int) -> None:
        self.time += by
        self.clock.advance(minutes(by).total_seconds())

    @rule()
    def show(self) -> None:
        self.look()

        entry = self.runner.run(self.store.show(self.request.id))

        assert (entry.state == "pending") == (not self.is_closed)

    @rule(who=WHO)
    def answer(self, who: str) -> None:
        self.look()
        further = [*self.answers, (who, self.time)]
        is_taken = not self.is_closed and self.may(who, self.time) and self.counts(further) > self.counts(self.answers)
        grant = self.request.grant(Identity(who), at=time_of(self.clock))
        try:
            self.runner.run(self.store.answer(grant))
        except ApprovalError:
            assert not is_taken
            return

        assert is_taken
        self.answers = further
        self.is_approved = self.is_closed = self.counts(further) == self.people

    @rule()
    def come_back(self) -> None:
        self.look()
        expected = "suspended" if not self.is_closed else "completed" if self.is_approved else "rejected"

        outcome = self.runner.run(self.pipeline.run(replace(self.waiting), self.run_))

        assert outcome.kind == expected or (expected == "completed" and outcome.text().endswith("ask again"))

    @rule(address=st.sampled_from([*ADDRESSES]))
    def read_notices(self, address: str) -> None:
        self.look()

        due = self.runner.run(self.store.notices_due(address, ADDRESSES[address]))

        times = {"pending": -100.0, "reminder": self.remind, "escalated:managers": self.escalate}
        names = {name for notice in due for name in notice.covers}
        assert not (self.is_closed and due)
        assert all(times[name] <= self.time for name in names)
        assert not {(address, name) for name in names} & {*self.sent}
        self.read.append((address, due))

    @precondition(lambda self: self.read)
    @rule(data=st.data())
    def send(self, data: st.DataObject) -> None:
        address, due = data.draw(st.sampled_from(self.read))
        self.look()

        begun = self.runner.run(self.store.begin_notices(address, due))

        assert not (self.is_closed and begun)
        self.sent += [(address, name) for notice in begun for name in notice.covers]
        assert len(self.sent) == len({*self.sent})
        self.begun.append((address, begun))

    @precondition(lambda self: self.begun)
    @rule()
    def fail_to_send(self) -> None:
        address, begun = self.begun.pop()
        self.look()

        self.runner.run(self.store.undo_notices(address, begun))

        for notice in begun:
            for name in notice.covers:
                self.sent.remove((address, name))


TestAsked = pytest.mark.systems(Asked.TestCase)  # a long search
TestAsked.settings = settings(max_examples=examples(400), stateful_step_count=30, deadline=None)
