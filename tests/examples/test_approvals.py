"""The refund desk does what its README says, with the answers on standard input."""

from __future__ import annotations

import io
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from toolcrib.registry import registry_scope

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "approvals" / "refunds.py"


def refunds(command: str, folder: Path, answers: str = "") -> str:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), command, str(folder)],
        input=answers,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.fixture
def refunds_here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Do the same in this process, which is quicker."""

    def run(command: str, folder: Path, answers: str = "") -> str:
        monkeypatch.setattr(sys, "argv", [str(SCRIPT), command, str(folder)])
        monkeypatch.setattr(sys, "stdin", io.StringIO(answers))
        with registry_scope():
            runpy.run_path(str(SCRIPT), run_name="__main__")
        return capsys.readouterr().out

    return run


def test_refunds_wait_for_the_desk_and_run_once(tmp_path: Path) -> None:
    first = refunds("work", tmp_path)
    unanswered = refunds("work", tmp_path)
    at_desk = refunds("desk", tmp_path, "y fine\nn never paid\n")
    last = refunds("work", tmp_path)

    assert first.startswith("refunded 3.00 on order 9\n`refund` is suspended")
    assert first.endswith("2 suspended: answer at the desk\n")
    assert unanswered.endswith("2 suspended: answer at the desk\n")
    assert "cents: 5000 -> 1999" in at_desk
    assert last == "refunded 19.99 on order 7\nRejected: never paid\nnothing is pending\n"
    assert refunds("work", tmp_path) == "nothing is pending\n"


@pytest.mark.parametrize(
    ("answers", "results"),
    [
        ("a\n\n", ["refunded 19.99 on order 7", "refunded 45.00 on order 8"]),
        ("1500\ny\n", ["refunded 15.00 on order 7", "refunded 45.00 on order 8"]),
    ],
    ids=["always", "another amount"],
)
def test_other_answers(answers: str, results: list[str], tmp_path: Path, refunds_here: Callable[..., str]) -> None:
    refunds_here("work", tmp_path)
    refunds_here("desk", tmp_path, answers)

    assert refunds_here("work", tmp_path).splitlines()[:2] == results
    assert "(used)" in refunds_here("history", tmp_path)
