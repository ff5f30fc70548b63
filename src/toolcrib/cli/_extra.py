"""Names of the command line that need the extra `cli`: without it, `app` is None."""

from __future__ import annotations

import sys
from typing import Any

from toolcrib.errors import MissingExtraError

try:
    from toolcrib.cli._app import app
    from toolcrib.cli._live_view import LiveView
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] not in ("typer", "rich"):
        raise
    app = None

__all__ = ["LiveView", "app", "run_command"]


def __getattr__(name: str) -> Any:
    """Say of a name which extra it needs, where that is not installed."""
    if name in __all__:
        raise MissingExtraError(f"`{name}`", "cli")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def run_command() -> None:
    """Run the command that the arguments of the process name, and exit with its status."""
    if app is None:
        print(MissingExtraError("the command line", "cli"), file=sys.stderr)
        sys.exit(2)
    app()
