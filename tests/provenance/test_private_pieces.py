"""Private values: what is a piece of one, and where in a call it is found."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from toolcrib.provenance import Memory

SHORT = st.text("abcdefghijklm", min_size=2, max_size=3)
WORDS = st.text("nopqrstuvw", min_size=5, max_size=9)


def memory(record: object, *, is_lost: bool = False) -> Memory:
    made = Memory()
    made.hear("read the diary and tell bob@corp.com the news")
    if is_lost:
        made.lose()
    made.read("diary", "c1", {}, record, "trusted", [])
    return made


def asked(made: Memory, **arguments: Any) -> list[str]:
    found = made.judge("send", "send", {"to": "bob@corp.com", **arguments}, frozenset(arguments))
    return [each.kind for each in found]


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(SHORT, min_size=3, max_size=4, unique=True))
def test_a_value_of_short_words_is_found_as_a_whole(words: list[str]) -> None:
    made = memory({"name": " ".join(words)})

    assert "private" in asked(made, text=f"it is {'-'.join(words)}, as he said")
    assert asked(made, text=f"the {words[0]} of it") == []


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (950, "she has 950 left"),
        (98.7, "it is 98.7 now"),
        ("pin 4711", "4 7 1 1"),
        ("12,345 pieces", "12345"),
        ("born 1984-03-12", "on 12 March"),
        ("Caf\u00e9 Mu\u00f1oz reunion", "cafe munoz"),
        ("Stra\u00dfe Gro\u00dfmann", "strasse grossmann"),
        ("the merger with Northwind", "merger Northwind"),
        ("\u6211\u4eec\u8ba1\u5212\u5728\u4e94\u6708\u6536\u8d2d\u5317\u98ce\u516c\u53f8", "\u6536\u8d2d\u5317\u98ce"),
        ({"Northwind merger": True}, "Northwind merger"),
        (9844, "9,844.00 in all"),
        ("Anna Schmidt", "Anna's friend Schmidt"),
        (4.7, "a rate of 4.7!"),
        (4.7, "4,70 per cent"),
        (816.7, "$816.70"),
        ("born 1984-03-12", "on 12.03.1984"),
        ("born 1984-03-12", "3/12/84"),
        ("born 12.03.1984", "1984/03/12"),
        ("Anna Schmidt", "Schmidt, Anna"),
        ("Ann Lee", "lee, ann"),
        ("Anna Maria Schmidt", "Anna M. Schmidt"),
        ("31186433", "\u0663\u0661\u0661\u0668\u0666\u0664\u0663\u0663"),
        ("31186433", "<!-- -->".join("31186433")),
        ("the merger with Northwind", "merger\\nwith\\nNorthwind"),
        ("the merger with Northwind", "".join(f"\\u{ord(char):04x}" for char in "merger Northwind")),
        ("the merger with Northwind", "mer<!-- a -->ger with North<b>wind</b>"),
    ],
)
def test_a_piece_is_found(value: Any, text: str) -> None:
    assert "private" in asked(memory({"note": value}), text=text)
    assert asked(memory({"note": "another thing"}), text=text) == []


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(WORDS, min_size=3, max_size=6, unique=True), st.integers(1, 4))
def test_words_that_are_parted_elsewhere_are_found(words: list[str], size: int) -> None:
    joined = "".join(words)
    parted = " ".join(joined[at : at + size] for at in range(0, len(joined), size))

    assert "private" in asked(memory(" ".join(words)), text=parted)


@pytest.mark.parametrize(
    "arguments",
    [
        {"body": {"merger with Northwind": "x"}},
        {"body": {"merger": "Northwind"}},
        {"tags": ["merger", "with", "Northwind"]},
        {"title": "merger", "text": "Northwind"},
        {"rows": [[{"a": "merger"}], [{"b": "with Northwind"}]]},
    ],
)
def test_a_piece_is_found_in_keys_and_across_values(arguments: dict[str, Any]) -> None:
    assert "private" in asked(memory("the merger with Northwind closes"), **arguments)


@pytest.mark.parametrize(
    "text", ["4.8", "version 4.17", "see C:\\\\new and/not", "at 4, 7 of them", "Anna", "on 13.03.1985"]
)
def test_what_is_no_piece_is_not_found(text: str) -> None:
    record = {"rate": 4.7, "name": "Anna Schmidt", "born": "1984-03-12"}

    assert asked(memory(record), text=text) == []


def test_a_private_value_is_found_after_the_run_has_lost_something() -> None:
    assert "private" in asked(memory("the merger with Northwind", is_lost=True), text="merger with Northwind")


def test_a_private_value_is_found_that_is_read_after_more_than_a_run_keeps() -> None:
    made = memory("hello")
    made.read("page", "c2", {}, "x" * 20_000_001, "untrusted")
    made.read("plans", "c3", {}, "the merger with Northwind", "trusted", [])

    assert "private" in asked(made, text="merger with Northwind")


def test_pieces_that_may_be_sent_hide_none_that_may_not() -> None:
    made = memory("the merger with Northwind")
    open_words = " ".join(f"shared{number} word{number}" for number in range(40))
    made.read("plans", "c2", {}, open_words, "trusted", ["bob@corp.com"])

    assert asked(made, text=open_words) == []
    assert asked(made, text=f"{open_words} merger with Northwind") == ["private"]


@pytest.mark.systems  # takes long
@pytest.mark.parametrize(
    "piece", ["a", "aB3x", "\u3042", "a.", "1-", "a@", "<!--", "<a ", "a:", "//", "a/", "~", "[", '\\"', " "]
)
def test_a_long_text_of_one_piece_takes_linear_time(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    made = memory({"name": "the merger with Northwind"})
    made.read("page", "c2", {}, text, "untrusted", [])

    assert asked(made, text=f"{text} merger Northwind") != []
    assert asked(made, to=text[:100_000]) != []
