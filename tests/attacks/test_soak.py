"""The soak in short: programs of four tenants and twelve sessions, and nothing that is left of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(sys.platform != "linux", reason="its processes need Linux")
def test_nothing_is_left_of_three_hundred_programs() -> None:
    options = ["--programs", "300", "--tenants", "4", "--sessions", "12", "--rounds", "0"]

    ran = subprocess.run(
        [sys.executable, "-m", "tests.attacks.soak", *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "wrong: 0" in ran.stdout
    assert "nothing is left behind" in ran.stdout
