"""Patterns are matched as ECMAScript matches them, as JSON Schema says and as RE2 reads what is shown."""

from __future__ import annotations

import re
from random import Random

import pytest

from tests.effort import examples
from toolcrib.jsonschema._portable import portable
from toolcrib.jsonschema.checker import misfits

ATOMS = (
    r"\d",
    r"\D",
    r"\w",
    r"\W",
    r"\B",
    "a",
    "é",
    "-",
    ".",
    r"[\w.-]",
    r"[^\d]",
    r"[^\W\d]",
    r"[\da]",
    r"\b",
    "(?:a|\\d)",
)
TIMES = ("", "", "", "*", "+", "?", "{2}", "{0,300}", "{01}")
TEXT = "a1_é٣-. "


def pattern(random: Random) -> str:
    atoms = [random.choice(ATOMS) for _ in range(random.randint(1, 4))]
    parts = [atom + (random.choice(TIMES) if atom not in (r"\b", r"\B") else "") for atom in atoms]
    ahead = random.choice(["", "", rf"(?!{parts[0]}$)", rf"(?={parts[0]})"])
    return f"^{ahead}{''.join(parts)}$"


@pytest.mark.parametrize("seed", range(examples(100)))
def test_letters_and_digits_are_those_of_ascii(seed: int) -> None:
    random = Random(seed)
    for _ in range(50):
        expression = pattern(random)
        for length in range(r"\B" in expression, 5):  # Python has no \B in an empty text
            text = "".join(random.choice(TEXT) for _ in range(length))
            fits = re.search(expression, text, re.ASCII) is not None
            assert (misfits({"pattern": expression}, text) == []) is fits, (expression, text)
            written = portable(expression)
            assert written is None or (re.search(written, text, re.ASCII) is not None) is fits, (expression, written)


@pytest.mark.parametrize("space", "\t\v\f\r \u00a0\u2003\u2028\ufeff")
def test_spaces_are_those_of_ecmascript(space: str) -> None:
    assert misfits({"pattern": r"^\s$"}, space) == []
    assert misfits({"pattern": r"^[^\s]$"}, space) != []


def test_what_a_text_must_not_have_is_checked_for_many_letters_too() -> None:
    schema = {"pattern": r"^(?!\w{1,255}$)[\w-]{1,255}$"}

    assert misfits(schema, "a-b") == []
    assert misfits(schema, "ab") != []
