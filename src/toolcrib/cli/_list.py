"""The command `list`: the tools of a target."""

from __future__ import annotations

from toolcrib.cli._find_toolset import TargetArgument, listed_tools
from toolcrib.cli._formatting import JsonOption, console, print_json, tools_json, tools_table
from toolcrib.cli._status import exit_on_error


def list_tools(target: TargetArgument, as_json: JsonOption = False) -> None:
    """List the tools of TARGET, with their marks."""
    with exit_on_error():
        toolset = listed_tools(target)
        if as_json:
            print_json(tools_json(toolset))
        else:
            console().print(tools_table(toolset))
