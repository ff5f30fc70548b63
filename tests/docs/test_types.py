"""Programs of the README as type checkers see them: strictly, and as they stand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, read_page

PYRIGHT = ("-m", "pyright", "--pythonpath", sys.executable, "-p")
MYPY = ("-m", "mypy", "--strict", "--no-error-summary", "--cache-dir")


def programs() -> str:
    """Return the first program, and the one about a call that waits, which goes on from it."""
    first, *others = [block.text for block in read_page(ROOT / "README.md").blocks if block.language == "python"]
    [waits] = [text for text in others if "grant=" in text]
    inner = "\n".join(f"    {line}".rstrip() for line in waits.splitlines())
    return f"{first}\n\nasync def main() -> None:\n{inner}\n"


@pytest.mark.parametrize("checker", [PYRIGHT, MYPY], ids=["pyright", "mypy"])
def test_the_first_programs_are_typed(checker: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(programs(), encoding="utf-8")
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}', encoding="utf-8")
    paths = [str(tmp_path)] if checker is PYRIGHT else [str(tmp_path / "cache"), str(tmp_path / "program.py")]

    done = subprocess.run([sys.executable, *checker, *paths], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
