"""The page is whole in the package, asks nobody else for anything, and makes no markup of data."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from tests.console.conftest import Console

PAGE = files("toolcrib.console") / "page"
NAMES = sorted(file.name for file in PAGE.iterdir())


@pytest.mark.parametrize("name", NAMES)
def test_every_file_of_the_page_is_served(console: Console, name: str) -> None:
    reply = console.get(f"/{name}")

    assert reply.status == 200
    assert reply.body == (PAGE / name).read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_nothing_comes_from_elsewhere(name: str) -> None:
    text = (PAGE / name).read_text("utf-8").replace("http://www.w3.org/2000/svg", "")

    assert re.findall(r"https?:|//[a-z]+\.[a-z]", text) == []


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith(".js")])
def test_data_never_becomes_markup(name: str) -> None:
    text = (PAGE / name).read_text("utf-8")

    assert (
        re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc", text) == []
    )


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith((".js", ".html"))])
def test_nothing_is_styled_or_run_inline(name: str) -> None:
    text = (PAGE / name).read_text("utf-8")

    assert re.findall(r"<style|\sstyle=|<script(?! type=\"module\" src=)|\son[a-z]+=\"", text) == []
