"""A browser for the tests of front ends, and pages bundled from the clients that npm has."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.npm.programs import MODULES, NotInstalledError, command

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
_PATIENCE = 60_000  # milliseconds that a busy machine may take to show something


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("there is no chromium; `.ci/packages chromium` installs it")
    playwright = pytest.importorskip("playwright.sync_api")  # `make test` does without
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-dev-shm-usage"]
    playwright.expect.set_options(timeout=_PATIENCE)
    with playwright.sync_playwright() as started:
        made = started.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield made
        made.close()


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], str]:
    """Return the script of a page with all that it imports from npm."""

    def bundled(source: Path) -> str:
        out = tmp_path_factory.mktemp("bundle") / "page.js"
        options = ["--bundle", "--jsx=automatic", '--define:process.env.NODE_ENV="production"', f"--outfile={out}"]
        try:
            program = command("esbuild", str(source), *options, "--log-level=warning")
        except NotInstalledError as error:
            pytest.skip(str(error))
        subprocess.run(program, check=True, env={**os.environ, "NODE_PATH": str(MODULES)})
        return out.read_text("utf-8")

    return bundled
