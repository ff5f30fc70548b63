"""The site shows every page, says first how its blocks are run, and what it shows of the pipeline is so."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import get_args

import pytest

from tests.docs.pages import ROOT, Page, framework_pages, manual_pages, markdown_files, read_page, served_pages
from toolcrib.pipeline import CallState

DOCS = ROOT / "docs"
SAYS_HOW = "concepts/running.md"
WRAPPED = ("output", "console", "text", "")
"""What a terminal shows: docs/site.css wraps its lines as a terminal does."""


def test_every_page_is_in_the_navigation_once() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    shown = re.findall(r"([\w./-]+\.md)$", navigation, re.MULTILINE)
    pages = [path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")]
    examples = [f"examples/{path.parent.name}.md" for path in (ROOT / "examples").glob("*/README.md")]

    made = {"changelog.md", "contributing.md", "governance.md", "license.md", "reference/toolcrib.md", "security.md"}
    assert sorted(set(shown) - made) == sorted([*pages, *examples]), "name the page under nav in mkdocs.yml"
    assert len(shown) == len(set(shown))


def test_every_page_has_words_that_the_search_finds_it_by() -> None:
    tagged = re.compile(r"---\n(.+\n)*tags: \[.+\]\n---\n")
    pages = [path.name for path in DOCS.glob("*.md") if not tagged.match(path.read_text("utf-8"))]

    assert pages == [], "write in the front matter what people from elsewhere look for"


@pytest.mark.parametrize("page", [*manual_pages(), *framework_pages(), *served_pages()], ids=lambda page: page.name)
def test_page_with_await_outside_of_a_function_says_first_how_to_run_it(page: Page) -> None:
    lines = page.path.read_text(encoding="utf-8").splitlines()
    shown = [block for block in page.blocks if block.language == "python" and "```" in lines[block.line - 2]]
    awaiting = [block.line for block in shown if awaits(block.text)]

    above = "\n".join(lines[: min(awaiting, default=0)])

    assert not awaiting or SAYS_HOW in above, f"link to {SAYS_HOW} above line {awaiting[0]}, as the other pages do"


@pytest.mark.parametrize("path", sorted((DOCS / "tutorial").glob("[!i]*.md")), ids=lambda path: path.stem)
def test_page_of_the_tutorial_is_one_program_that_is_run_as_a_file(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    assert text.count("```python") == text.count("```python file=main.py") == 1
    assert "$ python main.py" in text


@pytest.mark.parametrize("path", markdown_files(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_code_has_84_columns_in_every_language_whose_lines_the_site_does_not_wrap(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    shown = [one for one in read_page(path).blocks if one.language not in WRAPPED and "```" in lines[one.line - 2]]

    wide = [block.line + at for block in shown for at, text in enumerate(block.text.splitlines()) if len(text) > 84]

    assert wide == [], "write these lines of code in 84 columns: a window of 1280 pixels shows no more"


def test_states_of_a_call_are_in_the_picture_and_on_its_page() -> None:
    picture = (DOCS / "pictures" / "states.svg").read_text(encoding="utf-8")
    page = (DOCS / "concepts" / "states.md").read_text(encoding="utf-8")

    assert [state for state in get_args(CallState) if f">{state}<" not in picture or f"| `{state}` |" not in page] == []


def awaits(text: str) -> bool:
    """Return whether the block is no program of its own: it compiles only where a top-level `await` is allowed."""
    try:
        compile(text, "block", "exec", dont_inherit=True)
    except SyntaxError:
        compile(text, "block", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        return True
    return False
