"""The command `schema`: the tools of a target, as a provider's API takes them."""

from __future__ import annotations

from typing import Annotated

import typer

from toolcrib.cli._find_toolset import TargetArgument, listed_tools
from toolcrib.cli._formatting import print_json
from toolcrib.cli._status import exit_on_error
from toolcrib.formats import FORMATS, FormatName, definition, definitions


def schema(
    target: TargetArgument,
    provider: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help=f"One of {', '.join(FORMATS)}.", show_default=True)
    ] = "raw",
) -> None:
    """Print the tools of TARGET as JSON, as a provider's API takes them."""
    with exit_on_error():
        format = _format(provider)
        toolset = listed_tools(target)
        if format != "raw":
            print_json(definitions(toolset, format, refused="raise"))
            return
        shown = [definition(e.name, e.description, e.parameters, "raw") | {"returns": e.return_schema} for e in toolset]
        print_json(shown)


def _format(name: str) -> FormatName:
    for format in FORMATS:
        if name == format:
            return format
    raise typer.BadParameter(f"{name!r} is not one of {', '.join(FORMATS)}", param_hint="--format")
