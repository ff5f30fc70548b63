"""What a worker may say is checked: one that lies is ended, and the program's host learns why."""

from __future__ import annotations

import asyncio
import gc
import json
import select
import time
import weakref

import pytest

from tests.code.hosts import TableHost, costly
from tests.sandbox.fake_worker import Act, WorkerEnd, faked
from toolcrib.sandbox import OutputStream, Program, SandboxLimits, SandboxResult
from toolcrib.sandbox._worker_end import NOTHING, Usage

LIMITS = SandboxLimits()


async def result_of(
    act: Act, host: TableHost | None = None, limits: SandboxLimits = LIMITS, usage: Usage = NOTHING
) -> SandboxResult:
    host = host or TableHost()
    program = Program("1", tuple(host.table), limits, streams=frozenset({"stream"}))
    with faked(act, usage) as sandbox:
        return await sandbox.run(program, host)


CALL = b'{"t":"call","id":1,"name":"add","args":[],"kwargs":{},"wait":true'
FRAMES = [
    (b"", "not JSON"),
    (b"\x80\x04K\x01.", "not JSON"),
    (b"[]", "not an object"),
    (b"{}", "`t` is not of type str"),
    (b'{"t":1}', "`t` is not of type str"),
    (b'{"t":"exec","code":"1"}', "unknown kind"),
    (b'{"t":"out","s":1,"err":false}', "`s` is not of type str"),
    (b'{"t":"out","s":"\\ud800","err":false}', "not JSON"),
    (b'{"t":"wait","for":-1}', "not a number of seconds"),
    (b'{"t":"wait","for":true}', "not a number of seconds"),
    (b'{"t":"wait","for":1e999}', "not a number of seconds"),
    (b'{"t":"done","v":' + b"[" * 100_000 + b"}", "recursion"),
    (b'{"t":"done","v":' + b"9" * 10_000 + b"}", "not JSON"),
    (b'{"t":"done","v":[NaN}', "not JSON"),
    (b'{"v":NaN,"t":"done"}', "not JSON"),
    (
        b'{"t":"done","error":{"kind":"memory","type":"","message":"","line":NaN,"traceback":""}}',
        "`line` is not a line number",
    ),
    (b'{"t":"done","clock":[Infinity]}', "invalid clock reading"),
    (b'{"t":"wait","for":NaN}', "not JSON"),
    (b'{"t":"done","error":"bad"}', "`error` is not of type dict"),
    (b'{"t":"done","error":{"kind":"time","type":"","message":"","traceback":""}}', "unknown kind"),
    (b'{"t":"done","artifacts":"a"}', "`artifacts` is not of type list"),
    (b'{"t":"done","artifacts":["a"]}', "1 artifact, where 20 is the most, with 0 blobs"),
    (b'{"t":"done","artifacts":["../a"],"blobs":[0]}', "invalid name of an artifact"),
    (b'{"t":"done","artifacts":["/a"],"blobs":[0]}', "invalid name of an artifact"),
    (b'{"t":"done","artifacts":["a\\\\b"],"blobs":[0]}', "invalid name of an artifact"),
    (b'{"t":"done","artifacts":["a\\n"],"blobs":[0]}', "invalid name of an artifact"),
    (b'{"t":"done","artifacts":[1],"blobs":[0]}', "invalid name of an artifact"),
    (b'{"t":"done","artifacts":["a","a"],"blobs":[0,0]}', "invalid name of an artifact"),
    (b'{"t":"done","artifacts":["' + b"a" * 201 + b'"],"blobs":[0]}', "invalid name of an artifact"),
    (CALL.replace(b'"id":1', b'"id":2') + b"}", "call 2 after call 0"),
    (CALL.replace(b'"id":1', b'"id":true') + b"}", "`id` is not of type int"),
    (CALL.replace(b'"id":1', b'"id":1.0') + b"}", "`id` is not of type int"),
    (CALL.replace(b"add", b"os.system") + b"}", "`os.system` is called, which was not offered"),
    (CALL.replace(b'"args":[]', b'"args":{}') + b"}", "`args` is not of type list"),
    (CALL.replace(b'"args":[]', b'"args":[NaN]') + b"}", "not JSON"),
    (CALL.replace(b'"kwargs":{}', b'"kwargs":[]') + b"}", "`kwargs` is not of type dict"),
    (CALL.replace(b"true", b"1") + b"}", "`wait` is not of type bool"),
    (CALL + b',"line":-1}', "`line` is not a line number"),
    (CALL + b',"clock":[' + b"1," * 10_000 + b"1]}", "too many readings"),
    (CALL + b',"clock":["now"]}', "invalid clock reading"),
    (CALL + b',"clock":[9223372036854775808]}', "invalid clock reading"),
    (b'{"t":"next","id":1,"wait":true}', "not an open stream"),
    (b'{"t":"drop","id":1}', "which is not a call"),
]


