"""Rooms of the package: none imports a private module of another, and CONTRIBUTING.md has all of them in their rows."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import toolcrib.errors

PACKAGE = Path(toolcrib.errors.__file__).parents[1]
ROOT = Path(__file__).parents[1]


def room_of(module: str) -> str:
    """Return the room of a module: a folder of the package, and each adapter by itself."""
    parts = module.split(".")
    return ".".join(parts[: 3 if parts[1:2] == ["adapters"] else 2])


def imported(file: Path) -> Iterator[str]:
    """Yield the modules of the package that a file imports, and the names that it takes of them."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def private_part(name: str) -> str:
    """Return a name up to its first private part; empty when it has none."""
    parts = name.split(".")
    found = next((n for n, part in enumerate(parts) if part.startswith("_") and not part.startswith("__")), None)
    return "" if found is None else ".".join(parts[: found + 1])


def test_no_room_imports_a_private_module_of_another() -> None:
    found: set[tuple[str, str]] = set()
    for file in PACKAGE.rglob("*.py"):
        room = room_of(".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts))
        private = {private_part(name) for name in imported(file) if name.startswith("toolcrib.")}
        found |= {(room, name) for name in private if name.count(".") > 1 and room_of(name) != room}

    assert found == set()


def test_private_modules_of_packages_are_those_of_dbos_alone() -> None:
    found: set[tuple[str, str]] = set()
    for file in PACKAGE.rglob("*.py"):
        names = {name for name in imported(file) if not name.startswith("toolcrib.")}
        found |= {(str(file.relative_to(PACKAGE)), name) for name in names if private_part(name).count(".")}

    assert {(file, name) for file, name in found if not (name.startswith("dbos.") and "dbos" in file)} == set()


def test_the_picture_of_the_rooms_has_each_of_them_in_its_row() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract.get("exhaustive"))
    rooms = [re.findall(r"\w+", layer) for layer in layers]
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    picture = (ROOT / "CONTRIBUTING.md").read_text("utf-8").split("top row first):\n")[1].split("What a call passes")[0]

    drawn = [re.split(r" {3,}", line.strip())[0].split() for line in picture.splitlines() if line[4:5].isalpha()]

    rows = [{*row} & folders for row in rooms if {*row} & folders]
    assert [{*row} & folders for row in drawn if {*row} & folders] == rows
