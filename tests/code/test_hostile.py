"""What a program may ask of its host without end costs the host next to nothing."""

from __future__ import annotations

from typing import Any

import pytest

from toolcrib import ez_tool
from toolcrib.code import Toolkit


@ez_tool
def total(numbers: list[int], **more: int) -> int:
    """Add numbers.

    Args:
        numbers: What to add.
    """
    return sum(numbers)


@pytest.mark.parametrize("call", ["search_tools('add ' * 100_000)", "describe('ab' * 100_000)"])
async def test_a_question_without_end_is_refused(call: str) -> None:
    result = await Toolkit([total]).execute_async(call)

    assert "and may have 2000" in (result.error or "")


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ("total(['x'] * 5000)", "ValueError"),
        ("total([], **{f'k{n}': 'x' for n in range(5000)})", "ValueError"),
        ("total(None, 1, 2)", "TypeError"),
    ],
)
async def test_of_a_call_with_very_many_mistakes_some_are_reported(call: str, kind: str) -> None:
    result = await Toolkit([total]).execute_async(call)

    assert (result.error or "").startswith(kind)
    assert len(result.error or "") < 5_000


@ez_tool
def echo(value: Any) -> Any:
    """Return what it is given."""
    return value


async def test_what_is_kept_of_the_calls_of_a_program_does_not_grow_without_end() -> None:
    result = await Toolkit([echo]).execute_async(
        "value = [{} for _ in range(20_000)]\nfor _ in range(12):\n    echo(value)\necho('x' * 90_000)"
    )

    kept = [call["arguments"] is not None for call in result.tool_calls]
    assert kept == [True] * kept.count(True) + [False] * kept.count(False)
    assert 2 < kept.count(True) < 12
    assert [call["outcome"] for call in result.tool_calls] == ["completed"] * 13
    assert "characters cut" in result.tool_calls[-1]["result"]


@pytest.mark.parametrize("value", ["\ud800", ["\ud800"], {"key": ["\udfff"]}])
async def test_half_a_character_is_a_value_like_others(value: Any) -> None:
    def half() -> Any:
        """Return half of a pair."""
        return value

    result = await Toolkit([ez_tool(half)]).execute_async("half() is None")

    assert (result.return_value, result.error) == (False, None)
