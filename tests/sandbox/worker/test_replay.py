"""Programs that run a second time: the same numbers, the same times, the same calls."""

from __future__ import annotations

import pytest

from tests.sandbox.worker.unsealed import TOOLS, UnsealedWorker

CHANCE = """
import datetime, os, random, secrets, time, uuid
found = [random.random(), random.Random().random(), random.SystemRandom().random(), random.sample(range(99), 5)]
random.seed()
found += [random.random(), os.urandom(4).hex(), secrets.token_hex(4), str(uuid.uuid4()), str(uuid.uuid1())]
found += [time.time(), time.time_ns(), time.monotonic(), time.perf_counter_ns(), time.process_time(), time.ctime()]
found += [time.strftime("%H:%M:%S"), time.localtime().tm_sec, time.gmtime().tm_sec]
found += [time.clock_gettime(time.CLOCK_REALTIME)]
found += [datetime.datetime.now(), datetime.datetime.utcnow(), datetime.datetime.today(), datetime.date.today()]
found += [datetime.datetime.now(datetime.timezone.utc), hash("x"), list({"a", "b", "c", "d"})]
found
"""


def run_fresh(code: str, **options: object) -> tuple[object, list[int], list[object]]:
    worker = UnsealedWorker(**TOOLS)
    try:
        ran = worker.run(code, keep=False, **options)
    finally:
        worker.close()
    told = [{**frame, "clock": None, "for": None} for frame in ran.frames]
    return ran.done.get("v"), ran.clock, told


def test_the_same_seed_and_clock_give_the_same_values() -> None:
    value, clock, _ = run_fresh(CHANCE)

    again, clock_again, _ = run_fresh(CHANCE, clock=clock)

    assert again == value
    assert clock_again == clock


def test_another_seed_gives_others() -> None:
    code = "import random, uuid\n[random.random(), str(uuid.uuid4())]"

    assert run_fresh(code, seed="a")[0] != run_fresh(code, seed="b")[0]


BUSY = """
import asyncio, time, random
async def one(i):
    await asyncio.sleep(random.random())
    async with asyncio.timeout(0.5):
        await asyncio.sleep(random.random() / 3)
    return await add(i, more=int(asyncio.get_running_loop().time() * 1000))
started = time.monotonic()
found = await asyncio.gather(*(one(i) for i in range(20)), return_exceptions=True)
[repr(found), time.monotonic() - started, parallel((add, 1), (echo, time.time())), list(count(3))]
"""


def test_tasks_take_turns_as_they_did() -> None:
    value, clock, frames = run_fresh(BUSY)

    again, clock_again, frames_again = run_fresh(BUSY, clock=clock)

    assert again == value
    assert frames_again == frames
    assert clock_again == clock


def test_the_clock_goes_on_where_the_readings_end() -> None:
    ran = run_fresh("import time\n[time.monotonic_ns() for _ in range(4)]", clock=[5_000, 6_000])

    first, second, third, fourth = ran[0]  # type: ignore[misc]
    assert (first, second) == (5_000, 6_000)
    assert 6_000 <= third <= fourth < 10**9


def test_readings_beyond_the_most_are_made_up_and_go_on(worker: UnsealedWorker) -> None:
    ran = worker.run("import time\nx = [time.time_ns() for _ in range(5000)]\n[x == sorted(x), x[-1] - x[1999]]")

    assert ran.value == [True, 3_000_000]
    assert len(ran.clock) == 2_000


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("type(datetime.datetime.now()) is datetime.datetime", True),
        ("repr(datetime.datetime(2026, 1, 2))", "datetime.datetime(2026, 1, 2, 0, 0)"),
        ("isinstance(datetime.datetime.now(), datetime.date)", True),
        ("class D(datetime.datetime): pass\ntype(D.now()).__name__", "D"),
        ("datetime.datetime.now(tz=datetime.UTC).tzinfo is datetime.UTC", True),
        ("datetime.datetime.now().tzinfo", None),
        ("datetime.datetime.now(zoneinfo.ZoneInfo('Asia/Tokyo')).utcoffset()", "PT9H"),
        ("abs((datetime.datetime.now() - datetime.datetime.utcnow()).total_seconds()) < 1", True),
        ("datetime.datetime.now(3)", TypeError),
        ("time.sleep(-1)", ValueError),
        ("time.sleep('x')", TypeError),
        ("time.sleep(1e300)", OverflowError),
        ("time.sleep(True)", None),
    ],
)
def test_time_keeps_its_kind(worker: UnsealedWorker, code: str, value: object) -> None:
    ran = worker.run(f"import datetime, time, zoneinfo\n{code}")

    if isinstance(value, type):
        assert ran.error["type"] == value.__name__
    else:
        assert ran.value == value
