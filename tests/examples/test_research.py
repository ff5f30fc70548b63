"""The research assistant of `make demo-agent`, run as a user runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_assistant_finds_out_and_keeps_what_a_person_has_to_decide(tmp_path: Path) -> None:
    environment = {**os.environ, "SHOP_DB": str(tmp_path / "shop.db"), "COLUMNS": "120", "PYTHONWARNINGS": "error"}
    command = [sys.executable, "examples/research/assistant.py"]

    run = subprocess.run(
        command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )

    assert run.returncode == 0, run.stderr
    assert "Traceback" not in run.stderr
    assert "4 orders are late" in run.stderr
    assert "call refund  suspended" in run.stderr
    assert "- order 1003 is in customs in Turin" in run.stdout
    assert "- [order 1005] ordered by Emre on 2026-03-06" in run.stdout
    assert run.stdout.count("Still to be answered: refund needs approval") == 1
