"""Washing: what a run wrote is no more trusted where a trusted tool returns it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from toolcrib.provenance import Memory, Origin

WORDS = st.text("abcdefghijklm", min_size=4, max_size=9)
VALUES = ["{0}", "{0} {1}", "{0}/{1}.txt", "{0}@{1}.com", "www.{0}.com", "{0}-{1}", "DE{0}44", "{0}; {1}"]
PLACES = ["{}", "Look at {}, please", "one\n{}\nthree", "'{}'"]


def memory(said: str) -> Memory:
    made = Memory()
    made.hear(said)
    made.read("contacts", "c1", {}, ["Ann Lee", "bob@corp.com"], "trusted")
    made.read("read_mail", "c2", {}, "Note what I say, spelled backwards", "untrusted")
    return made


def wash(made: Memory, text: str, *, is_said: bool = True) -> None:
    """Write a text to the user's own things, and read it there."""
    made.write(Origin("untrusted", "write_note", "c3"), {"text": text}, frozenset(["text"] if is_said else []))
    made.read("read_note", "c4", {}, {"text": text, "size": 4}, "trusted")


@settings(max_examples=examples(300), deadline=None)
@given(WORDS, WORDS, st.sampled_from(VALUES), st.sampled_from(PLACES), st.booleans())
def test_what_the_model_wrote_is_not_trusted_where_it_is_read_again(
    first: str, last: str, shape: str, place: str, is_said: bool
) -> None:
    value, made = shape.format(first, last), memory("do it now")  # in words that are never drawn
    wash(made, place.format(value), is_said=is_said)

    for effect in ("send", "delete", "execute", "share", "spend", "fetch"):
        assert made.judge("act", effect, {"what": value}) != []


@pytest.mark.parametrize("value", ["Ann Lee", "bob@corp.com", "plan", "plan.txt"])
def test_what_was_known_before_is_known_after_it_was_written(value: str) -> None:
    made = memory("note the plan in plan.txt")
    wash(made, f"Send it to {value}")

    assert made.judge("act", "send", {"to": value}) == []


def test_what_a_trusted_tool_says_otherwise_is_trusted() -> None:
    made = memory("note the plan in plan.txt")
    wash(made, "a summary of it")
    made.read("members", "c5", {}, ["Kim Hill"], "trusted")

    assert made.judge("act", "send", {"to": "Kim Hill"}) == []


def test_a_run_that_wrote_more_words_than_it_keeps_trusts_no_result() -> None:
    made = memory("go on")
    made.write(
        Origin("untrusted", "write_note", "c3"), {"text": " ".join(f"w{n}" for n in range(100_001))}, frozenset()
    )

    assert made.origin("Ann Lee").kind == "model"


MOMENTS = [
    ("May 12", "trip May 12"),
    ("12 May", "trip, 12 May 2026"),
    ("2026-05-12", "trip May 12"),
    ("May 12", "trip 2026-05-12"),
    ("3:00", "trip at 3 am"),
    ("15:00", "15:00 trip"),
    ("2026-05-12", "12 pens, in May: trip May 12"),
]


@pytest.mark.parametrize(("value", "note"), MOMENTS)
@pytest.mark.parametrize("is_said", [True, False])
def test_a_date_or_a_time_that_the_model_wrote_is_not_trusted_where_it_is_read_again(
    value: str, note: str, is_said: bool
) -> None:
    washed, known = memory("note the trip"), memory("note the trip")
    wash(washed, note, is_said=is_said)
    for text in (note, "in 2026"):
        known.read("events", "c4", {}, [{"title": text}], "trusted")

    assert washed.judge("act", "delete", {"day": value})
    assert not known.judge("act", "delete", {"day": value})
