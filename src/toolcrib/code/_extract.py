"""Programs in a model's reply: the Python blocks of its Markdown."""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

__all__ = ["extract_code", "program_of"]

_FENCES_TRIED = 20  # at which a block may end: further ones stand in no string of its program
_PYTHON = frozenset({"python", "py", "python3", "py3"})
_OPEN = re.compile(r"(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})[ \t]*(?P<label>[\w+#.-]*)[^`]*")


@dataclass(frozen=True, slots=True)
class _Block:
    label: str
    code: str


def extract_code(text: str) -> str | None:
    """Return the Python of a reply in Markdown: all its Python blocks, one after the other; None when there is none.

    A block without a language counts where no block is marked as Python. A block that was not closed, because the reply
    was cut, goes to the end. A fence inside a string of the program does not close its block.
    """
    blocks = list(_blocks(text.splitlines()))
    marked = [block.code for block in blocks if block.label in _PYTHON]
    chosen = marked or [block.code for block in blocks if not block.label]
    code = "\n\n".join(part for part in chosen if part.strip())
    return code or None


def program_of(answer: str) -> str:
    """Return the program of an answer: itself, unless it is no Python and has some in Markdown."""
    if _is_python(answer.splitlines()):
        return answer
    return extract_code(answer) or answer


def _blocks(lines: list[str]) -> Iterator[_Block]:
    at = 0
    while at < len(lines):
        opening = _OPEN.fullmatch(lines[at])
        at += 1
        if opening is None:
            continue
        label = opening["label"].lower()
        closing = (i for i in range(at, len(lines)) if _closes(lines[i], opening["fence"]))
        ends = list(islice(closing, _FENCES_TRIED)) or [len(lines)]
        end = ends[0]
        if label in _PYTHON or not label:
            end = next((i for i in ends if _is_python(lines[at:i])), end)
        yield _Block(label, _code(lines[at:end]))
        at = end + 1


def _closes(line: str, fence: str) -> bool:
    stripped = line.strip()
    return len(stripped) >= len(fence) and set(stripped) == {fence[0]}


def _code(lines: list[str]) -> str:
    return textwrap.dedent("\n".join(lines)).strip("\n")


def _is_python(lines: list[str]) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(_code(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
