"""Hooks of MkDocs that make a site of the repository's Markdown.

The pages of docs are read on the repository's own web page and by the tests too, so that they stay plain Markdown.
What the site needs besides is made here: the pages of examples, of the changelog and such, the pages of the API
reference, links between all of these, and fences in MkDocs' words.
"""

from __future__ import annotations

import posixpath
import re
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import griffe
from mkdocs.structure.files import File, Files

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests import public_api  # noqa: E402 -- the checkout is no package

public_modules = cache(public_api.public_modules)
exports = public_api.exports

SINGLE = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md"}
SINGLE |= {"GOVERNANCE.md": "governance.md", "README.md": "index.md", "LICENSE": "license.md"}
FENCE = re.compile(
    r"^(?P<indent> *)(?P<ticks>`{3,})(?P<info>[^`\n]*)\n(?P<text>.*?)^(?P=indent)(?P=ticks)`*[ \t]*$", re.M | re.S
)
# Pages about a task come before those that list everything.
LATE_IN_SEARCH = "---\nsearch:\n  boost: 0.01\n---\n\n"
SETUP = re.compile(r"^<!-- (setup\n.*?^|needs [\w.]+ )-->\n?", re.M | re.S)
LINK = re.compile(r"(?P<before>\]\()(?P<target>[^)\s#]*)(?P<anchor>#[^)\s]*)?(?P<after>\))")
IMAGE = re.compile(r'(?P<before><img [^>]*src=")(?P<target>[^":]+)')
EXTERNAL = re.compile(r"[a-z]+:|//")
SHOWN = {".json", ".py", ".sh", ".sql", ".toml"}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the generated pages at the end of their parts of the navigation."""
    for part in config.nav or []:
        for title, entries in part.items():
            if title == "Reference":
                names = [name for name in public_modules() if name != "toolcrib"]
                entries += [{name.removeprefix("toolcrib."): _reference_path(name)} for name in names]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in docs, and the icon, which is the console's."""
    icon = ROOT / "src" / "toolcrib" / "console" / "page" / "icon.svg"
    files.append(File.generated(config, icon.name, abs_src_path=str(icon)))
    for source, uri in SINGLE.items():
        if uri != "index.md" and (ROOT / source).exists():
            files.append(File.generated(config, uri, content=_single(source)))
    for readme in sorted((ROOT / "examples").glob("*/README.md")):
        files.append(File.generated(config, f"examples/{readme.parent.name}.md", content=_example(readme)))
    for name, module in public_modules().items():
        text = _top_level() if name == "toolcrib" else _reference(name, exports(module))
        files.append(File.generated(config, _reference_path(name), content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to pages of the site, and say the fences' options as MkDocs reads them."""
    uri = page.file.src_uri
    origin = posixpath.dirname(_origin(uri))
    parts: list[str] = []
    start = 0
    text = SETUP.sub("", markdown)
    for fence in FENCE.finditer(text):
        parts += [_linked(text[start : fence.start()], origin, uri), _fenced(fence)]
        start = fence.end()
    return "".join([*parts, _linked(text[start:], origin, uri)])


def _single(source: str) -> str:
    text = (ROOT / source).read_text(encoding="utf-8")
    if source == "CHANGELOG.md":
        return LATE_IN_SEARCH + text
    return text if source.endswith(".md") else f"# License\n\n{text}"


def _example(readme: Path) -> str:
    """Return the page of an example: its README, and below it the files that are in its folder.

    It has no table of contents: the files of examples have longer lines than code in the pages.
    """
    parts = ["---\nhide: [toc]\n---\n", readme.read_text(encoding="utf-8")]
    for path in sorted(readme.parent.iterdir()):
        if path.suffix in SHOWN:
            language = {"py": "python", "sh": "bash"}.get(path.suffix[1:], path.suffix[1:])
            parts.append(f"## {path.name}\n\n````{language}\n{path.read_text(encoding='utf-8')}````\n")
    return "\n".join(parts)


def _reference_path(module: str) -> str:
    return f"reference/{module}.md"


def _reference(module: str, names: list[str]) -> str:
    members = "".join(f"\n        - {name!r}" for name in names) or " []"
    return f"{LATE_IN_SEARCH}# {module}\n\n::: {module}\n    options:\n      members:{members}\n"


def _top_level() -> str:
    """Return the page of what `from toolcrib import ...` has: each name, and the page that says all of it."""
    modules = public_modules()
    rows: list[str] = []
    for name in exports(modules["toolcrib"]):
        member = _defined(modules["toolcrib"], name)
        homes = [
            path
            for path, module in modules.items()
            if path != "toolcrib" and name in exports(module) and _defined(module, name).path == member.path
        ]
        said = (
            member.docstring.value.split("\n\n")[0].replace("\n", " ").replace("|", "\\|") if member.docstring else ""
        )
        where = f"[`{name}`][{homes[0]}.{name}]" if homes else f"`{name}`"
        rows.append(f"| {where} | {said} |")
    text = "# toolcrib\n\nThe names that most programs need: `from toolcrib import ...`. "
    text += (
        "Each leads to the page of its module, which has the whole of it. All other names are in the modules alone: "
    )
    text += "see [what is where](index.md).\n\n"
    return text + "| name | is |\n|---|---|\n" + "\n".join(rows) + "\n"


def _defined(module: griffe.Module, name: str) -> griffe.Object:
    member = module.members[name]
    return member.final_target if isinstance(member, griffe.Alias) else member


def _origin(uri: str) -> str:
    """Return the path in the repository of what the page at `uri` was made of."""
    single = {page: source for source, page in SINGLE.items() if page != "index.md"}
    if uri in single:
        return single[uri]
    if example := re.fullmatch(r"examples/(\w+)\.md", uri):
        return f"examples/{example[1]}/README.md"
    return f"docs/{uri}"


def _linked(text: str, origin: str, uri: str) -> str:
    def lead(link: re.Match[str]) -> str:
        target, anchor = link["target"], link["anchor"] or ""
        if not target or EXTERNAL.match(target):
            return link[0]
        path = posixpath.normpath(posixpath.join(origin, target))
        place, anchor = _place(path, anchor)
        relative = posixpath.relpath(place, posixpath.dirname(uri) or ".")
        return f"{link['before']}{relative}{anchor}{link['after']}"

    # MkDocs leaves HTML as it is, and shows a page one folder deeper than its file is.
    deeper = "" if uri.endswith("index.md") else "../"
    return LINK.sub(lead, IMAGE.sub(rf"\g<before>{deeper}\g<target>", text))


def _place(path: str, anchor: str) -> tuple[str, str]:
    """Return the page of the site, and the place on it, that show the file at `path` of the repository."""
    if path in SINGLE:
        return SINGLE[path], anchor
    if example := re.fullmatch(r"examples/(\w+)/(README\.md)?(.*)", path):
        return f"examples/{example[1]}.md", f"#{re.sub(r'[^a-z0-9_-]', '', example[3].lower())}" if example[
            3
        ] else anchor
    return path.removeprefix("docs/"), anchor


def _fenced(fence: re.Match[str]) -> str:
    language, *words = fence["info"].split() or ["text"]
    file = next((word.removeprefix("file=") for word in words if word.startswith("file=")), "")
    shown = {"output": "text"}.get(language, language)
    title = file or ("Output" if language == "output" else "")
    opening = f'{shown} title="{title}"' if title else shown
    return f"{fence['indent']}{fence['ticks']}{opening}\n{fence['text']}{fence['indent']}{fence['ticks']}"


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Name the dialog of the search for those who hear the page, and make no header of a table's empty corner."""
    return output.replace(
        'data-md-component="search" role="dialog"', 'data-md-component="search" role="dialog" aria-label="Search"'
    ).replace("<th></th>", "<td></td>")
