"""No way of calling a tool pays twice after a crash: a few points of a few ways; `make crash` tries all of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.crash.__main__ import WAYS, trial
from tests.crash.points import DATABASE
from tests.crash.trial import AT_ONCE, DONE, Point, Trial, server
from toolcrib.approvals import SqliteApprovalStore
from toolcrib.calls import ApprovalRequest

IN_DOUBT = ("answered: before the effect", "answered: after the effect")


@pytest.fixture(autouse=True, scope="module")
def _preloaded() -> None:
    server.set_forkserver_preload(["tests.crash.jobs", "tests.crash.servers"])


@pytest.mark.parametrize("way", ["session", "round", "program", "stored session"])
@pytest.mark.parametrize("point", [*IN_DOUBT, AT_ONCE])
async def test_a_call_is_made_once_or_asked_about(way: str, point: str, tmp_path: Path) -> None:
    row = await trial(WAYS[way], Point.of(point), tmp_path)

    assert row.was_killed or point == AT_ONCE
    assert (row.effects, row.problems) == (1, []), str(row)


@pytest.mark.parametrize("point", ["answered: after the effect", "answered: post hook"])
async def test_a_call_of_an_mcp_client_is_made_once_or_asked_about(point: str, tmp_path: Path) -> None:
    row = await trial(WAYS["mcp stdio"], Point.of(point), tmp_path)

    assert (row.was_killed, row.effects, row.problems) == (True, 1, []), str(row)


# --- each check can fail


def _trial(folder: Path, *texts: tuple[str, int], effects: int = 1) -> Trial:
    (folder / "effects").write_text("paid 5\n" * effects)
    (folder / "heard").write_text("".join(json.dumps(each) + "\n" for each in texts))
    return Trial(WAYS["session"], "spoilt", folder)


async def test_a_second_effect_is_a_problem(tmp_path: Path) -> None:
    found = _trial(tmp_path, effects=2)

    await found.judge()

    assert found.row.problems == ["paid 2 times"]


async def test_a_refusal_of_a_call_that_ran_is_a_problem(tmp_path: Path) -> None:
    found = _trial(tmp_path, ("Rejected: not paid", 0), ("Rejected: used before", 1), (f"Rejected: {DONE}", 1))

    await found.judge()

    assert found.row.problems[:-1] == ["said of a call that ran: 'Rejected: used before'"]


async def test_a_question_without_a_doubt_is_a_problem_after_the_effect(tmp_path: Path) -> None:
    found, store = _trial(tmp_path), SqliteApprovalStore(tmp_path / DATABASE)
    await store.put(ApprovalRequest("ask_0", "call_0", "pay", {"cents": 5}, digest="digest"))

    await found.answer()

    assert "asked without a word of doubt after the effect" in found.row.problems[0]
    assert await store.list(pending=True) == ()


async def test_a_second_question_about_one_doubt_is_a_problem(tmp_path: Path) -> None:
    found = _trial(tmp_path)
    found.row.asked += ["yes", "yes?", "done?"]

    await found.judge()

    assert found.row.problems == ["asked 2 times about the doubt: yes?, done?"]
