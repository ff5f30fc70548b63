"""The worker's code stands alone in the confined process, and shares with the host what is meant for both."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import toolcrib.sandbox

HOST = Path(toolcrib.sandbox.__path__[0])
WORKER = HOST / "_worker"


def imports_of(file: Path) -> Iterator[tuple[int, str]]:
    """Yield the modules that a file imports, each with how many folders up it is looked for."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.level, node.module or ""


def test_a_worker_imports_its_own_modules_and_the_standard_library() -> None:
    found = {(file.name, name) for file in WORKER.glob("*.py") for level, name in imports_of(file) if level != 1}

    assert {pair for pair in found if pair[1].partition(".")[0] not in sys.stdlib_module_names} == set()


def test_the_host_imports_of_a_worker_what_is_meant_for_both() -> None:
    names = {name for file in HOST.glob("*.py") for _, name in imports_of(file) if "._worker." in name}

    assert names == {
        f"toolcrib.sandbox._worker.{file.stem}" for file in WORKER.glob("*.py") if not file.stem.startswith("_")
    }
