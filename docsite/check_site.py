"""Checks a built site: every link and anchor leads somewhere in it, and no page loads anything from elsewhere.

python docsite/check_site.py build/site
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

ORIGIN = "site://"
IN_CSS = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")
# What a browser fetches without being asked: of `link` all, but those that only say something.
SAID = {"canonical", "next", "prev", "alternate", "license", "author"}


@dataclass
class Html(HTMLParser):
    """The anchors of a page, where its links lead, and what a browser loads with it."""

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and not set(given.get("rel", "").split()) & SAID:
            self.loads.append(given.get("href", ""))
        self.loads += [given[name] for name in ("src", "srcset", "poster", "data", "action") if given.get(name)]
        self.loads += [first or second for first, second in IN_CSS.findall(given.get("style", ""))]
        if "mermaid" in given.get("class", "").split():
            self.loads.append("https://unpkg.com/mermaid")  # the theme's script fetches it


def problems(site: Path) -> Iterator[str]:
    """Yield what is wrong, each with its page."""
    pages = {path: parsed(path) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        for link in page.loads:
            if urlsplit(link).scheme not in ("", "data") or link.startswith("//"):
                yield f"{path}: it loads {link}"
        for link in [*page.links, *page.loads]:
            if broken(link, path, site, pages):
                yield f"{path}: {link} leads nowhere"
    for path in sorted(site.rglob("*.css")):
        for first, second in IN_CSS.findall(path.read_text(encoding="utf-8")):
            link = first or second
            if re.match(r"(https?:)?//", link):
                yield f"{path}: it loads {link}"
    yield from unfound(site, pages)


def parsed(path: Path) -> Html:
    page = Html()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def broken(link: str, path: Path, site: Path, pages: dict[Path, Html]) -> bool:
    here = f"{ORIGIN}/{path.relative_to(site).as_posix()}"
    target = urlsplit(urljoin(here.replace(ORIGIN, "http://site"), link))
    if target.scheme not in ("http", "https") or target.netloc != "site":
        return False
    file = site / unquote(target.path).lstrip("/")
    file = file / "index.html" if file.is_dir() else file
    if not file.exists():
        return True
    return bool(target.fragment) and file in pages and unquote(target.fragment) not in pages[file].anchors


def unfound(site: Path, pages: dict[Path, Html]) -> Iterator[str]:
    """Yield the pages that the search does not know."""
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    known = {site / entry["location"].partition("#")[0] / "index.html" for entry in index["docs"]}
    for path in pages.keys() - known - {site / "404.html"}:
        yield f"{path}: the search does not find it"


if __name__ == "__main__":
    built = Path(sys.argv[1])
    found = list(problems(built))
    count = len(list(built.rglob("*.html")))
    print("\n".join(found) or f"{count} pages: each link leads somewhere, and nothing is loaded from elsewhere")
    sys.exit(bool(found))