@pytest.mark.parametrize(("frame", "why"), FRAMES, ids=[frame[:70].decode(errors="replace") for frame, _ in FRAMES])
async def test_a_frame_that_is_none_ends_the_worker(frame: bytes, why: str) -> None:
    host = TableHost()

    def lie(worker: WorkerEnd) -> None:
        worker.read()
        worker.raw(frame)
        worker.until_killed()

    result = await result_of(lie, host)

    assert host.calls == []
    assert result.error is not None
    assert (result.error.kind, result.error.type) == ("sandbox", "SandboxError")
    assert result.error.message.startswith("the worker broke the protocol, and was ended: ")
    assert why in result.error.message


async def test_a_frame_that_is_too_long_is_refused_by_its_length() -> None:
    def lie(worker: WorkerEnd) -> None:
        worker.bytes((1 << 31).to_bytes(4, "big"))
        worker.until_killed()

    result = await result_of(lie)

    assert "a frame of 2147483648 bytes" in str(result.error)


@pytest.mark.parametrize(
    ("sizes", "why"), [([1 << 40], "blobs of 1099511627776 bytes, where 64000000 is"), ([-1], "invalid size of a blob")]
)
async def test_blobs_are_refused_before_they_are_read(sizes: list[int], why: str) -> None:
    def lie(worker: WorkerEnd) -> None:
        worker.send("done", blobs=sizes)
        worker.until_killed()

    assert why in str((await result_of(lie)).error)


async def test_one_that_does_not_send_all_of_a_blob_has_its_time() -> None:
    def trickle(worker: WorkerEnd) -> None:
        worker.send("done", blobs=[1_000_000])
        worker.bytes(b"x" * 1_000)
        worker.until_killed()

    result = await result_of(trickle, limits=SandboxLimits(program_time=0.2))

    assert result.error is not None
    assert result.error.kind == "time"


async def test_a_death_within_a_blob_is_one() -> None:
    def die(worker: WorkerEnd) -> None:
        worker.send("done", blobs=[1_000_000])
        worker.bytes(b"x" * 1_000)

    result = await result_of(die)

    assert "the worker process died" in str(result.error)


async def test_blobs_with_a_frame_that_has_none_are_no_frames() -> None:
    def lie(worker: WorkerEnd) -> None:
        worker.send("out", s="x", err=False, blobs=[4])
        worker.bytes((1 << 31).to_bytes(4, "big"))
        worker.until_killed()

    assert "a frame of 2147483648 bytes" in str((await result_of(lie)).error)


async def test_an_id_is_used_once() -> None:
    def lie(worker: WorkerEnd) -> None:
        worker.call(1, "add", 1)
        worker.call(1, "add", 2)
        worker.until_killed()

    assert "call 1 after call 1" in str((await result_of(lie)).error)


async def test_a_stream_has_one_wish_at_a_time() -> None:
    def lie(worker: WorkerEnd) -> None:
        worker.call(1, "stream")
        worker.send("next", id=1, wait=False)
        worker.send("next", id=1, wait=False)
        worker.until_killed()

    host = TableHost(stream=lambda: asyncio.sleep(60))

    assert "which is not an open stream" in str((await result_of(lie, host)).error)


async def test_frames_in_any_pieces_are_read() -> None:
    def in_pieces(worker: WorkerEnd) -> None:
        body = b'{"t":"out","s":"one","err":false}'
        frame = len(body).to_bytes(4, "big") + body
        last = b'{"t":"done","v":[1]}'
        whole = frame * 50 + len(last).to_bytes(4, "big") + last
        for at in range(0, len(whole), 7):
            worker.bytes(whole[at : at + 7])

    result = await result_of(in_pieces)

    assert (result.value, result.output, result.error) == ([1], "one" * 50, None)


