"""Plain English of the source: the words that no docstring begins with, and the names that nothing has."""

from __future__ import annotations

import ast
import re
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
ROOM_FIRST_WORDS = frozenset({"Bring", "Get", "Go", "Look", "Mend", "Revive", "Say"})
"""Verbs that begin no docstring in those rooms: say Record, Report, Print, Migrate, Resume, Poll, Repair."""
ROOM_NAMES = frozenset({"made"})
"""Names that are gone from all rooms but those of `ROOMS_LEFT`: a variable is called what it is, `call` or `schema`."""
ROOM_PHRASES = re.compile(
    r"(?<!there )(?<!There )\b(?:is|are|was|were) (?:none\b|no (?!good|less|longer|more|such|time)\w+)"
    r"|\b[Tt]here (?:is|are) none;"
)
"""Phrases that are gone from all rooms but those of `ROOMS_LEFT`: say "is not a path", "no key is configured"."""
ATTRIBUTES = re.compile(r"^Attributes:\n((?:\n|    .*\n?)+)", re.MULTILINE)
"""The attributes that the docstring of a class names, up to the next section."""
ROOMS_LEFT = (
    "adapters/mcp_client",
    "formats",
)


def short(path: Path) -> str:
    """Return the path of a file of the package, for the name of a test."""
    return path.relative_to(SOURCE.parent).as_posix()


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


def named_attributes(cls: ast.ClassDef) -> set[str]:
    """Return the attributes that the docstring of a class names."""
    section = ATTRIBUTES.search(ast.get_docstring(cls) or "")
    lines = [] if section is None else re.findall(r"^    (\w[\w, ]*):", section[1], re.MULTILINE)
    return {name.strip() for line in lines for name in line.split(",")}


def attributes_in(cls: ast.ClassDef) -> set[str]:
    """Return whatever may be an attribute of a class: what its body assigns, defines, or lists as a slot."""
    found: set[str] = set()
    for node in ast.walk(cls):
        match node:
            case ast.Attribute(attr=name) | ast.Name(id=name) | ast.FunctionDef(name=name):
                found.add(name)
            case ast.Constant(value=str() as name):
                found.add(name)
            case _:
                pass
    return found


def sentences(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield each text of a module with its line: docstrings, and what its code says to somebody."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, " ".join(node.value.split())
        elif isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "value" for part in node.values)
            yield node.lineno, " ".join("".join(map(str, parts)).split())


@pytest.mark.parametrize("path", FILES, ids=short)
def test_docstrings_and_names_are_those_of_a_reference_manual(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))

    openers = [(line, text.split()[0]) for line, text in documented(tree) if text.split()[0] in FIRST_WORDS]
    names = [(line, name) for line, name in names_in(tree) if name.lstrip("_") in NAMES]

    assert (openers, names) == ([], [])


@pytest.mark.parametrize(
    "path",
    [path for path in FILES if not short(path).startswith(tuple(f"toolcrib/{room}/" for room in ROOMS_LEFT))],
    ids=short,
)
def test_texts_and_names_are_plain_english(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))

    phrases = [(line, text) for line, text in sentences(tree) if ROOM_PHRASES.search(text)]
    openers = [(line, text) for line, text in documented(tree) if text.split()[0].rstrip(",") in ROOM_FIRST_WORDS]
    names = [(line, name) for line, name in names_in(tree) if name in ROOM_NAMES]

    assert (phrases, openers, names) == ([], [], [])


def test_docstrings_of_classes_name_attributes_that_there_are() -> None:
    trees = [(path, ast.parse(path.read_text("utf-8"))) for path in FILES]
    classes = [(path, node) for path, tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    own: dict[str, set[str]] = {}
    for _, cls in classes:
        own.setdefault(cls.name, set()).update(attributes_in(cls))

    def attributes_of(cls: ast.ClassDef) -> set[str]:
        bases = [ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in cls.bases]
        return attributes_in(cls).union(*(own.get(base, set()) for base in bases))

    named = [(short(path), cls, named_attributes(cls)) for path, cls in classes]
    assert sum(len(names) for _, _, names in named) > 500  # the section is found

    assert [
        (path, cls.name, names - attributes_of(cls)) for path, cls, names in named if names - attributes_of(cls)
    ] == []
