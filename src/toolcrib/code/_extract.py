"""Programs in a model's reply: the Python blocks of its Markdown."""

from __future__ import annotations

import asyncio
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

from toolcrib.errors import CodeError
from toolcrib.sandbox import parse_program

Extract: TypeAlias = Literal["first", "all"]
"""The Python blocks of a reply that are its program: the first one alone, or all of them, one after the other."""

_T = TypeVar("_T")
_MOST_CHARS = 1_000_000  # of a reply that are read
_MOST_PARSED = 200_000  # characters of an answer that may be a program without Markdown around it
_SHORT = 10_000  # characters that are read on the event loop
_STRINGS_TRIED = 20  # blocks of a reply whose strings are looked through to the end of the reply
_PYTHON = frozenset({"python", "py", "python3", "py3"})
_OPEN = re.compile(r"[ \t]*+(?P<fence>`{3,}+|~{3,}+)[ \t]*+(?P<label>[\w+#.-]*+)[^`]*+")
_QUOTE = re.compile(r"'''|\"\"\"|['\"#]|\\.")


@dataclass(frozen=True, slots=True)
class _Block:
    label: str
    code: str


def extract_code(text: str, extract: Extract = "all") -> str | None:
    """Return the Python of a reply in Markdown; None when the reply has no Python.

    A block without a language counts where no block is marked as Python. A block that was not closed, because the reply
    was cut, goes to the end. A fence inside a string of the program does not close its block. The work grows with the
    length of the reply alone, and nothing after its first million characters is read.

    Args:
        text: The reply.
        extract: `all` for all its Python blocks, one after the other; `first` for the first that is not empty.
    """
    require_extract(extract)
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
        raise TypeError(f"extract_code() takes the text of a reply, and this is {text!r:.80}")
    blocks = [block for block in _blocks(text) if block.code.strip()]
    marked = [block.code for block in blocks if block.label in _PYTHON]
    chosen = marked or [block.code for block in blocks if not block.label]
    return "\n\n".join(chosen[:1] if extract == "first" else chosen) or None


def require_extract(extract: str) -> None:
    """Check the choice of code blocks; raise ValueError for another one."""
    if extract not in ("first", "all"):
        raise ValueError(f'extract must be "first" or "all", and not {extract!r}')


def program_of(answer: str, extract: Extract = "all") -> str:
    """Return the program of an answer: itself, or the Python in its Markdown where the whole is not Python."""
    return answer if _is_python(answer) else extract_code(answer, extract) or answer


async def off_loop(work: Callable[[str], _T], text: str) -> _T:
    """Return `work(text)`; for a long text it is done in a thread, so that the event loop goes on."""
    return work(text) if len(text) <= _SHORT else await asyncio.to_thread(work, text)


def _blocks(text: str) -> Iterator[_Block]:
    lines = text[:_MOST_CHARS].splitlines()
    at, tries = 0, _STRINGS_TRIED
    while at < len(lines):
        opening = _OPEN.fullmatch(lines[at])
        at += 1
        if opening is None:
            continue
        label = opening["label"].lower()
        may_quote = tries > 0 and (label in _PYTHON or not label)
        end, is_sure = _end(lines, at, opening["fence"], may_quote)
        tries -= not is_sure
        if end < len(lines) or len(text) <= _MOST_CHARS:
            yield _Block(label, _code(lines[at:end]))
        at = end + 1


def _end(lines: list[str], start: int, fence: str, may_quote: bool) -> tuple[int, bool]:
    """Return the line at which a block ends, and whether that was found without looking further for it.

    That is the first fence outside of a string in triple quotes, or the first one where such a string has no end.
    """
    first: int | None = None
    quote = ""
    for at in range(start, len(lines)):
        stripped = lines[at].strip()
        if not (len(stripped) >= len(fence) and set(stripped) == {fence[0]}):
            quote = _quote_after(lines[at], quote) if may_quote else ""
        elif not quote:
            return at, True
        elif first is None:
            first = at
    return (len(lines), True) if first is None else (first, False)


def _quote_after(line: str, quote: str) -> str:
    """Return the triple quotes in which a string is open after a line of Python; empty when none is."""
    if not quote and "'''" not in line and '"""' not in line:
        return ""
    for found in _QUOTE.finditer(line):
        mark = found.group()
        if quote:
            quote = "" if mark == quote else quote
        elif mark == "#":
            break
        elif mark[0] != "\\":
            quote = mark
    return quote if len(quote) == 3 else ""


def _code(lines: list[str]) -> str:
    return textwrap.dedent("\n".join(lines)).strip("\n")


def _is_python(text: str) -> bool:
    try:
        parse_program(_code(text.splitlines()), _MOST_PARSED)
    except CodeError:
        return False
    return True
