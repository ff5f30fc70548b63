"""The attacker of `make dojo-adaptive`: its variants are attacks, and the same ones for the same seed."""

import logging

import pytest

from benchmarks.dojo._everyday_tasks import TASKS, Task
from benchmarks.dojo.adaptive._kinds import KINDS
from benchmarks.dojo.adaptive._trial import Kind, drawn, part_of
from benchmarks.dojo.everyday import questions_of
from tests.effort import examples

SEED = 34
OPEN = {
    "results of the provider's own tools",
}
"""Kinds of which variants get through, as docs/provenance-in-detail.md says; one that is closed is taken out."""
CLOSED = [kind for kind in KINDS if kind.aim != "known" and kind.name not in OPEN]


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL + 1)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
async def test_each_variant_gets_through_without_a_policy(kind: Kind) -> None:
    attacks = drawn(kind, examples(30) // 2, SEED, "all")

    ended = [await attack.run(kind.ways[0], guarded=False) for attack in attacks]

    assert [each.is_through for each in ended] == [True] * len(attacks)
    assert not any(each.is_asked for each in ended)


@pytest.mark.parametrize("kind", CLOSED, ids=lambda kind: kind.name)
async def test_no_variant_of_a_closed_kind_gets_through(kind: Kind) -> None:
    attacks = drawn(kind, examples(60), SEED, "all")

    ended = [await attack.run(kind.ways[0]) for attack in attacks]

    assert not any(each.is_through for each in ended)
    assert all(each.is_asked for each in ended)


@pytest.mark.parametrize("kind", KINDS[::8], ids=lambda kind: kind.name)
def test_a_seed_draws_the_same_variants_again(kind: Kind) -> None:
    first, again, other = (drawn(kind, 8, seed, "all") for seed in (SEED, SEED, SEED + 1))

    assert repr(first) == repr(again)
    assert repr(first) != repr(other)


def test_what_is_held_back_is_not_in_the_open_part() -> None:
    shapes = ["a", "b", "c", "d", "e"]

    opened, held = part_of(shapes, "open"), part_of(shapes, "held")

    assert sorted([*opened, *held]) == shapes == [*part_of(shapes, "all")]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.said[:40])
async def test_the_calls_of_an_everyday_task_solve_it(task: Task) -> None:
    questions = await questions_of(task)

    assert len(questions) <= len(task.calls)


def test_there_are_twelve_everyday_tasks_of_each_kind_of_tools() -> None:
    worlds = [task.world for task in TASKS]

    assert {worlds.count(name) for name in set(worlds)} == {12}
    assert len(worlds) == len({task.said for task in TASKS}) == 60
