"""Processes that are forked off one that has loaded the frameworks: to load one takes seconds."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
from collections.abc import Callable
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any

__all__ = ["output_of"]

_HERE = Path(__file__).parent

_server = multiprocessing.get_context("forkserver")
_server.set_forkserver_preload(
    [
        "__main__",
        *(
            f"tests.frameworks.{folder}.{file.stem}"
            for folder in ("crash", "killed", "resumed")
            for file in sorted((_HERE / folder).glob("*.py"))
        ),
    ]
)


def output_of(main: Callable[..., Any], *arguments: Any, folder: Path, ended: int = 0) -> str:
    """Return what a function of a module prints in a process of its own.

    Args:
        main: The function, sync or async.
        arguments: Its arguments.
        folder: Where its output is kept, in `printed` and `errors`.
        ended: The exit status that the process must have; less than 0 for the signal that killed it.
    """
    process = _server.Process(target=_run, args=(main, arguments, folder))
    process.start()
    process.join()
    assert process.exitcode == ended, (folder / "errors").read_text()
    return (folder / "printed").read_text()


def _run(main: Callable[..., Any], arguments: tuple[Any, ...], folder: Path) -> None:
    for descriptor, name in ((1, "printed"), (2, "errors")):
        os.dup2(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
    if iscoroutinefunction(main):
        asyncio.run(main(*arguments))
    else:
        main(*arguments)
