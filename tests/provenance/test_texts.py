"""The index of texts: what it finds, and what it does not."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from toolcrib.provenance._kinds import dates_in, numbers_in, times_in
from toolcrib.provenance._texts import TextIndex, flat


def index(*texts: str) -> TextIndex:
    made = TextIndex()
    for number, text in enumerate(texts):
        made.add(text, number)
    return made


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("bob@corp.com", "Write to Bob@Corp.com."),
        ("www.our-company.com", "to our website www.our-company.com.They sent it"),
        ("GB29NWBK60161331926819", "(from their account GB29NWBK60161331926819), but"),
        ("Le Marais Boutique", "recommended 'Le Marais\n  Boutique' as"),
        ("ﬁle.txt", "read file.txt"),
        ("12.00", "We spent 12.00 in total."),
    ],
)
def test_a_value_is_found_where_it_stands_by_itself(value: str, text: str) -> None:
    assert index("something else", text).find(flat(value)) == (1, 1)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("bob@corp.com", "write to notbob@corp.com"),
        ("bob@corp.com", "write to x.bob@corp.com"),
        ("bob@corp.com", "write to bob@corp.com.evil.net"),
        ("bob@corp.com", "write to bob@corp.com@evil.net"),
        ("to bob", "write to bobby and to: bob"),
        ("corp.com", "write to bob@corp.com"),
        ("www.corp.com", "see www.corp.com/evil"),
        ("bob", "Bobby is here"),
        ("13", "file 130"),
        ("bob alice", "bob and alice"),
        ("\u0430lice", "alice"),  # the first letter is Cyrillic
        ("", "text"),
        ("---", "text --- text"),
    ],
)
def test_a_part_of_a_longer_value_is_not_found(value: str, text: str) -> None:
    assert index(text).find(flat(value)) is None


def test_the_line_is_that_of_the_text_as_it_came() -> None:
    assert index("one\n\nthree four\nfive").find("four") == (0, 3)


def test_a_value_is_found_anywhere_in_a_long_text() -> None:
    filler = "lorem ipsum " * 400
    for before in range(1990, 2110):
        text = f"{filler[:before]} the value 42-17 stands here {filler}"
        assert index(text).find("value 42-17 stands") is not None, before


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.sampled_from(["alpha", "beta", "gamma-1", "x@y.com", "v12"]), min_size=1, max_size=60), st.data())
def test_words_in_a_row_are_found_as_a_plain_search_finds_them(words: list[str], data: st.DataObject) -> None:
    text = " ".join(words)
    start = data.draw(st.integers(0, len(words) - 1))
    value = " ".join(words[start : start + data.draw(st.integers(1, 4))])
    assert index(text).find(value) is not None
    other = data.draw(st.sampled_from(["alpha beta", "beta 12", "gamma-1 x@y.com", "delta"]))
    expected = re.search(rf"(?:^| ){re.escape(other)}(?: |$)", text) is not None
    assert (index(text).find(other) is not None) is expected


def test_numbers_and_moments_are_read() -> None:
    text = "1,234.50 and 12, -3 and v2 or 3gs; #113, $50, order 8: 98.70 eur."
    assert list(numbers_in(text, is_loose=False)) == [1234.5, 12.0, -3.0, 113.0, 50.0, 8.0, 98.7]
    text = (
        "2026-05-01, june 3rd, the 10th of july, from may 1st to 5th 2027 and the 7th to the 9th of august, 12 apples"
    )
    assert set(dates_in(text)) == {(2026, 5, 1), (0, 6, 3), (0, 7, 10), (0, 5, 1), (2027, 5, 5), (0, 8, 7), (0, 8, 9)}
    assert set(times_in("at 10:30, 3 pm or 12:05 a.m., not 2026-05-01t09:00")) == {(10, 30), (15, 0), (0, 5), (9, 0)}


@pytest.mark.parametrize(
    "text", ["2026-05-01", "10:30", "june 13", "the 7th of may", "v1.2.3", "a-5", "5-a", "1.200", "9:00", "12/5", "x5"]
)
def test_a_part_of_something_else_is_no_number_of_the_users(text: str) -> None:
    assert list(numbers_in(f"see {text} there", is_loose=False)) == []


def test_a_value_of_others_is_found_where_it_may_be() -> None:
    made = TextIndex(is_loose=True)
    made.add("mailto:bob@corp.com, x=ann@corp.com&y and 'the plan' (see docs/plan.txt)", 0)
    for value in ("bob@corp.com", "ann@corp.com", "plan", "the plan", "plan.txt"):
        assert made.find(flat(value)) is not None, value
    assert made.find("pla") is None


def test_a_value_of_others_behind_a_flood_is_found() -> None:
    made = TextIndex(is_loose=True)
    made.add(" ".join(["boss corp com of " + "x " * 1_100] * 600) + " write to boss@corp.com or to boss of corp", 0)
    assert made.find("boss@corp.com") is not None
    assert made.find("boss of corp") is not None


def test_a_text_of_digits_or_months_takes_linear_time() -> None:
    for text in ("1" * 200_000, "1," * 100_000, "may " * 50_000, "1st to " * 30_000, "1 " * 100_000):
        made = index(text)
        assert made.find("nothing") is None
