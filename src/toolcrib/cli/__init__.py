"""The command line: list the tools of a target, show their schemas, call one, run a program with them.

`LiveView` is what its `watch` shows, for the agents and sessions of your own program. Every call goes through the
pipeline like a model's. Needs the extra `cli`: typer and rich are imported nowhere else.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Any

from toolcrib.errors import MissingExtraError

try:
    from toolcrib.cli._app import app
    from toolcrib.cli._live_view import LiveView
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] not in ("typer", "rich"):
        raise
    app = None

__all__ = ["LiveView", "app", "main"]


def __getattr__(name: str) -> Any:
    """Say of a name which extra it needs, where that is not installed."""
    if name in __all__:
        raise MissingExtraError(f"`{name}`", "cli")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def main() -> None:
    """Run the command that the arguments of the process name, and exit with its status."""
    if app is None:
        if sys.argv[1:] == ["--version"]:
            print(f"toolcrib {version('toolcrib')}")
            return
        print(MissingExtraError("the command line", "cli"), file=sys.stderr)
        sys.exit(2)
    app()
