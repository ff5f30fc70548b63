"""What every usage store promises: in memory, in a file, on a Postgres server; also of several processes at once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.budgets.processes import completed_at_once, processes_at_once
from tests.effort import examples
from tests.postgres import Postgres
from toolcrib._run_sync import run_sync
from toolcrib.budgets import Charge, Limit, MemoryUsageStore, PostgresUsageStore, SqliteUsageStore, UsageStore

TEN = Limit(calls=10, per="minute")


def charge(limit: Limit = TEN, amount: object = 1, share: str = "ann", **options: bool) -> Charge:
    return Charge(share, Decimal(str(amount)), limit, **options)


async def test_what_is_over_is_not_counted_and_says_when_it_is_free(store: UsageStore) -> None:
    first = [await store.charge([charge(amount=4)], at) for at in (0.0, 30.0)]
    (over,) = await store.charge([charge(amount=4)], 40.0)

    assert first == [(), ()]
    assert (over.used, over.free_at) == (8, 61.0)
    assert await store.used(charge(), 40.0) == 8
    assert len(await store.charge([charge(amount=4)], 60.9)) == 1
    assert await store.charge([charge(amount=4)], 61.0) == ()


async def test_a_look_counts_nothing(store: UsageStore) -> None:
    await store.charge([charge(amount=10)], 0.0)

    assert [len(await store.overruns([charge()], at)) for at in (0.0, 60.0, 61.0)] == [1, 1, 0]
    assert await store.used(charge(), 61.0) == 0


async def test_shares_are_counted_apart(store: UsageStore) -> None:
    await store.charge([charge(amount=10)], 0.0)

    assert await store.charge([charge(share="bob")], 0.0) == ()
    assert len(await store.charge([charge()], 0.0)) == 1


async def test_of_several_limits_all_or_none_is_counted(store: UsageStore) -> None:
    day, money = Limit(calls=1, per="day"), Limit(spend=Decimal("0.3"), currency="EUR")
    charges = [charge(), charge(day, share="day"), charge(money, "0.1", "money")]
    await store.charge(charges, 0.0)

    over = await store.charge(charges, 1.0)

    assert [one.charge.share for one in over] == ["day"]
    assert [await store.used(one, 1.0) for one in charges] == [1, 1, Decimal("0.1")]


async def test_two_limits_of_one_share_count_a_call_once(store: UsageStore) -> None:
    await store.charge([charge(), charge(Limit(calls=5, per="minute"))], 0.0)

    assert await store.used(charge(), 0.0) == 1


async def test_what_a_person_approved_is_counted_beyond_the_limit(store: UsageStore) -> None:
    await store.charge([charge(amount=10)], 0.0)

    over = await store.charge([charge(may_exceed=True)], 0.0)

    assert [one.used for one in over] == [10]
    assert await store.used(charge(), 0.0) == 11


async def test_a_limit_without_a_time_is_never_free_again(store: UsageStore) -> None:
    total = charge(Limit(calls=1, by="run"))
    await store.charge([total], 0.0)

    (over,) = await store.charge([total], 1e9)

    assert over.free_at is None


async def test_amounts_are_exact(store: UsageStore) -> None:
    tenth = charge(Limit(spend=1, currency="EUR", per="day"), "0.1")

    over = [await store.charge([tenth], 0.0) for _ in range(11)]

    assert [len(one) for one in over] == [0] * 10 + [1]


async def test_a_clock_that_is_behind_gives_nothing_free(store: UsageStore) -> None:
    await store.charge([charge(amount=10)], 1_000.0)

    assert [len(await store.charge([charge()], at)) for at in (0.0, 999.0)] == [1, 1]


async def test_what_is_old_is_removed(store: UsageStore) -> None:
    old = datetime(2026, 1, 1, tzinfo=UTC)
    await store.charge([charge(share="old")], old.timestamp())
    await store.charge([charge()], (old + timedelta(days=2)).timestamp())

    assert await store.prune(old + timedelta(days=1)) == 1
    assert await store.used(charge(), (old + timedelta(days=2)).timestamp()) == 1


@settings(max_examples=examples(200), deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 400), st.integers(1, 4), st.booleans()), max_size=60),
    st.integers(0, 6),
    st.integers(1, 90),
)
def test_in_no_time_of_a_limit_more_begins_than_it_allows(
    calls: list[tuple[int, int, bool]], most: int, seconds: int
) -> None:
    limit, begun = Limit(calls=most, per=timedelta(seconds=seconds)), list[tuple[float, int]]()
    stores, at = [MemoryUsageStore()], 0.0

    for tenths, amount, is_look in calls:
        at += tenths / 10
        asked = charge(limit, amount)
        over = run_sync((stores[0].overruns if is_look else stores[0].charge)([asked], at), instead="")
        if not over and not is_look:
            begun.append((at, amount))
        elif over and over[0].free_at is not None:
            assert at < over[0].free_at <= at + seconds * 61 / 60 + 1
            assert run_sync(stores[0].overruns([asked], over[0].free_at), instead="") == ()
    for start, _ in begun:
        assert sum(amount for when, amount in begun if start <= when < start + seconds) <= most


@pytest.mark.processes
def test_of_calls_of_several_processes_no_more_begin_than_a_file_has_left(tmp_path: Path) -> None:
    with processes_at_once() as pool:
        completed = [completed_at_once(pool, SqliteUsageStore, str(tmp_path / f"{n}.db")) for n in range(3)]

    assert completed == [10] * 3


def test_of_calls_of_several_processes_no_more_begin_than_a_server_has_left(postgres: Postgres) -> None:
    with processes_at_once() as pool:
        completed = [completed_at_once(pool, PostgresUsageStore, postgres.url(f"budgets_{n}")) for n in range(3)]

    assert completed == [10] * 3
