"""The smallest real use, run as a reader would run it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart.py"

SHOWN = """\
--- a call, and one that does not fit
{"city": "Oslo", "temp": 4.0, "sky": "snow"}
InvalidArguments: `get_weather` cannot take these arguments:
--- a call that waits for a person
book_flight needs approval
  origin = "Oslo"
  destination = "Rome"
  day = "2026-05-01"
Oslo to Rome on 01 May: seat 14A
--- a program, as a model writes it
Oslo 4.0
Rome 4.0
"""


def test_the_quickstart_shows_what_it_promises() -> None:
    made = subprocess.run([sys.executable, QUICKSTART], capture_output=True, text=True, check=False)

    lines = [line.partition(" city: ")[0] for line in made.stdout.splitlines()]
    assert (made.returncode, made.stderr) == (0, "")
    assert lines == SHOWN.splitlines()
