"""The command `new`: a small project with tools, a test and a policy."""

from __future__ import annotations

import shlex
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from toolcrib.cli._formatting import write
from toolcrib.cli._status import exit_on_error

_SUFFIX = ".template"


def new(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Where to write it; it is made.", show_default=False)
    ],
) -> None:
    """Write a small project: tools, a session that runs at once, a test and a policy."""
    # nothing of the user's is written over
    if folder.is_dir():
        there = next(folder.iterdir(), None)
        if there is not None:
            raise _refused(folder, f"has files already (`{there.name}`): name a folder that is new or empty")
    elif folder.exists():
        raise _refused(folder, "is a file: name a folder")
    with exit_on_error():
        folder.mkdir(parents=True, exist_ok=True)
        written: list[str] = []
        for template in sorted(files("toolcrib.cli").joinpath("new_project").iterdir(), key=lambda file: file.name):
            if not template.name.endswith(_SUFFIX):
                continue
            name = template.name.removesuffix(_SUFFIX)
            text = template.read_text("utf-8")
            (folder / name).write_text(text.replace("{name}", folder.resolve().name, 1), "utf-8")
            written.append(name)
    write(f"{folder}: {', '.join(written)}\n")
    write(f"Run it: cd {shlex.quote(str(folder))} && python main.py\n")


def _refused(folder: Path, problem: str) -> typer.BadParameter:
    return typer.BadParameter(f"{folder} {problem}", param_hint="FOLDER")