async def test_a_worker_that_goes_without_a_word_is_dead() -> None:
    result = await result_of(lambda worker: None)

    assert result.error is not None
    assert result.error.kind == "sandbox"
    assert result.error.message.startswith("the worker process died, and the program with it: it crashed, or took more")


async def test_a_death_while_a_tool_runs_stops_the_tool() -> None:
    host = TableHost()

    def die(worker: WorkerEnd) -> None:
        worker.read()
        worker.call(1, "slow", 60, wait=True)

    result = await result_of(die, host)

    assert "the worker process died" in str(result.error)
    assert host.cancelled == ["slow"]


async def test_one_that_computes_under_the_name_of_waiting_is_held_to_its_sleep() -> None:
    def wait(worker: WorkerEnd) -> None:
        worker.send("wait", **{"for": 3})
        worker.until_killed()

    assert "wants to sleep 3 s more" in str((await result_of(wait, limits=SandboxLimits(sleep_time=2))).error)


async def test_one_that_waits_for_nothing_is_ended() -> None:
    def wait(worker: WorkerEnd) -> None:
        worker.send("wait", **{"for": None})
        worker.until_killed()

    assert "something that never comes" in str((await result_of(wait)).error)


async def test_one_that_never_reads_does_not_hold_the_host() -> None:
    def call(worker: WorkerEnd) -> None:
        worker.call(1, "big")
        worker.send("wait", **{"for": None})
        hung_up = select.poll()
        hung_up.register(worker.channel, select.POLLHUP)
        hung_up.poll(60_000)

    result = await result_of(call, TableHost(big=lambda: "x" * 5_000_000), limits=SandboxLimits(program_time=0.2))

    assert result.error is not None
    assert result.error.kind == "time"


async def test_replies_that_are_not_read_hold_back_further_calls() -> None:
    seen: list[int] = []
    host = TableHost(big=lambda: "x" * 1_000_000)

    def call_first(worker: WorkerEnd) -> None:
        worker.read()
        for number in range(1, 201):
            worker.call(number, "big")
        while not seen or seen[-1] < 64 or len(host.calls) > seen[-1]:  # until no more of them begin
            seen.append(len(host.calls))
            time.sleep(0.3)
        answered = set[int]()
        while len(answered) < 200:
            worker.send("wait", **{"for": None})
            more = True
            while more:
                frame = worker.read()
                answered.add(frame["id"])
                more = frame.get("more", False)
        worker.send("done", v=len(answered))

    result = await result_of(call_first, host, limits=SandboxLimits(calls_in_flight=10, program_time=250))

    assert seen[-1] < 80
    assert (result.value, result.error) == (200, None)


async def test_a_call_for_which_the_program_stands_still_is_not_held_back() -> None:
    host = TableHost(big=lambda: "x" * 1_000_000, small=lambda: 1)

    def call_first(worker: WorkerEnd) -> None:
        worker.read()
        for number in range(1, 201):
            worker.call(number, "big")
        worker.call(201, "small", wait=True)
        answer = worker.read()
        worker.send("done", v=answer["id"])

    result = await result_of(
        call_first, host, limits=SandboxLimits(calls_in_flight=10, program_time=200, wall_time=200)
    )

    assert result.error is None
    assert result.value == 201


async def test_one_that_waits_before_it_has_read_is_ended() -> None:
    def lie(worker: WorkerEnd) -> None:
        worker.read()
        worker.call(1, "big", wait=True)
        worker.call(2, "big", wait=True)
        hung_up = select.poll()
        hung_up.register(worker.channel, select.POLLHUP)
        hung_up.poll(60_000)

    result = await result_of(lie, TableHost(big=lambda: "x" * 5_000_000))

    assert "it waits again before it has read what it waited for" in str(result.error)


async def test_a_flood_is_ended_at_its_limit() -> None:
    def flood(worker: WorkerEnd) -> None:
        while True:
            worker.send("out", s="x" * 50_000, err=False)

    result = await result_of(flood, limits=SandboxLimits(output_killed_at=1_000_000))

    assert result.error is not None
    assert result.error.kind == "output"


