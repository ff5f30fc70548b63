"""No hog takes from the host or from others what it may not; and each is seen where what holds it is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.attacks.hogs import HOGS, USER

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the limits are the Linux kernel's")
ROOT = Path(__file__).parents[2]
USERS = [None, USER] if os.geteuid() == 0 else [None]


def verdict(name: str, *options: str) -> str:
    command = [sys.executable, "-m", "tests.attacks.hogs", name, *options]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=800, check=False)
    said = ran.stdout.strip().rpartition("\n")[2]
    if said.startswith("not tried"):
        pytest.skip(said)
    assert said, ran.stderr
    return said


def as_user(user: int | None) -> list[str]:
    return [] if user is None else ["--user", str(user)]


@pytest.mark.parametrize("user", USERS, ids=["mine", "another"][: len(USERS)])
@pytest.mark.parametrize("name", HOGS)
def test_a_hog_is_held(name: str, user: int | None) -> None:
    assert verdict(name, *as_user(user)) == "held"


@pytest.mark.parametrize("name", HOGS)
def test_the_hog_is_seen_where_nothing_holds_it(name: str) -> None:
    assert verdict(name, "--control", *as_user(USERS[-1])) == "HOGGED"
