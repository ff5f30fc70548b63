"""Read a docstring: its first paragraph, and what it says about each parameter."""

from __future__ import annotations

import inspect
import re

__all__ = ["first_paragraph"]

_SECTION = re.compile(r"^(:\w+.*:|[A-Z][A-Za-z ]*:\s*$)")
_UNDERLINE = re.compile(r"^-{3,}\s*$")


def first_paragraph(doc: str) -> str:
    """Return the first paragraph on one line; empty when the docstring begins with a section."""
    lines = inspect.cleandoc(doc).splitlines()
    paragraph: list[str] = []
    for index, line in enumerate(lines):
        underlined = index + 1 < len(lines) and _UNDERLINE.match(lines[index + 1])
        if not line.strip() or underlined or _SECTION.match(line):
            break
        paragraph.append(line.strip())
    return " ".join(paragraph)
