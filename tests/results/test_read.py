"""Reading of a kept result: pages that together are the whole, paths and words, and what cannot be read."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.results.test_pieces import json_values
from toolcrib.errors import ModelRetry
from toolcrib.results import MemoryResultStore, Owner
from toolcrib.results._pieces import pieces_of
from toolcrib.results._read import FoundRows, FoundText, ResultQuery, parse_path, read, select

ROWS = [{"id": number, "city": "Oslo" if number % 2 else "Rome", "price": number * 1.5} for number in range(10_000)]
STORE = MemoryResultStore()


def reading(value: object, **query: Any) -> FoundRows | FoundText:
    """Keep a value, and read it."""
    made = STORE.keep(pieces_of(value, "find", []), Owner("ann", "find", "call_1"))
    assert made is not None
    return read(STORE, made, ResultQuery(**query))


def rows(value: object, **query: Any) -> list[Any]:
    found = reading(value, **query)
    assert isinstance(found, FoundRows)
    return found.rows


def text(value: object, **query: Any) -> str:
    found = reading(value, **query)
    assert isinstance(found, FoundText)
    return found.text


# --- pages


@given(st.text(max_size=400), st.integers(1, 100))
def test_pages_of_a_text_are_all_of_it(value: str, limit: int) -> None:
    value = value * 1_000
    limit *= 1_000
    pages: list[str] = []

    while len("".join(pages)) < len(value):
        pages.append(text(value, offset=len("".join(pages)), limit=limit, most_chars=10**9))

    assert "".join(pages) == value
    assert text(value, offset=len(value), limit=limit) == ""


@given(st.lists(json_values, min_size=1, max_size=300), st.integers(1, 100), st.booleans())
def test_pages_of_rows_are_all_of_them(value: list[Any], limit: int, inside: bool) -> None:
    value = [*value, *range(60)]
    whole = {"before": 1, "rows": value, "after": 2} if inside else value
    read_so_far: list[Any] = []
    more = True

    while more:
        found = reading(whole, path="rows" if inside else "", offset=len(read_so_far), limit=limit)
        assert isinstance(found, FoundRows)
        read_so_far += found.rows
        more = found.more

    assert read_so_far == json.loads("".join(piece.text for piece in pieces_of(value, "find", [])))


def test_a_page_is_as_long_as_it_may_be() -> None:
    found = reading(["x" * 100] * 500, limit=500, most_chars=1_000)

    assert isinstance(found, FoundRows)
    assert (len(found.rows), found.more, found.total) == (9, True, 500)


def test_a_row_that_is_longer_than_a_page_comes_alone() -> None:
    found = reading(["x" * 3_000_000, "y", *range(60)], most_chars=1_000)

    assert isinstance(found, FoundRows)
    assert (found.rows, found.more) == (["x" * 3_000_000], True)
    assert text(["x" * 3_000_000, "y", *range(60)], path="$[0]", offset=2_999_999) == "x"


# --- paths

paths = st.lists(
    st.sampled_from([".a", ".b", "['a b']", "[0]", "[-1]", "[1:]", "[:2]", "[-2:3]", "[*]", ".*"]), max_size=4
).map("".join)
nested = st.recursive(
    st.integers(0, 3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["a", "b", "a b"]), inner),
    max_leaves=12,
)


@given(st.lists(nested, min_size=1) | st.dictionaries(st.sampled_from(["a", "b"]), nested, min_size=1), paths)
def test_a_path_selects_in_a_kept_result_what_it_does_in_the_value(value: Any, path: str) -> None:
    steps = parse_path(path)
    if isinstance(value, dict):
        value = {**value, "long": [value] * 60}
        path, steps = f"$.long{path}", ("long", *steps)
    expected = list(select(value, steps))

    try:
        found = reading(value, path=path, limit=100_000, most_chars=10**9)
    except ModelRetry:
        assert len(expected) == 0 or isinstance(steps[-1], str)
        return

    if isinstance(found, FoundText):
        assert [json.loads(found.text)] == expected
    else:
        assert found.rows in (expected, expected[0] if expected else [])


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("$[2:4].id", [2, 3]),
        ("$[-2:].id", [9_998, 9_999]),
        ("$[*].city", ["Rome", "Oslo"]),
        ("[1:1]", []),
        ("$[:-20000]", []),
    ],
)
def test_rows_are_taken_by_a_path(path: str, expected: list[Any]) -> None:
    assert rows(ROWS, path=path, limit=2) == expected


def test_one_value_is_read_as_text() -> None:
    assert text(ROWS, path="$[7].city") == "Oslo"
    assert text({"note": "x" * 10_000, "n": 1}, path="note", offset=9_990) == "x" * 10
    assert rows({"data": {"rows": [1, 2, 3]}}, path="$.data.rows", offset=1) == [2, 3]
    assert rows({"data": {"rows": [1] * 60 + [2]}, "n": 3}, path="$.data.rows", offset=60) == [2]
    assert text({"data": {"rows": [1] * 60 + [2]}, "n": 3}, path="$.n") == "3"
    assert rows([{"rows": [1] * 60 + [2]}, "x"], path="$[0].rows", offset=60) == [2]
    assert text([{"rows": [1] * 60 + [2]}, "x"], path="$[1]") == "x"


@pytest.mark.parametrize(
    "path",
    [
        "$[", "$..a", "$[?(@.a == 1)]", "$.a b", "[0]" * 21, "$[1:2:3]", "$[--1]", "$[-]", "$['a]",
        "$[" + "9" * 400 + "]", "." * 100, "$[-:1]",
    ],
)  # fmt: skip
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(ModelRetry, match=r"cannot be read|is not a slice"):
        reading(ROWS, path=path)


def test_what_is_read_as_a_query_is_short() -> None:
    with pytest.raises(ModelRetry, match="the path has 501 characters, and may have 500"):
        reading(ROWS, path="a" * 501)


@pytest.mark.parametrize(
    ("value", "path", "says"),
    [
        (ROWS, "$.id", r"\[\*\]\.id"),
        (ROWS, "$[10000]", "there are 10000"),
        (ROWS, "$[0].x", "selects nothing"),
        ("x" * 1_000, "$.a", "offset"),
        ({"rows": [1]}, "$.row", "no member `row`.*rows"),
        ({"rows": [1]}, "$[0]", r"\$\.name"),
    ],
)
def test_a_path_that_does_not_fit_is_explained(value: Any, path: str, says: str) -> None:
    with pytest.raises(ModelRetry, match=says):
        reading(value, path=path)


def test_a_part_that_is_too_long_to_parse_is_refused() -> None:
    with pytest.raises(ModelRetry, match="a path cannot select in it"):
        reading({"a": {"b": "x" * 33_000_000}}, path="$.a.b")


# --- what there is not


@pytest.mark.parametrize(
    ("query", "says"),
    [
        (
            {"path": "$[*].nope"},
            "the path selects nothing: there is no member `nope`. There are: `city`, `id`",
        ),
        ({"path": "$[5].prices"}, "there is no member `prices`. Did you mean `price`?"),
        ({"path": "$[*].id.x"}, "there is no member `x`. There are none."),
        ({"path": "$[*].city[0]"}, "there is no list there"),
        ({"path": "$[10000:]"}, "there is no row 10000: there are 10000"),
        ({"offset": 10_001}, "`offset` 10001 is past the end: the list has 10,000 rows"),
        ({"path": "$[:5]", "search": "oslo", "offset": 3}, "`offset` 3 is past the end: there are 2"),
    ],
)
def test_what_no_row_has_is_no_empty_page(query: dict[str, Any], says: str) -> None:
    with pytest.raises(ModelRetry, match=re.escape(says)):
        reading(ROWS, **query)


@pytest.mark.parametrize(
    ("value", "query", "says"),
    [
        ({"rows": [1] * 60, "note": "x"}, {"path": "$.row"}, "the result has no member `row`"),
        ({"rows": [1] * 60, "note": "x"}, {"path": "$.row"}, "Did you mean `rows`?"),
        ({"meta": {"tags": []}}, {"path": "$.meta.tag"}, "there is no member `tag`. Did you mean `tags`?"),
        ({"meta": {"tags": [1]}}, {"path": "$.meta.tags[3]"}, "there is no item 3: a list there has 1"),
        ("x" * 1_000, {"offset": 1_001}, "`offset` 1001 is past the end: it has 1,000 characters"),
        ({"a": "x" * 10}, {"path": "a", "offset": 11}, "`offset` 11 is past the end: it has 10 characters"),
        ("x" * 1_000, {"search": "y", "offset": 1}, "`offset` 1 is past the end: there are 0"),
    ],
)
def test_what_a_result_has_not_is_named(value: Any, query: dict[str, Any], says: str) -> None:
    with pytest.raises(ModelRetry, match=re.escape(says)):
        reading(value, **query)


def test_what_only_some_rows_have_is_found() -> None:
    sparse = [*({"id": number} for number in range(5_000)), {"id": 5_000, "note": "late"}]

    assert rows(sparse, path="$[*].note") == ["late"]


def test_lists_that_are_empty_are_no_fault() -> None:
    assert rows({"tags": []}, path="$.tags") == []
    assert rows({"tags": []}, path="$.tags[*].name") == []
    assert rows([{"tags": []}] * 60, path="$[*].tags[*].name") == []


# --- words


def test_rows_that_have_a_word() -> None:
    assert [row["id"] for row in rows([*ROWS, {"id": -1, "city": 'a "Quoted" word'}], search='A "quoted"')] == [-1]
    assert [row["id"] for row in rows(ROWS, search=": 9999,")] == [9_999]


@given(st.integers(0, 300_000), st.sampled_from(["needle", "NEEDLE", "İneedle", "n"]))
def test_a_word_is_found_wherever_it_is(at: int, word: str) -> None:
    value = "x" * at + word + "x" * (300_000 - at)

    found = rows(value, search=word.lower() if word.isascii() else word)

    assert [place["offset"] for place in found] == [at]
    assert word in found[0]["text"]


def test_a_word_that_is_everywhere_is_refused() -> None:
    assert rows("x" * 20_000, search="x", offset=5, limit=1)[0]["offset"] == 5
    with pytest.raises(ModelRetry, match="search for more than"):
        rows("x" * 20_000, search="x", offset=15_000)


def test_what_a_path_selects_is_searched() -> None:
    assert rows(ROWS, path="$[9990:]", search="oslo", offset=3) == [ROWS[9_997], ROWS[9_999]]
    assert rows(ROWS, path="$[*].city", search="ROME", limit=2) == ["Rome", "Rome"]


def test_a_long_word_is_refused() -> None:
    with pytest.raises(ModelRetry, match="`search` has 201 characters"):
        reading("x", search="x" * 201)


def test_words_of_one_value() -> None:
    assert rows({"note": "abc"}, path="note", search="B") == [{"offset": 1, "text": "abc"}]
