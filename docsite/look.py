"""Takes pictures of the built site at the widths of a desk, a tablet and a phone, light and dark; axe checks each page.

python -m docsite.look build/site build/pictures
"""

from __future__ import annotations

import json
import shutil
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus, urlsplit

from playwright.sync_api import Page, sync_playwright

from tests.npm.programs import axe

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
WIDTHS = {"desk": 1280, "tablet": 768, "phone": 390}
PAGES = {
    "home": "",
    "tutorial": "tutorial/approval/",
    "how-to": "approvals/",
    "wide-tables": "threat-model/",
    "concepts": "concepts/",
    "states": "concepts/states/",
    "words": "concepts/words/",
    "comparison": "comparison/",
    "references": "reference/",
    "reference": "reference/toolcrib.pipeline/",
    "example": "examples/support/",
}
# What somebody from another library types, and the page that has it: the first that the search shows.
SEARCHED = {
    "standing grant": "saying-yes-less-often/",
    "human in the loop": "approvals/",
    "interrupt": "approvals/",
    "structured output": "session/",
    "agent loop": "session/",
    "guardrails": "gates/",
    "MCP gateway": "gateway/",
    "code mode": "code/",
    "durable": "durable-agents/",
    "prompt injection": "provenance/",
    "LangGraph": "langchain/",
}


COVERED = """[...document.querySelectorAll(".md-code__nav")].some((button) => {
    const code = button.parentElement.querySelector("code").getBoundingClientRect();
    const { left, right, top, bottom } = button.getBoundingClientRect();
    return left < code.right && right > code.left && top < code.bottom && bottom > code.top;
})"""


class Quiet(SimpleHTTPRequestHandler):
    """Serves files, and says nothing of it."""

    def log_message(self, *args: object) -> None:
        return


@contextmanager
def served(folder: Path) -> Generator[str]:
    """Serve `folder` on loopback, and give its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def violations(page: Page) -> list[dict[str, Any]]:
    """Return what axe finds on the page."""
    page.evaluate(axe())
    return page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]


def look(site: Path, pictures: Path) -> list[str]:
    """Return what is wrong with the pages, each with its address and colours."""
    problems: list[str] = []
    pictures.mkdir(parents=True, exist_ok=True)
    with served(site) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        for scheme in ("light", "dark"):
            for width, pixels in WIDTHS.items():
                context = browser.new_context(viewport={"width": pixels, "height": 900}, color_scheme=scheme)
                page = context.new_page()
                requested: list[str] = []
                page.on("request", lambda request, requested=requested: requested.append(request.url))
                for name, path in PAGES.items():
                    page.goto(address + path, wait_until="networkidle")
                    page.screenshot(path=pictures / f"{name}-{width}-{scheme}.png")
                    place = f"/{path} ({width}, {scheme})"
                    if page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
                        problems.append(f"{place}: it is wider than the window")
                    if page.evaluate(COVERED):
                        problems.append(f"{place}: a copy button covers code")
                    for one in violations(page):
                        nodes = [node["target"][-1] for node in one["nodes"][:4]]
                        problems.append(f"{place}: {one['id']}: {one['help']}: {json.dumps(nodes)}")
                outside = {url for url in requested if not url.startswith((address, "data:", "blob:"))}
                problems += [f"({width}, {scheme}): it asked {url}" for url in sorted(outside)]
                context.close()
        problems += searched(browser.new_page(viewport={"width": WIDTHS["desk"], "height": 900}), address)
    return problems


def searched(page: Page, address: str) -> list[str]:
    """Return the words for which the search does not show their page first."""
    problems: list[str] = []
    for words, path in SEARCHED.items():
        page.goto(f"{address}?q={quote_plus(words)}", wait_until="networkidle")
        page.get_by_placeholder("Search").click()
        first = page.locator(".md-search-result__link").first
        first.wait_for(state="attached", timeout=60_000)
        found = urlsplit(first.get_attribute("href") or "").path.lstrip("/")
        if found != path:
            problems.append(f"the search for `{words}` shows /{found} first, and not /{path}")
    return problems


if __name__ == "__main__":
    wrong = look(Path(sys.argv[1]), Path(sys.argv[2]))
    print("\n".join(wrong) or f"no finding on {len(PAGES)} pages, three widths, light and dark: {sys.argv[2]}")
    sys.exit(bool(wrong))
