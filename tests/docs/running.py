"""Runs a page of documentation as a reader would: its blocks in order, in one namespace."""

from __future__ import annotations

import ast
import asyncio
import io
import os
import re
import subprocess
import sys
import traceback
from collections.abc import Generator, Iterator
from contextlib import chdir, contextmanager, redirect_stdout
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

from tests.docs.pages import ROOT, Block, Page
from toolcrib.registry import registry_scope

# What each language may say after its name. Any other option fails the page: a misspelt one would hide a block.
OPTIONS = {"python": {"file", "fixture"}, "console": {"exit", "tmp"}, "output": set[str]()}
MISSPELT = {"py": "python", "python3": "python", "pycon": "python", "shell-session": "console"}
COMMAND_SECONDS = 240  # ends a command that hangs; a busy machine is slow, and hangs nothing


class PageError(Exception):
    """An example does not do what the page says; the message begins with the file and the line."""


def run_page(page: Page, folder: Path) -> None:
    """Run every block of `page`, with `folder` as the working directory of its Python and the place of its files.

    Raises:
        PageError: A block fails, or shows something else than the page says.
    """
    shown: str | None = None
    environment = patch.dict(os.environ)  # what a page sets is its own, and is gone after it
    with registry_scope(), environment, chdir(folder), _namespace() as names, asyncio.Runner() as runner:
        for block in page.blocks:
            _check_info(page, block)
            if "file" in block.options:
                Path(block.options["file"]).write_text(block.text, encoding="utf-8")
            if block.language == "output":
                _compare(page, block.line, block.text, shown)
            shown = _run_python(page, block, names, runner) if block.language == "python" else None
            if block.language == "console":
                _run_console(page, block, folder)


@contextmanager
def _namespace() -> Generator[ModuleType]:
    """Give the body a module that is found in `sys.modules`, as type hints and pickle expect of a definition."""
    module = ModuleType("toolcrib_docs_page")
    sys.modules[module.__name__] = module
    try:
        yield module
    finally:
        del sys.modules[module.__name__]


def _check_info(page: Page, block: Block) -> None:
    if block.language in MISSPELT:
        raise PageError(f"{_at(page, block.line - 1)}: write `{MISSPELT[block.language]}` for `{block.language}`")
    allowed = OPTIONS.get(block.language, {"file"})
    if unknown := [option for option in block.options if option not in allowed]:
        known = ", ".join(sorted(allowed)) or "none"
        raise PageError(f"{_at(page, block.line - 1)}: unknown option `{unknown[0]}`; `{block.language}` has: {known}")


def _run_python(page: Page, block: Block, names: ModuleType, runner: asyncio.Runner) -> str | None:
    """Return what the block prints; a block that awaits runs on the page's event loop, another on none."""
    padded = "\n" * (block.line - 1) + block.text  # so that tracebacks count the lines of the page
    printed = io.StringIO()
    try:
        code = compile(padded, str(page.path), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        if "fixture" in block.options:
            return None
        with redirect_stdout(printed):
            awaited = eval(code, vars(names))
            if awaited is not None:
                runner.run(awaited)
    except (Exception, SystemExit) as error:  # the page's own code
        line = _failing_line(page, error) or block.line
        raise PageError(f"{_at(page, line)}: {type(error).__name__}: {error}") from error
    return printed.getvalue()


def _failing_line(page: Page, error: BaseException) -> int | None:
    if isinstance(error, SyntaxError) and error.filename == str(page.path):
        return error.lineno
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno for frame in reversed(frames) if frame.filename == str(page.path)), None)


def _run_console(page: Page, block: Block, folder: Path) -> None:
    """Run the block's `$ ...toolcrib ...` commands; the exit status is for the last one, the others must succeed."""
    commands = list(_commands(block))
    for number, (line, command, expected) in enumerate(commands, 1):
        if not re.search(r"(^|\|\s*)(toolcrib|python)\b", command):
            continue
        done = subprocess.run(
            command,
            shell=True,
            cwd=folder if "tmp" in block.options else ROOT,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=COMMAND_SECONDS,
        )
        status = int(block.options.get("exit", "0")) if number == len(commands) else 0
        if done.returncode != status:
            ended = f"`{command}` exits with {done.returncode}, not {status}"
            raise PageError(f"{_at(page, line)}: {ended}:\n{done.stdout}")
        if expected.strip():
            _compare(page, line, expected, done.stdout)


def _commands(block: Block) -> Iterator[tuple[int, str, str]]:
    """Yield each command of a console block with its line and the output that the page shows below it."""
    found: list[tuple[int, str, list[str]]] = []
    for number, line in enumerate(block.text.splitlines(), block.line):
        if line.startswith("$ "):
            found.append((number, line[2:], []))
        elif found and found[-1][1].endswith("\\") and not found[-1][2]:
            found[-1] = (found[-1][0], f"{found[-1][1]}\n{line}", [])
        elif found:
            found[-1][2].append(f"{line}\n")
    for number, command, shown in found:
        yield number, command, "".join(shown)


def _environment() -> dict[str, str]:
    plain = {"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "100", "PYTHONIOENCODING": "utf-8"}
    plain["PYTEST_ADDOPTS"] = (
        "-p toolcrib_pytest -p no:asyncio -p no:cacheprovider"  # as installed, without our own plugins
    )
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return {**os.environ, **plain, "PATH": path}


def _compare(page: Page, line: int, expected: str, shown: str | None) -> None:
    if shown is None:
        raise PageError(f"{_at(page, line)}: this output does not follow a block that was run")
    if not _pattern(expected).fullmatch(_tidy(shown)):
        raise PageError(f"{_at(page, line)}: the page says\n{_tidy(expected)}\nand this is shown\n{_tidy(shown)}")


def _pattern(expected: str) -> re.Pattern[str]:
    """Return what matches the expected text: `...` is any text in its line, and alone on a line any lines."""
    parts: list[str] = []
    for line in _tidy(expected).splitlines():
        if line.strip() == "...":
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(re.escape(line).replace(r"\.\.\.", ".*") + r"\n")
    return re.compile("".join(parts))


def _tidy(text: str) -> str:
    lines = [line.rstrip() for line in text.strip("\n").splitlines()]
    return "".join(f"{line}\n" for line in lines)


def _at(page: Page, line: int) -> str:
    name = page.path.relative_to(ROOT) if page.path.is_relative_to(ROOT) else page.path
    return f"{name}:{line}"
