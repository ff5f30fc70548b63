"""Finds the examples of the documentation: pages, their fenced blocks, and the blocks in docstrings.

A block's info string is its language and a few options; CONTRIBUTING.md says what they mean.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

SERVED = {"restate"}
"""The modules of pages that need a server."""

_FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,})(?P<info>[^`]*)$")
_NEEDS = re.compile(r"^<!-- needs (?P<module>[\w.]+) -->$", re.MULTILINE)
_SETUP = re.compile(r"^<!-- setup\s*$")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block (or hidden setup comment): `line` is the number of its first line of text in the file."""

    language: str
    options: dict[str, str]
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Page:
    """Blocks that are read from top to bottom and share one namespace.

    Attributes:
        needs: The module of a framework that it is about, which is not installed where the other pages are run.
    """

    path: Path
    line: int
    blocks: tuple[Block, ...]
    needs: str = ""

    @property
    def name(self) -> str:
        """The path from the root of the repository; with the line, where the page begins inside a file."""
        path = self.path.relative_to(ROOT) if self.path.is_relative_to(ROOT) else self.path
        return f"{path}:{self.line}" if self.line > 1 else str(path)

    @property
    def runs(self) -> bool:
        """Whether anything on the page can be run."""
        return any(block.language in ("python", "console") for block in self.blocks)


def markdown_files() -> list[Path]:
    """Return the files whose links are checked: those at the root, in docs, and beside examples and benchmarks."""
    found = [*ROOT.glob("*.md")]
    for folder in ("docs", "examples", "benchmarks"):
        found += (ROOT / folder).rglob("*.md")
    return sorted(found)


def manual_pages() -> list[Page]:
    """Return README.md and the pages of docs, with their blocks, but for those of frameworks."""
    return [page for page in _pages() if not page.needs]


def framework_pages() -> list[Page]:
    """Return the pages of docs that are each about one framework, with their blocks."""
    return [page for page in _pages() if page.needs and page.needs not in SERVED]


def served_pages() -> list[Page]:
    """Return the pages that each need a server, which the tests of that start."""
    return [page for page in _pages() if page.needs in SERVED]


def _pages() -> list[Page]:
    files = [path for path in markdown_files() if path.name == "README.md" or path.is_relative_to(ROOT / "docs")]
    return [page for page in map(read_page, files) if page.runs]


def docstring_pages() -> list[Page]:
    """Return each docstring of the package that has something to run, as a page of its own."""
    return [page for path in sorted((ROOT / "src").rglob("*.py")) for page in read_docstrings(path)]


def read_page(path: Path) -> Page:
    """Return the page in the Markdown file at `path`."""
    text = path.read_text(encoding="utf-8")
    needs = _NEEDS.search(text)
    return Page(path, 1, tuple(parse_blocks(text)), "" if needs is None else needs["module"])


def read_docstrings(path: Path) -> list[Page]:
    """Return the pages in the docstrings of the module at `path`, those below an assignment too."""
    texts = [
        (node.lineno, node.value.value)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]
    pages = [Page(path, line, tuple(parse_blocks(text, line))) for line, text in texts]
    return [page for page in pages if page.runs]


def parse_blocks(text: str, first_line: int = 1) -> Iterator[Block]:
    """Yield the blocks of `text`, whose first line is line `first_line` of its file.

    Raises:
        ValueError: A fence is not closed.
    """
    lines = enumerate(text.split("\n"), first_line)
    for number, line in lines:
        if _SETUP.match(line):
            yield Block("python", {}, _until(lines, re.compile(r"^-->\s*$"), number, ""), number + 1)
        elif fence := _FENCE.match(line):
            language, *words = fence["info"].split() or [""]
            options = dict((word.split("=", 1) if "=" in word else (word, "")) for word in words)
            end = re.compile(rf"^ *{fence['ticks']}`*\s*$")
            yield Block(language, options, _until(lines, end, number, fence["indent"]), number + 1)


def _until(lines: Iterator[tuple[int, str]], end: re.Pattern[str], start: int, indent: str) -> str:
    taken: list[str] = []
    for _, line in lines:
        if end.match(line):
            return "".join(f"{kept.removeprefix(indent)}\n" for kept in taken)
        taken.append(line)
    raise ValueError(f"the block that opens on line {start} is not closed")
