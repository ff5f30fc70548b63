from __future__ import annotations

from toolcrib.code import ExecutionResult


def test_a_model_is_shown_what_was_printed() -> None:
    assert ExecutionResult(output="one\ntwo\n", return_value=3).text() == "one\ntwo"


def test_a_model_is_shown_the_last_value_when_nothing_was_printed() -> None:
    assert ExecutionResult(return_value={"a": 1}).text() == "{'a': 1}"


def test_the_text_for_a_model_is_never_empty() -> None:
    assert ExecutionResult().text() == "The program ran and printed nothing."


def test_an_error_is_shown_once() -> None:
    failed = ExecutionResult(
        output="begun\n", error_output="Traceback ...\nValueError: no", success=False, error="ValueError (line 1): no"
    )
    refused = ExecutionResult(success=False, error="SyntaxError (line 1): invalid syntax")

    assert failed.text() == "begun\nTraceback ...\nValueError: no"
    assert refused.text() == "SyntaxError (line 1): invalid syntax"


def test_a_model_is_shown_head_and_tail_of_a_long_text() -> None:
    result = ExecutionResult(output="a" * 100_000 + "b" * 156_041)

    shown = result.text()

    assert len(shown) < 20_100
    assert shown.startswith("a" * 13_000)
    assert shown.endswith("b" * 6_000)
    assert "[... 236041 of 256041 characters cut ...]" in shown
    assert len(result.text(None)) == 256_041
