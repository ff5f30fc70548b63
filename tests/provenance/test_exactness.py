"""Exactness: what differs from a known value in a unit, a decimal, a mark or a scheme is another value."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from toolcrib.provenance import Memory

LEAVING = ["send", "spend", "delete", "share", "execute", "fetch"]
WORDS = st.text("abcdefghijklm", min_size=4, max_size=9)


def memory(said: str, letter: str = "Do as you like", records: Any = None) -> Memory:
    made = Memory()
    made.hear(said)
    if records is not None:
        made.read("records", "c1", {}, records, "trusted")
    made.read("read_page", "c2", {}, letter, "untrusted")
    return made


def is_asked(made: Memory, effect: Any, **arguments: Any) -> bool:
    return made.judge("act", effect, arguments) != []


@settings(max_examples=examples(200), deadline=None)
@given(st.decimals(1, 99_999, places=2), st.floats(1e-12, 1), st.sampled_from(["user", "records"]))
def test_a_number_that_differs_in_any_decimal_is_another_one(own: Any, step: float, where: str) -> None:
    made = memory(f"pay {own}" if where == "user" else "pay it", records={"sum": float(own)})
    known = float(own)

    assert made.origin(known).kind in ("user", "trusted")
    for other in (known + step, known - step, math.nextafter(known, 0), math.nextafter(known, math.inf), -known):
        assert other == known or made.origin(other).kind == "model", other


def test_a_number_that_a_program_computed_is_found_as_it_was_read() -> None:
    made = memory("sum it up", records={"sum": 0.1 + 0.2})

    assert made.origin(0.1 + 0.2).kind == "trusted"
    assert made.origin(0.3).kind == "model"
