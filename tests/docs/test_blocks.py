"""Every example runs: the blocks of README and docs page by page, and those in docstrings."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import Page, docstring_pages, manual_pages
from tests.docs.running import PageError, run_page


@pytest.mark.parametrize("page", manual_pages(), ids=lambda page: page.name)
def test_page_does_what_it_says(page: Page, tmp_path: Path) -> None:
    run(page, tmp_path)


@pytest.mark.parametrize("page", docstring_pages(), ids=lambda page: page.name)
def test_docstring_does_what_it_says(page: Page, tmp_path: Path) -> None:
    run(page, tmp_path)


def run(page: Page, folder: Path) -> None:
    __tracebackhide__ = True
    try:
        run_page(page, folder)
    except PageError as error:
        pytest.fail(str(error), pytrace=error.__cause__ is not None)
