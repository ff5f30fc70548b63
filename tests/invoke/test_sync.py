"""The edge between plain code and async code."""

import pytest

from toolcrib.invoke import run_sync


async def answer() -> int:
    return 42


def test_plain_code_waits_for_async_work() -> None:
    assert run_sync(answer()) == 42


async def test_inside_a_running_loop_it_says_what_to_write() -> None:
    with pytest.raises(RuntimeError, match=r"await toolkit.execute_async\(code\)"):
        run_sync(answer(), "await toolkit.execute_async(code)")
