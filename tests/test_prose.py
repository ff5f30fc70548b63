"""Plain English of the source: the words that no docstring begins with, and the names that nothing has."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import toolcrib

SOURCE = Path(toolcrib.__file__).parent
FILES = [*sorted(SOURCE.rglob("*.py")), SOURCE.parent / "toolcrib_pytest.py"]

FIRST_WORDS = frozenset({"Be", "Come", "Do", "Give", "Have", "Let", "Note", "Take", "Tell"})
"""Verbs that a reference manual does not begin with: say Return, Record, Enqueue, Replace, Run, Pass, Release."""
NAMES = frozenset({"pass_again", "remember", "take_back", "taken_up", "use_once", "weigh"})
"""Names that say nothing of what is named: a name is a noun of the field, or a verb with its object."""


def documented(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield each docstring of a module with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield node.body[0].lineno, text


def names_in(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield each name that a module gives, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE.parent)))
def test_docstrings_and_names_are_those_of_a_reference_manual(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))

    openers = [(line, text.split()[0]) for line, text in documented(tree) if text.split()[0] in FIRST_WORDS]
    names = [(line, name) for line, name in names_in(tree) if name.lstrip("_") in NAMES]

    assert (openers, names) == ([], [])
