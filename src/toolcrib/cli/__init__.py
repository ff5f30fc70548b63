"""The command line: list the tools of a target, show their schemas, call one, run a program with them.

`LiveView` is what its `watch` shows, for the agents and sessions of your own program. Every call goes through the
pipeline like a model's. Needs the extra `cli`: typer and rich are imported nowhere else.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING

from toolcrib._lazy_names import lazy_names

if TYPE_CHECKING:
    from toolcrib.cli._app import app
    from toolcrib.cli._live_view import LiveView
else:
    __getattr__, __dir__ = lazy_names(__name__, {"._extra": "LiveView app"})

__all__ = ["LiveView", "app", "main"]


def main() -> None:
    """Run the command that the arguments of the process name, and exit with its status."""
    if sys.argv[1:] == ["--version"]:
        print(f"toolcrib {version('toolcrib')}")
        return
    try:
        import_module("toolcrib.cli._extra").run_command()
    except KeyboardInterrupt:  # while it is imported: a command that runs ends by itself
        sys.exit(130)
