"""Grants of all widths over one store: no call runs that no sentence covers which a person was shown."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from tests.approvals.widths import (
    CALLS,
    CHANGES,
    CHOICES,
    PARCEL_BOUNDS,
    VALUES,
    Shop,
    pay_in_process,
    start,
    uncovered,
)
from tests.effort import examples
from toolcrib import SqliteApprovalStore

CALL = st.tuples(st.just("call"), st.lists(CALLS, min_size=1, max_size=3))
ANSWER = st.tuples(st.just("answer"), st.integers(0, 5), CHOICES, st.booleans())
AGAIN = st.tuples(st.just("again"), st.integers(0, 5), st.lists(CHANGES, min_size=1, max_size=3))
STEPS = st.one_of(
    CALL,
    AGAIN,
    AGAIN,
    ANSWER,
    ANSWER,
    st.tuples(st.just("resume"), st.integers(0, 5), st.sampled_from([None, None, 0, 1, 2])),
    st.tuples(st.just("revoke"), st.integers(0, 5)),
    st.tuples(st.just("wait"), st.integers(1, 30)),
)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Sequence[SqliteApprovalStore]:
    path = tmp_path_factory.mktemp("widths") / "approvals.db"
    return [SqliteApprovalStore(path) for _ in range(2)]


async def happen(shop: Shop, steps: Sequence[Any]) -> None:
    for kind, *about in steps:
        match kind:
            case "call":
                await shop.call(*about)
            case "again":
                await shop.again(*about)
            case "wait":
                shop.wait(*about)
            case "revoke" if shop.grants:
                await shop.revoke(about[0] % len(shop.grants))
            case "answer" if shop.pending:
                await shop.answer(about[0] % len(shop.pending), *about[1:])
            case "resume" if shop.pending:
                await shop.resume(about[0] % len(shop.pending), *about[1:])
            case _:
                pass


@pytest.mark.systems  # a long search
@settings(max_examples=examples(300), deadline=None)
@given(
    steps=st.tuples(CALL, ANSWER, AGAIN).flatmap(
        lambda first: st.lists(STEPS, max_size=10).map(lambda then: [*first, *then])
    )
)
def test_no_call_runs_that_no_sentence_covers_which_a_person_was_shown(
    stores: Sequence[SqliteApprovalStore], steps: list[Any]
) -> None:
    shop = Shop(stores)

    asyncio.run(happen(shop, steps))

    event(f"{min(len(shop.effects), 4)} effects of {min(len(shop.sentences), 3)} sentences")
    assert not uncovered(shop.effects, shop.sentences), (shop.effects, shop.sentences)


LIMITED = st.fixed_dictionaries({"uses": st.sampled_from(["2", "3", "4"]), "total": st.sampled_from(["", "12"])}).map(
    lambda limits: {
        **dict.fromkeys(VALUES, "any"),
        **dict.fromkeys([*PARCEL_BOUNDS][1:], ""),
        "scope": "within",
        "window": None,
        "hours": "",
        **limits,
    }
)


@pytest.fixture(scope="module")
def two_processes() -> Iterator[ProcessPoolExecutor]:
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(2, mp_context=context, initializer=start, initargs=(context.Barrier(2),)) as pool:
        yield pool


@pytest.mark.processes
@settings(max_examples=examples(30), deadline=None)
@given(call=CALLS, choice=LIMITED | CHOICES, changes=st.lists(CHANGES, min_size=6, max_size=10))
def test_two_processes_at_once_run_no_more_calls_than_a_sentence_covers(
    stores: Sequence[SqliteApprovalStore],
    two_processes: ProcessPoolExecutor,
    call: tuple[dict[str, Any], str, int],
    choice: dict[str, Any],
    changes: list[dict[str, Any]],
) -> None:
    shop = Shop(stores)
    asyncio.run(happen(shop, [("call", [call]), ("answer", 0, choice, False)]))
    alike = [({**call[0], **change}, *call[1:]) for change in changes]

    at_once = [two_processes.submit(pay_in_process, str(stores[0].path), alike[half::2]) for half in (0, 1)]
    effects = [*shop.effects, *(effect | {"tick": shop.tick + 1} for done in at_once for effect in done.result(60))]

    assert not uncovered(effects, shop.sentences), (effects, shop.sentences)
