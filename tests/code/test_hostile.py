"""What a program may ask of its host without end costs the host next to nothing."""

from __future__ import annotations

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
async def test_a_call_with_very_many_mistakes_is_told_of_some(call: str, kind: str) -> None:
    result = await Toolkit([total]).execute_async(call)

    assert (result.error or "").startswith(kind)
    assert len(result.error or "") < 5_000
