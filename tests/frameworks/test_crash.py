"""A call of a framework's agent that is in doubt after a crash is asked about once; `make crash` tries every point."""

from __future__ import annotations

from pathlib import Path

import pytest

import tests.frameworks.forked  # noqa: F401 -- the killed processes are forked off one that has loaded the frameworks
from tests.crash.__main__ import WAYS, trial
from tests.crash.trial import Point


@pytest.mark.parametrize("way", ["openai agents", "langchain", "google adk"])
async def test_a_doubt_is_one_question_whose_answer_is_used(way: str, tmp_path: Path) -> None:
    row = await trial(WAYS[way], Point.of("answered: before the effect"), tmp_path)

    assert (row.was_killed, row.effects, row.problems) == (True, 1, [])
    assert (row.asked, row.unused) == (["yes", "yes?"], 0)
