"""The picture of a trace shows what a run exports."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.trace_picture import PICTURE

ROOT = PICTURE.parents[2]


def spans_in(picture: Path) -> list[tuple[str, str]]:
    return re.findall(r'data-depth="(\d+)"[^>]*>([^<]+)<', picture.read_text(encoding="utf-8"))


@pytest.mark.skipif(sys.platform != "linux", reason="the processes of ProcessSandbox need Linux")
def test_the_picture_shows_the_spans_of_a_new_run(tmp_path: Path) -> None:
    made = tmp_path / "trace.svg"

    command = [sys.executable, "-m", "tests.docs.trace_picture", str(made)]  # a process has one provider, set once
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)

    assert spans_in(PICTURE) == spans_in(made), "run `python -m tests.docs.trace_picture`"
    assert [name for _, name in spans_in(made)].count("execute_tool find_order") == 2