async def test_a_flood_while_a_tool_runs_waits_in_the_socket() -> None:
    sent = 0

    def flood(worker: WorkerEnd) -> None:
        nonlocal sent
        worker.call(1, "slow", 60, wait=True)
        while True:
            worker.send("out", s="x" * 50_000, err=False)
            sent += 50_000

    result = await result_of(flood, limits=SandboxLimits(output_killed_at=500_000_000, wall_time=0.2))

    assert result.error is not None
    assert result.error.kind == "time"
    assert sent < 20_000_000


@pytest.mark.parametrize("waits", [True, False], ids=["one by one", "at once"])
async def test_what_the_host_computes_to_read_calls_is_time_of_the_program(waits: bool) -> None:
    host = TableHost(add=costly)

    def act(worker: WorkerEnd) -> None:
        worker.read()
        for number in range(1, 100):
            worker.call(number, "add", wait=waits)
            if not waits:
                worker.send("wait")
            worker.read()
        worker.send("done", v=1)

    ended = await result_of(act, host, SandboxLimits(program_time=0.3))

    assert ended.error is not None
    assert (ended.error.kind, ended.error.type) == ("time", "TimeoutError")
    assert len(host.calls) <= 4  # the last of which has begun


async def test_what_comes_from_a_program_is_read_at_its_own_cost() -> None:
    """Frames of a megabyte, which the program waits for all the time, as it says."""

    def act(worker: WorkerEnd) -> None:
        worker.read()
        body = json.dumps({"t": "wait", "for": 0, "more": [{}] * 250_000}).encode()
        while True:
            worker.raw(body)
            worker.read()

    ended = await result_of(act, limits=SandboxLimits(program_time=0.3))

    assert ended.error is not None
    assert (ended.error.kind, ended.error.type) == ("time", "TimeoutError")


async def test_other_programs_get_their_turn_between_the_frames_of_one() -> None:
    turns = 0
    seen: list[int] = []

    async def neighbour() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    class Host(TableHost):
        def output(self, text: str, stream: OutputStream) -> None:
            seen.append(turns)

    def act(worker: WorkerEnd) -> None:
        worker.read()
        frame = json.dumps({"t": "out", "s": "a", "err": False}).encode()
        worker.bytes((len(frame).to_bytes(4, "big") + frame) * 1_000)
        worker.send("done", v=1)

    beside = asyncio.create_task(neighbour())
    await result_of(act, Host())
    beside.cancel()

    assert len(seen) == 1_000
    assert seen[-1] - seen[0] >= 1_000 // 50 - 1


async def test_arguments_of_calls_that_are_not_awaited_are_no_way_to_fill_the_host() -> None:
    began = 0

    def hoard(worker: WorkerEnd) -> None:
        body = b"[" + b"{}," * 300_000 + b"1]"
        for number in range(1, 100):
            worker.raw(b'{"t":"call","id":%d,"name":"slow","args":%b,"kwargs":{},"wait":false}' % (number, body))

    async def slow(*_: object) -> None:
        nonlocal began
        began += 1
        await asyncio.sleep(60)

    result = await result_of(hoard, TableHost(slow=slow))

    assert result.error is not None
    assert (result.error.kind, result.error.type) == ("calls", "CallLimit")
    assert "take more than 128 MB" in result.error.message
    assert began < 10


@pytest.mark.parametrize("last", ["drop", "end", "done"])
async def test_nothing_of_a_program_that_is_over_is_left(last: str) -> None:
    def leave(worker: WorkerEnd) -> None:
        worker.read()
        worker.call(1, "slow", 60)
        worker.call(2, "add", 1)
        worker.send("wait", **{"for": None})
        worker.read()
        if last != "end":
            worker.send(last, id=1)
            worker.send("done", v=1)
            worker.until_killed()

    host = TableHost()
    left = weakref.ref(host)
    gc.disable()
    try:
        await result_of(leave, host)
        del host
        await asyncio.sleep(0)
        assert left() is None
    finally:
        gc.enable()


async def test_a_worker_with_too_many_threads_is_ended_where_the_kernel_counts_none() -> None:
    ended = await result_of(WorkerEnd.until_killed, usage=Usage(0.0, 161))

    assert ended.error is not None
    assert (ended.error.kind, ended.error.type) == ("stopped", "ThreadLimit")
    assert "it has 161 threads at a time, and a program may have 160" in ended.error.message
