from __future__ import annotations

import ast
import sys

import pytest

from toolcrib.errors import CodeError
from toolcrib.sandbox._source import parse_program


def test_a_syntax_error_is_shown_with_its_line_and_a_caret() -> None:
    with pytest.raises(CodeError) as raised:
        parse_program("x = 1\nprint('a'\n", 1_000)

    assert str(raised.value) == "SyntaxError (line 2): '(' was never closed\n    print('a'\n         ^"


def test_the_caret_counts_from_the_code_and_not_from_the_indent() -> None:
    with pytest.raises(CodeError) as raised:
        parse_program("if True:\n        x = = 2\n", 1_000)

    *_, line, caret = str(raised.value).splitlines()
    assert line[caret.index("^")] == "="


@pytest.mark.parametrize("code", ["-" * 50_000 + "1", "x" + ".a" * 499_000, "(" * 5_000 + ")" * 5_000])
def test_code_that_is_nested_too_deep_is_an_error_like_any_other(code: str) -> None:
    with pytest.raises(CodeError, match="nested"):
        parse_program(code, 1_000_000)


@pytest.mark.parametrize(
    ("code", "why"), [("x = '\ud800'", "lone surrogate"), ("x\0y", "null"), ("x" * 101, "may have 100")]
)
def test_text_that_is_no_program_is_refused(code: str, why: str) -> None:
    with pytest.raises(CodeError, match=why):
        parse_program(code, 100)


def test_a_stray_backslash_gives_no_warning() -> None:
    assert parse_program(r"x = '\d'", 100).text == r"x = '\d'"


@pytest.mark.parametrize("code", ["a\r\nb\r\n", "a\rb\r", "\ufeffa\nb\n"])
def test_line_ends_are_line_feeds(code: str) -> None:
    assert parse_program(code, 100).text == "a\nb\n"


def test_spans_count_bytes() -> None:
    source = parse_program("x = 'é'; y = f('ü')\nz = f(1)", 100)
    calls = [node for node in ast.walk(source.tree) if isinstance(node, ast.Call)]

    spans = [source.span(call) for call in calls]

    assert [source.encoded[start:end].decode() for start, end in spans] == ["f('ü')", "f(1)"]


def test_edits_are_made_in_one_go() -> None:
    source = parse_program("f(a.b, 'é')", 100)

    edited = source.edited([(2, 5, "a__b"), (0, 0, "g("), (12, 12, ")")])

    assert edited.text == "g(f(a__b, 'é'))"
    assert ast.unparse(edited.tree) == "g(f(a__b, 'é'))"


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="f-strings are parsed like all else from 3.12")
@pytest.mark.parametrize("code", ["f'" + "{1}" * 6000 + "'", "f'{1}'\n" * 6000, "F'''" + "{1}\n" * 6000 + "'''"])
def test_f_strings_that_take_the_parser_long_are_refused(code: str) -> None:
    with pytest.raises(CodeError, match="more than 5000 parts"):
        parse_program(code, 200_000)


def test_many_braces_are_no_f_strings() -> None:
    assert parse_program("x = [" + "{}, " * 6000 + "]\nf'{x}'", 200_000)
