from __future__ import annotations

import os
import socket
import threading
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.sandbox.worker.unsealed import UnsealedWorker
from toolcrib.sandbox._host_frames import HostFrame, batch
from toolcrib.sandbox._worker._frames import Channel, encoded

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=10,
)


@settings(max_examples=examples(40))
@given(st.dictionaries(st.text(), json_values, max_size=5))
def test_a_frame_arrives_as_it_was_sent(frame: dict[str, object]) -> None:
    ours, theirs = socket.socketpair()
    with closing(ours), closing(theirs):
        Channel(ours.fileno()).write(encoded(frame))

        assert Channel(theirs.fileno()).read() == frame


def test_a_frame_in_pieces_is_put_together() -> None:
    ours, theirs = socket.socketpair()
    with closing(ours), closing(theirs):
        channel = Channel(theirs.fileno())
        ours.sendall(b'\0\0\0\x07{"a":')
        ours.sendall(b"1}\0\0\0\x02{}")

        assert [channel.read(), channel.read()] == [{"a": 1}, {}]


def test_blobs_arrive_with_their_frame() -> None:
    ours, theirs = socket.socketpair()
    frame = HostFrame(b'{"a":1', (b"", b"b" * 100_000, bytearray(b"c")))
    with closing(ours), closing(theirs):
        sent = threading.Thread(target=lambda: [ours.sendall(piece) for piece in batch([frame, HostFrame(b'{"b":2')])])
        sent.start()
        channel = Channel(theirs.fileno())

        assert channel.read() == {"a": 1, "blobs": [b"", b"b" * 100_000, b"c"], "more": True}
        assert channel.read() == {"b": 2}
        sent.join()


def test_blobs_leave_with_their_frame() -> None:
    ours, theirs = socket.socketpair()
    with closing(ours), closing(theirs):
        channel = Channel(theirs.fileno())
        channel.write(b"{}", more=True)
        channel.write(b"[]", [b"ab", memoryview(b"c")])

        assert ours.recv(100) == b"\0\0\0\x02{}\0\0\0\x02[]abc"


def test_the_end_of_the_host_is_the_end_of_the_frames() -> None:
    ours, theirs = socket.socketpair()
    with closing(theirs):
        os.write(ours.fileno(), b"\0\0")
        ours.close()

        with pytest.raises(EOFError):
            Channel(theirs.fileno()).read()


def test_a_worker_ends_with_its_host(fresh: UnsealedWorker) -> None:
    fresh.run("1")

    fresh.hang_up()

    assert fresh.ended() == 0


def test_answers_may_come_in_any_order_and_in_several_batches(fresh: UnsealedWorker) -> None:
    fresh.begin("parallel((echo, 1), (echo, 2), (echo, 3))")
    assert [fresh.receive()["t"] for _ in range(4)] == ["call", "call", "call", "wait"]

    fresh.send({"t": "ret", "id": 3, "v": "c"}, {"t": "ret", "id": 1, "v": "a"})
    assert fresh.receive() == {"t": "wait", "for": None}
    fresh.send({"t": "ret", "id": 2, "v": "b"})

    assert fresh.receive()["v"] == ["a", "b", "c"]


def test_an_answer_beside_the_one_waited_for_is_kept(fresh: UnsealedWorker) -> None:
    fresh.begin(
        "import asyncio\nasync def f():\n    t = asyncio.create_task(echo(1))\n    await asyncio.sleep(0)\n"
        "    x = echo(2)\n    return [x, await t]\nawait f()"
    )
    kinds = [fresh.receive() for _ in range(2)]
    assert [(frame["id"], frame["wait"]) for frame in kinds] == [(1, False), (2, True)]

    fresh.send({"t": "ret", "id": 1, "v": "one"})
    assert fresh.receive()["t"] == "wait"
    fresh.send({"t": "ret", "id": 2, "v": "two"})

    assert fresh.receive()["v"] == ["two", "one"]
