"""Whatever a model replies and a host does, no transcript is committed that its provider refuses."""

from __future__ import annotations

import asyncio
from copy import deepcopy
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from tests.effort import examples
from tests.rounds.conversations import Conversation, damage, drive
from tests.rounds.moves import Damage, a_round, any_move, moves_of
from tests.rounds.provider_rules import is_about_items, refused
from tests.rounds.replies import FORMATS
from toolcrib.formats import PROVIDERS
from toolcrib.rounds import WireFormat

ROUNDS = examples(10_000)  # for each provider

each_format = pytest.mark.parametrize("format", FORMATS)


@each_format
async def test_no_round_comes_to_a_transcript_that_its_provider_refuses(format: WireFormat) -> None:
    made = await drive(format, ROUNDS)

    assert made.decoded >= ROUNDS
    assert made.committed > ROUNDS * 0.65
    assert made.answered > ROUNDS * 0.4
    assert made.cut > ROUNDS * 0.15
    assert made.refused > ROUNDS * 0.05


class Machine(RuleBasedStateMachine):
    """The same moves in any order, for Hypothesis to find the shortest way to what goes wrong."""

    format: WireFormat = "openai"

    @initialize()
    def begin(self) -> None:
        self.runner = asyncio.Runner()
        self.conversation = Conversation(self.format)

    @rule(random=st.randoms(use_true_random=False))
    def do_anything(self, random: Random) -> None:
        self.runner.run(self.conversation.make(any_move(random)))

    @rule(random=st.randoms(use_true_random=False))
    def take_a_round_to_its_end(self, random: Random) -> None:
        for move in a_round(random):
            self.runner.run(self.conversation.make(move))

    def teardown(self) -> None:
        if hasattr(self, "runner"):
            self.runner.close()


@each_format
def test_hypothesis_finds_no_way_to_a_transcript_that_is_refused(format: WireFormat) -> None:
    machine = type("Machine", (Machine,), {"format": format})
    quiet = [HealthCheck.too_slow, HealthCheck.filter_too_much]
    some = settings(max_examples=examples(40), stateful_step_count=10, deadline=None, suppress_health_check=quiet)

    run_state_machine_as_test(machine, settings=some)


# --- the check itself, on what it has to refuse


@each_format
async def test_a_damaged_transcript_is_refused_by_the_check_as_by_the_rules(format: WireFormat) -> None:
    by_rules, by_check = list[bool](), list[bool]()

    for seed in range(150):
        damaged = await _transcript(format, seed)
        damage(damaged, Random(seed))
        by_rules.append(any(map(is_about_items, refused(format, damaged))))
        by_check.append(bool(PROVIDERS[format].check(damaged)))

    assert by_check == by_rules
    assert sum(by_rules) > 50


async def _transcript(format: WireFormat, seed: int) -> list[Any]:
    conversation = Conversation(format)
    for move in moves_of(seed, rounds=3):
        if not isinstance(move, Damage):
            await conversation.make(move)
    return deepcopy(list(conversation.transcript))
