from __future__ import annotations

import json

import pytest

from toolcrib.sandbox._frames import DoneFrame, FrameReader, PrintFrame, ProtocolError

LAST = {"t": "done", "v": None}
PRINTED = {"t": "out", "s": "x", "err": False}


def framed(fields: object, *blobs: bytes) -> bytes:
    body = json.dumps(fields).encode()
    return len(body).to_bytes(4, "big") + body + b"".join(blobs)


@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
def test_blobs_come_with_their_frame_in_pieces_of_any_size(piece: int) -> None:
    data = framed({**LAST, "blobs": [3, 0, 300]}, b"abc", b"z" * 300) + framed(PRINTED)
    reader = FrameReader(1_000, 1_000)

    [done, printed] = [frame for at in range(0, len(data), piece) for frame in reader.feed(data[at : at + piece])]

    assert isinstance(done, DoneFrame)
    assert [bytes(blob) for blob in done.blobs] == [b"abc", b"", b"z" * 300]
    assert isinstance(printed, PrintFrame)
    assert reader.is_between


def test_a_frame_is_not_whole_before_its_blobs_are() -> None:
    reader = FrameReader(1_000, 1_000)

    assert reader.feed(framed({**LAST, "blobs": [4]}, b"ab")) == []
    room = reader.room
    assert room is not None
    assert (len(room), reader.is_between) == (2, False)
    room[:] = b"cd"
    [done] = reader.fill(2)

    assert isinstance(done, DoneFrame)
    assert [bytes(blob) for blob in done.blobs] == [b"abcd"]
    assert reader.room is None


@pytest.mark.parametrize(
    ("sizes", "why"),
    [
        ([1 << 62], "blobs of 4611686018427387904 bytes, where 1000 is the most"),
        ([600, 600], "blobs of 1200 bytes"),
        ([-1], "invalid size of a blob"),
        ([1 << 62, -(1 << 62)], "invalid size of a blob"),
        ([True], "invalid size of a blob"),
        ([1.0], "invalid size of a blob"),
        ([0] * 1_001, "1,001 blobs, where 1000 is the most"),
        ({"a": 1}, "`blobs` is not of type list"),
    ],
)
def test_blobs_are_refused_when_they_are_announced(sizes: object, why: str) -> None:
    with pytest.raises(ProtocolError, match=why):
        FrameReader(10_000, 1_000).feed(framed({**LAST, "blobs": sizes}))
