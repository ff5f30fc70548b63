"""Source of a program: its text and its syntax tree, with spans counted in bytes."""

from __future__ import annotations

import ast
import io
import re
import sys
import threading
import tokenize
import warnings
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from functools import cached_property
from itertools import accumulate

from toolcrib.errors import CodeError

_MOST_BRACES = 5_000  # in f-strings: before Python 3.12 each takes the parser 0.1 ms, and more the more there are
_F_STRING = re.compile(r"""(?i)\b(?:f|fr|rf)["']""")
_filters = threading.Lock()  # of warnings: a thread that restores them late would leave them off for good

SourceEdit = tuple[int, int, str]
"""A span of bytes, and the text to put in its place."""


class Source:
    """The text of a program with its syntax tree.

    Attributes:
        text: The code, with every line ended by a line feed.
        tree: Its syntax tree.
    """

    def __init__(self, text: str, tree: ast.Module) -> None:
        self.text, self.tree = text, tree

    @cached_property
    def encoded(self) -> bytes:
        """The text in UTF-8, in whose bytes spans are counted."""
        return self.text.encode()

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *accumulate(len(line) + 1 for line in self.encoded.split(b"\n"))]

    def compile(self) -> None:
        """Compile the tree, and keep nothing of it; raises SyntaxError for a program that parses and cannot run."""
        with _without_warnings():
            compile(self.tree, "program.py", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)

    def span(self, node: ast.expr | ast.stmt | ast.keyword) -> tuple[int, int]:
        """Return where a node begins and ends, in bytes."""
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
        return self._starts[node.lineno - 1] + node.col_offset, self._starts[end_line - 1] + end_column

    def edited(self, edits: Iterable[SourceEdit]) -> Source:
        """Return the source with spans replaced; none of them may overlap another."""
        parts: list[bytes] = []
        at = 0
        for start, end, text in sorted(edits):
            parts += [self.encoded[at:start], text.encode()]
            at = end
        text = b"".join([*parts, self.encoded[at:]]).decode()
        return Source(text, ast.parse(text))


def normalized(code: str, most: int) -> str:
    """Return a program's text with every line ended by a line feed.

    Raises:
        CodeError: It is longer than `most` characters, or has a character that UTF-8 has not.
    """
    if len(code) > most:
        raise CodeError(f"the program is {len(code)} characters long, and may have {most}. Pass data through tools.")
    try:
        code.encode()
    except UnicodeEncodeError:
        raise CodeError("the program has a lone surrogate, which no text may have") from None
    return code.replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff")


def parse_program(code: str, most: int) -> Source:
    """Return a program's source.

    Raises:
        CodeError: It is not Python, or longer than `most` characters.
    """
    text = normalized(code, most)
    if sys.version_info < (3, 12) and _braces(text) > _MOST_BRACES:
        raise CodeError(f"its f-strings have more than {_MOST_BRACES} parts; build the text in a loop")
    try:
        return Source(text, _tree(text))
    except SyntaxError as error:
        raise CodeError(_with_caret(error), error.lineno or 0, type(error).__name__) from None
    except (ValueError, RecursionError, MemoryError) as error:  # null bytes; or nested deeper than the parser goes
        problem = str(error) if isinstance(error, ValueError) else "it is nested too deep; use variables and loops"
        raise CodeError(problem) from None


def _braces(text: str) -> int:
    """Return how many braces open in the f-strings of a text; 0 where too few open in all of it."""
    found = 0
    if text.count("{") > _MOST_BRACES and _F_STRING.search(text):
        with suppress(tokenize.TokenError, SyntaxError):  # the parser reports it, too
            for token in tokenize.generate_tokens(io.StringIO(text).readline):
                if token.type == tokenize.STRING and _F_STRING.match(token.string):
                    found += token.string.count("{")
    return found


def _tree(text: str) -> ast.Module:
    if "\\" not in text:
        return ast.parse(text)
    with _without_warnings():  # of a stray backslash in a string
        return ast.parse(text)


@contextmanager
def _without_warnings() -> Generator[None]:
    """Warn of nothing: what is odd in a program does not concern the host."""
    with _filters, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _with_caret(error: SyntaxError) -> str:
    """Return the message with the line and a caret below it."""
    lines = [error.msg]
    if error.text is not None:
        line = error.text.rstrip("\n")
        indent = len(line) - len(line.lstrip())
        column = max((error.offset or 1) - 1 - indent, 0)
        lines += [f"    {line.strip():.200}"] + ([f"    {' ' * column}^"] if column < 200 else [])
    if error.msg.startswith("f-string") and sys.version_info < (3, 12):
        lines.append("Inside the braces of an f-string, use other quotes than around it.")
    return "\n".join(lines)
