"""Links between the pages of the repository lead somewhere."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, markdown_files

LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)[^)]*\)|^\[[^\]]+\]:\s+(?P<reference>\S+)", re.MULTILINE)
CODE = re.compile(r"^ *(`{3,})[^\n]*\n.*?^ *\1`*[ \t]*$|``[^`]+``|`[^`\n]+`", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", re.MULTILINE)


@pytest.mark.parametrize("path", markdown_files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_of_a_page_lead_somewhere(path: Path) -> None:
    broken = broken_links(path)

    assert broken == []


def test_broken_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# What it *is*: `Tool`s\n\n```\n# not a heading\n```\n\n## Twice\n## Twice\n")
    good = "[a](other.md) [b](other.md#what-it-is-tools) [c](other.md#twice-1) [d](https://example.org/x) `[e](gone)`"
    bad = "[f](gone.md) [g](other.md#not-a-heading) [h](#nowhere) [i](/etc/hosts)"
    (tmp_path / "page.md").write_text(f"{good}\n\n{bad}\n\n[ref]: lost.md\n")

    found = broken_links(tmp_path / "page.md")

    assert found == ["gone.md", "other.md#not-a-heading", "#nowhere", "/etc/hosts", "lost.md"]


def test_each_page_leads_to_the_next_one_of_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    names = [path.stem for path in (ROOT / "docs").glob("*.md") if path.stem != "index"]
    order = [name for name in re.findall(r"- ([\w-]+)\.md$", navigation, re.MULTILINE) if name in names]
    pages = [(ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in order]

    following = [re.findall(r"^Next: .*?\((.+?)\.md\)", page, re.MULTILINE) for page in pages]

    assert following == [*([name] for name in order[1:]), []]


def test_the_readme_links_each_page_once_below_its_text() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    lists = readme[readme.index("## Ways in") :]

    linked = re.findall(r"\]\(docs/([\w-]+)\.md[)#]", lists)

    assert sorted(linked) == sorted(path.stem for path in (ROOT / "docs").glob("*.md"))


def broken_links(path: Path) -> list[str]:
    text = CODE.sub("", path.read_text(encoding="utf-8"))
    targets = [match["target"] or match["reference"] for match in LINK.finditer(text)]
    return [target for target in targets if not re.match(r"[a-z]+:", target) and not leads_somewhere(path, target)]


def leads_somewhere(path: Path, target: str) -> bool:
    place, _, anchor = target.partition("#")
    file = path.parent / place if place else path
    if file.parent == ROOT / "docs" / "reference" and file.name != "index.md":  # made when the site is built
        return find_spec(file.stem) is not None
    if place.startswith("/") or not file.exists():
        return False
    return not anchor or file.suffix != ".md" or anchor in anchors(file)


def anchors(path: Path) -> set[str]:
    """Return the anchors that a Markdown host makes of the headings: lower case, no punctuation, hyphens, numbered."""
    text = re.sub(r"^ *(`{3,})[^\n]*\n.*?^ *\1`*[ \t]*$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    found: set[str] = set()
    for heading in HEADING.findall(text):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        number = sum(known == slug or re.fullmatch(rf"{re.escape(slug)}-\d+", known) is not None for known in found)
        found.add(f"{slug}-{number}" if number else slug)
    return found
