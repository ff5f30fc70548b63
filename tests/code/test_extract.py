from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.code import Toolkit, extract_code


@pytest.mark.parametrize("label", ["python", "py", "Python", "python3", " python", "python title=x.py", ""])
def test_a_fenced_block_is_the_code(label: str) -> None:
    assert extract_code(f"Here you are:\n\n```{label}\nprint(1)\n```\nDone.") == "print(1)"


def test_all_python_blocks_count_and_others_do_not() -> None:
    reply = "```py\na = 1\n```\nwhich gives\n```\n1\n```\nthen\n```json\n{}\n```\n~~~python\nprint(a)\n~~~"

    assert extract_code(reply) == "a = 1\n\nprint(a)"


def test_the_first_block_alone_counts_where_that_is_asked_for() -> None:
    reply = "```json\n{}\n```\n```py\n\n```\n```py\na = 1\n```\nor\n```py\na = 2\n```"

    assert extract_code(reply, "first") == "a = 1"
    assert extract_code("```\nb = 1\n```\n```\nb = 2\n```", "first") == "b = 1"
    assert extract_code("no code", "first") is None


def test_blocks_are_the_first_or_all() -> None:
    with pytest.raises(ValueError, match="not 'last'"):
        extract_code("", "last")  # pyright: ignore[reportArgumentType] -- what a user may write


def test_a_block_without_a_language_counts_where_none_is_python() -> None:
    assert extract_code("```bash\nls\n```\n```\nprint(1)\n```") == "print(1)"


def test_a_fence_in_a_string_does_not_close_the_block() -> None:
    code = 'text = f"""it\'s\n```\nquoted\n```\n"""  # don\'t\nprint("\'\'\'", text)'

    assert extract_code(f"```python\n{code}\n```\nand so on") == code


def test_a_longer_fence_holds_a_shorter_one() -> None:
    assert extract_code("````python\nx = '''\n```\n'''\n````") == "x = '''\n```\n'''"


def test_a_block_that_was_cut_goes_to_the_end() -> None:
    assert extract_code("```python\nprint(1)\nprint(2") == "print(1)\nprint(2"


def test_an_indented_block_loses_its_indent() -> None:
    assert extract_code("1. do this\n\n   ```python\n   if x:\n       y()\n   ```") == "if x:\n    y()"


@pytest.mark.parametrize("reply", ["", "No code is needed.", "```json\n{}\n```", "```python\n```", "`print(1)` inline"])
def test_a_reply_without_code_gives_none(reply: str) -> None:
    assert extract_code(reply) is None


@given(st.text())
def test_any_reply_is_read(reply: str) -> None:
    code = extract_code(reply)

    assert code is None or code.strip()


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        ("```python\nx = 1\n" * 5_000, True),
        ("```\n" * 20_000, False),
        ("~~~" + " " * 300_000 + "`", False),
        ("```" + "a" * 300_000 + "`", False),
        ('```python\nx = """\n```\n' * 20_000, True),
        ("```python\nif x\n```\n~~~\nif x\n~~~\n" * 5_000, True),
        ("".join("~" * n + '\n"""\n' + "~" * n + "\n" for n in range(3, 500)), True),
    ],
    ids=["opened again", "fences alone", "spaces", "a label", "strings without an end", "no Python", "of any length"],
)
def test_a_reply_of_very_many_fences_is_read_before_the_test_is_ended(reply: str, found: bool) -> None:
    assert (extract_code(reply) is not None) is found


def test_of_a_reply_without_end_the_first_million_characters_are_read() -> None:
    block = "```python\nprint(1)\n```\n"
    cut = block + "```python\n" + "print(2)\n" * 200_000 + "```\n"

    assert extract_code(cut) == "print(1)"
    assert extract_code("a\n" * 500_000 + block) is None


async def test_a_toolkit_does_the_same_wherever_it_is_given_a_reply() -> None:
    reply = "```python\n1\n```\nor\n```python\n2\n```"

    for extract, code in (("all", "1\n\n2"), ("first", "1")):
        toolkit = Toolkit([], extract=extract)

        assert toolkit.extract_code(reply) == toolkit.filter().extract_code(reply) == code
        assert await toolkit.as_tool()(reply) == code[-1]
        mended = await toolkit.execute_async("1 / 0", retry_handler=lambda *failed: reply)
        assert mended.return_value == int(code[-1])
