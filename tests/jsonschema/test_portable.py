"""Patterns as every engine takes them, by what RE2 and ECMAScript take.

The table was made with RE2 (`google-re2` 1.1.20251105) and V8 (Node.js 20, with and without the flag `u`).
"""

from __future__ import annotations

import re

import pytest
from pydantic_core import SchemaValidator
from pydantic_core.core_schema import str_schema

from tests.formats.refusals import refused_by_re2
from toolcrib.jsonschema._patterns import is_pattern
from toolcrib.jsonschema._portable import portable

# A pattern, whether RE2 takes it, whether ECMAScript does, and how it is written.
TABLE: list[tuple[str, bool, bool, str | None]] = [
    (r"^[\w-.]+$", True, True, r"^[\w\-.]+$"),
    ("^[^]*$", False, True, r"^[\s\S]*$"),
    ("[]", False, True, r"[^\s\S]"),
    ("[]a]", True, True, None),
    (r"\cA", False, True, r"\x01"),
    (r"[\u4e00-\u9fa5]", False, True, "[一-龥]"),
    (r"\u00e9", False, True, "é"),
    (r"\xe9", True, True, "é"),
    (r"\U0001f600", False, True, "😀"),
    (r"\u{1F600}", False, True, "😀"),
    (r"\ud83d\ude00", False, True, "😀"),
    (r"\ud83d", False, True, None),
    (r"[\b]", False, True, r"[\x08]"),
    (r"\0", True, True, r"\x00"),
    (r"\x00", True, True, r"\x00"),
    (r"[\x7e\x7f\x9f]", True, True, r"[~\x7f\x9f]"),
    (r"\t", True, True, r"\t"),
    (r"\-", True, True, "-"),
    (r"\/", True, True, "/"),
    (r"\_", True, True, "_"),
    (r"[\-_]", True, True, r"[\-_]"),
    (r"[^[\]]", True, True, r"[^\[\]]"),
    ("[+--]", True, True, r"[+-\-]"),
    ("[!#&]", True, True, "[!#&]"),
    ("a{1,1000}", True, True, "a{1,1000}"),
    ("a{01}", True, True, "a{1}"),
    ("a{00,010}?", True, True, "a{0,10}?"),
    ("a{1,5000}", False, True, None),
    ("a{2,1001}", False, True, None),
    ("(a{100}){100}", False, True, None),
    ("(?:a{10}){100}", True, True, "(?:a{10}){100}"),
    (r"(?:.{1000}\d){20}", False, True, None),
    (r"[\u4e00-\u9fa5A-Z_]{1,1000}", False, True, "[一-龥A-Z_]{1,1000}"),
    ("a{,3}", True, True, None),
    ("a{x", True, True, r"a\{x"),
    ("{}", True, True, r"\{\}"),
    ("a+?", True, True, "a+?"),
    ("a++", False, False, None),
    ("a**", False, False, None),
    ("^*", True, False, None),
    ("(?<year>a)", True, True, "(a)"),
    ("(?P<year>a)", True, False, "(a)"),
    (r"(?<y>a)\k<y>", False, True, None),
    (r"(a)\1", False, True, None),
    ("(?=a)", False, True, None),
    ("(?<!a)", False, True, None),
    ("(?i)a", True, False, None),
    ("(?i:a)", True, False, None),
    ("(?>a)", False, False, None),
    ("(?#a)", False, False, None),
    (r"\p{L}", True, True, None),
    (r"\N{DIGIT ONE}", False, True, None),
    (r"\A", True, True, None),
    (r"\Z", False, True, None),
    (r"\a", True, True, None),
    (r"\x{41}", True, True, None),
    ("[[:alpha:]]", True, True, None),
    ("[a&&b]", True, True, None),
    ("[z-a]", False, False, None),
    ("(", False, False, None),
    (")", False, False, None),
    ("a\\", False, False, None),
    ("", True, True, ""),
    ("^[a-z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-z]+$", True, True, "^[a-z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-z]+$"),
]
WRITTEN = [(pattern, written) for pattern, _, _, written in TABLE if written is not None]


@pytest.mark.parametrize(("pattern", "re2", "ecmascript", "written"), TABLE)
def test_a_pattern_is_written_for_every_engine(pattern: str, re2: bool, ecmascript: bool, written: str | None) -> None:
    assert portable(pattern) == written
    assert re2 or refused_by_re2(pattern), "the list of refusals has it"
    assert written is None or not refused_by_re2(written)
    assert is_pattern(pattern) or not ecmascript, "a schema may have what ECMAScript takes"


@pytest.mark.parametrize(("pattern", "written"), WRITTEN)
def test_what_is_written_is_taken_and_stays_as_it_is(pattern: str, written: str) -> None:
    re.compile(written)
    SchemaValidator(str_schema(pattern=written, regex_engine="rust-regex"))

    assert portable(written) == written


LONG = ["a" * 1_000_000, "[a-z]" * 200_000, f"[{'a-z' * 333_000}]", "(" * 1_000_000, "[^]" * 333_000, "(?<" * 333_000]
LONG += [f"a{{{'1' * 1_000_000}}}", "{1" * 500_000, "(a{9}" * 200_000]


@pytest.mark.parametrize(
    "pattern",
    LONG,
    ids=lambda pattern: f"{pattern[:6]}...",
)
def test_a_pattern_of_a_megabyte_is_given_up_early(pattern: str) -> None:
    assert portable(pattern) is None
