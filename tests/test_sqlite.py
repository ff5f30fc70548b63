"""One SQLite library for the process: with two on a file, the locks drop that keep an approval from a second use."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import toolcrib

SOURCES = Path(toolcrib.__file__).parent


def imported(path: Path) -> set[str]:
    """Return the modules that a file imports."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return plain | {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}


@pytest.mark.processes  # a read of the whole source
def test_one_module_alone_chooses_the_library() -> None:
    choosing = {path.relative_to(SOURCES).as_posix() for path in SOURCES.rglob("*.py") if "sqlite3" in imported(path)}

    programs = "sandbox/_worker/_named_files.py"  # what programs import
    assert choosing == {"database/_sqlite.py", programs}
