from __future__ import annotations

from tests.code.hosts import Run


async def test_a_short_sleep_is_slept_and_counted(monty_run: Run) -> None:
    code = """
import asyncio, time
time.sleep(0.02)
await asyncio.gather(asyncio.sleep(0.02), asyncio.sleep(0.02))
time.sleep(0.06)
"""

    result = await monty_run(code, sleep_time=0.1)

    assert "wants to sleep 0.06 s more" in str(result.error)


MEGABYTE = 1024 * 1024


async def test_memory_that_grows_bit_by_bit_is_refused(monty_run: Run) -> None:
    code = "x = []\nwhile True:\n    try: x.append('a' * 100_000 + str(len(x)))\n    except MemoryError: pass"

    result = await monty_run(code, memory=16 * MEGABYTE)

    assert result.error is not None
    assert result.error.kind == "memory"
    assert "more than the 16 MB" in result.error.message
