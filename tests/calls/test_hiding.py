"""Secret values in texts: in each form that a text may have them, in texts of any length, in errors of any shape."""

import html
import json
import re
from collections.abc import Callable
from typing import Any, SupportsIndex
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.calls import Hiding
from toolcrib.calls._secret_forms import SecretForms
from toolcrib.errors import LockHeldError, ToolTimeoutError

FORMS: dict[str, Callable[[str], str]] = {
    "repr": repr,
    "repr in other quotes": lambda text: repr(f"\"{text}'"),
    "ascii": ascii,
    "bytes": lambda text: repr(text.encode()),
    "json": json.dumps,
    "json in letters": lambda text: json.dumps(text, ensure_ascii=False),
    "address": quote,
    "all of an address": lambda text: quote(text, ""),
    "query": quote_plus,
    "page": html.escape,
}
_CHARACTERS = st.characters(exclude_categories=["Cs", "Cc", "Cn", "Co"]) | st.sampled_from("\n\t\\'\"%+&/")
_VALUES = st.text(_CHARACTERS, min_size=8, max_size=40).map(str.strip)


@given(_VALUES, st.lists(st.sampled_from(sorted(FORMS)), max_size=2))
def test_a_value_is_hidden_in_each_form_and_in_forms_of_forms(value: str, forms: list[str]) -> None:
    def written(text: str) -> str:
        for form in forms:
            text = FORMS[form](text)
        return text

    hidden = Hiding([value]).hide(written(f"({value})"))

    if len(value) >= 8:
        assert "[redacted]" in hidden
        assert len(re.findall(r"\w", hidden)) <= len(re.findall(r"\w", written("('\\\")"))) + len("redacted")


@pytest.mark.parametrize("secret", ["hunter2xyz", "a/b+c=d e&9", "it's-me-4711"])
@pytest.mark.parametrize("case", [str.upper, str.lower])
def test_a_value_is_hidden_in_capitals_and_small_letters(secret: str, case: Callable[[str], str]) -> None:
    hiding = Hiding([secret])

    assert hiding.hide(f"({case(secret)})") == "([redacted])"
    assert hiding.hide(case(quote(secret))) == "[redacted]"


def test_a_part_of_a_long_value_is_hidden_in_each_form() -> None:
    hiding = Hiding(["ABCDEFGH/IJKLMNOP'QRSTUVWX"])

    shown = hiding.hide("defgh/ijklmnop, defgh%2fijklmnop, mnop\\'qrstuvwx12, defgh")

    assert shown == "[redacted], [redacted], [redacted]12, defgh"


def test_bytes_that_are_no_text_are_hidden_as_base64_and_as_python_writes_them() -> None:
    hiding = Hiding(["data:application/octet-stream;base64,/////4CBgoM="])

    assert hiding.hide(r"/////4CBgoM= is b'\xff\xff\xff\xff\x80\x81\x82\x83'") == "[redacted] is b'[redacted]'"


@given(st.integers(0, 60), st.sampled_from([40, 61, 200]), st.booleans())
def test_what_is_cut_has_no_half_of_a_value(before: int, limit: int, escaped: bool) -> None:
    value = "pass-wörd-1"
    text = f"{'x' * before}{ascii(value)[1:-1] if escaped else value}{'y' * (300 - before)}"

    shown = Hiding([value]).hide(text, limit)

    assert re.fullmatch(r"x*(\[redacted\])?y*\n\[\.\.\. .* characters cut \.\.\.\]\ny*", shown)


def test_a_huge_text_is_cut_and_has_no_value() -> None:
    shown = Hiding(["hunter2xyz"]).hide("hunter2xyz, " * 1_000_000)

    assert "hunter" not in shown
    assert "12000000 characters cut" in shown
    assert Hiding(["hunter2xyz"]).hide(shown) == shown


def test_the_work_does_not_grow_with_the_number_of_values() -> None:
    text = "the key of nobody; " * 500
    looked_at: list[int] = []

    class Counted(str):
        def __getitem__(self, key: SupportsIndex | slice) -> str:
            looked_at.append(1)
            return str.__getitem__(self, key)

        def lower(self) -> str:
            return self

    for count in (1, 2_000):
        SecretForms({f"key-{number:06d}-of-somebody" for number in range(count)}).spans(Counted(text))

    assert len(looked_at) < 8 * len(text)


def _deep(error: BaseException, levels: int) -> BaseException:
    for _ in range(levels):
        error = BaseExceptionGroup("in", [error])
    return error


@pytest.mark.parametrize("levels", [50, 150, 3_000])
def test_a_group_of_any_depth_is_hidden(levels: int) -> None:
    found: Any = Hiding(["hunter2xyz"]).hide_error(_deep(ValueError("hunter2xyz"), levels))

    while members := getattr(found, "exceptions", ()):
        found = members[0]
    assert str(found) == ("[redacted]" if levels < 100 else "1 more error left out")


def test_members_of_a_wide_group_are_left_out() -> None:
    found = Hiding(["hunter2xyz"]).hide_error(ExceptionGroup("all", [ValueError("hunter2xyz") for _ in range(5_000)]))

    assert len(found.exceptions) < 200
    assert {str(one) for one in found.exceptions[:-1]} == {"[redacted]"}
    assert str(found.exceptions[-1]) == "4,901 more errors left out"


class Denied(Exception):
    def __init__(self, pin: str) -> None:
        super().__init__("denied")
        self.pin, self.tries = pin, [{"pin": pin}]


class Late(ToolTimeoutError):
    def __init__(self, pin: str) -> None:
        super().__init__("pay", 1.0)
        self.pin = pin

    def __str__(self) -> str:
        return f"too late for {self.pin}"


def _noted(pin: str) -> Exception:
    error = LockHeldError("pay", "the lock")
    error.add_note(pin)
    return error


def _named(pin: str) -> Exception:
    return type(pin, (Exception,), {})("wrong")


@pytest.mark.parametrize("make", [Denied, Late, _noted, _named])
def test_all_of_an_error_is_hidden(make: Callable[[str], Exception]) -> None:
    found = Hiding(["hunter2xyz"]).hide_error(make("hunter2xyz"))

    assert "hunter2xyz" not in f"{found} {found!r} {vars(found)} {type(found).__name__}"
