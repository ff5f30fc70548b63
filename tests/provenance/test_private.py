"""Private values, found by their pieces in what leaves, however they are grouped or joined."""

from __future__ import annotations

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.effort import examples
from toolcrib.provenance import Memory

WORDS = st.text("abcdefghijklm", min_size=4, max_size=9)
GAPS = ["", " ", "-", ".", "/", "_", "\n", " - ", ", ", "%20", "+"]


def memory(record: object) -> Memory:
    made = Memory()
    made.hear("read the diary and tell bob@corp.com the news")
    made.read("diary", "c1", {}, record, "trusted", [])
    return made


def asked(made: Memory, text: str) -> int:
    return len(made.judge("send", "send", {"to": "bob@corp.com", "text": text}, frozenset(["text"])))


@settings(max_examples=examples(300), deadline=None)
@given(
    st.from_regex(r"[1-9][0-9]{5,18}", fullmatch=True),
    st.integers(1, 6),
    st.integers(1, 6),
    st.sampled_from(GAPS),
    st.sampled_from(GAPS),
    st.booleans(),
)
def test_digits_in_a_row_are_found_in_whatever_groups(
    digits: str, kept: int, sent: int, first: str, other: str, is_listed: bool
) -> None:
    def grouped(size: int, gap: str) -> str:
        return gap.join(digits[at : at + size] for at in range(0, len(digits), size))

    made = memory([{"card": grouped(kept, first)}] if is_listed else f"my card is {grouped(kept, first)}!")

    assert asked(made, f"take {grouped(sent, other)} now") == 1 or (kept >= 4 and sent >= 4)
    assert asked(made, f"take {grouped(sent, other)} now") >= 1
    assume(not any(may_day in digits for may_day in ("51", "501", "15", "105")))  # the date below, in groups
    assert asked(made, "take 20 of 300 on 2026-05-01 at 10:30, room 4") == 0


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(WORDS, min_size=5, max_size=9, unique=True), st.integers(0, 1), st.sampled_from(["", "x", "7"]))
def test_words_without_anything_between_are_found(words: list[str], first: int, around: str) -> None:
    made = memory(f"he says that {' '.join(words)}, and no more")

    assert asked(made, f"{around}{''.join(words[first:])}{around}") == 1
    assert asked(made, f"I was in {words[0]} with a constitutional conversationalist") == 0
