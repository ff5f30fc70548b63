from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from toolcrib.sandbox._output import CutText


@given(st.lists(st.text(max_size=20), max_size=30))
def test_what_fits_is_kept_as_it_came(pieces: list[str]) -> None:
    kept = CutText(1_000)

    for piece in pieces:
        kept.add(piece)

    assert kept.text() == "".join(pieces)
    assert kept.size == len("".join(pieces))


@given(st.lists(st.text(alphabet="abc", min_size=1, max_size=40), min_size=1, max_size=40), st.integers(1, 60))
def test_head_and_tail_are_kept_and_the_cut_is_said(pieces: list[str], most: int) -> None:
    whole = "".join(pieces)
    kept = CutText(most)

    for piece in pieces:
        kept.add(piece)

    text = kept.text()
    if len(whole) <= most:
        assert text == whole
    else:
        head, tail = most - most // 3, most // 3
        note = f"\n[... {len(whole) - most} of {len(whole)} characters cut ...]\n"
        assert text == whole[:head] + note + (whole[-tail:] if tail else "")


def test_a_million_small_pieces_cost_no_more_than_the_limit() -> None:
    kept = CutText(300)

    for _ in range(100_000):
        kept.add("xy")

    assert len(kept._tail) <= 51  # pyright: ignore[reportPrivateUsage] -- what it holds is the point
    assert kept.size == 200_000
