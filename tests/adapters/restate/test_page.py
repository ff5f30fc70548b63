"""The page about Restate does what it says, on a server and at a port of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.docs.pages import Block, served_pages
from tests.docs.running import run_page
from tests.npm.restate import RestateServer, free_port

pytest.importorskip("toolcrib.adapters.restate", exc_type=ImportError)


def test_the_page_does_what_it_says(server: RestateServer, tmp_path: Path) -> None:
    (page,) = served_pages()
    port = str(free_port())

    def here(block: Block) -> Block:
        text = block.text.replace("http://127.0.0.1:8080", server.ingress).replace(
            "http://127.0.0.1:9070", server.admin
        )
        return replace(block, text=text.replace("9080", port))

    run_page(replace(page, blocks=tuple(map(here, page.blocks))), tmp_path)
