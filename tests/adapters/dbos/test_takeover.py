"""Work that a worker took and does not run: when it is put back."""

from __future__ import annotations

from toolcrib.adapters.dbos._takeover import IdleWork
from toolcrib.adapters.dbos._workers import LEASE_SECONDS


def test_work_that_was_not_run_for_a_lease_is_stuck() -> None:
    idle = IdleWork()

    found = [idle.stuck(["a", "b"], {"b"}, at) for at in (0.0, LEASE_SECONDS - 1, LEASE_SECONDS)]

    assert found == [set(), set(), {"a"}]


def test_work_that_a_busy_worker_began_late_is_not_stuck() -> None:
    idle = IdleWork()
    idle.stuck(["a"], set(), 0.0)

    assert idle.stuck(["a"], {"a"}, LEASE_SECONDS) == set()
    assert idle.stuck(["a"], set(), LEASE_SECONDS + 1) == set()


def test_work_that_was_put_back_and_taken_again_has_a_new_lease() -> None:
    idle = IdleWork()
    idle.stuck(["a"], set(), 0.0)
    idle.stuck([], set(), 5.0)

    assert idle.stuck(["a"], set(), LEASE_SECONDS) == set()
