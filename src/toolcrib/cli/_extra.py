"""Names of the command line that need the extra `cli`."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from toolcrib.errors import MissingExtraError

_PLACES = {"app": "_app", "LiveView": "_live_view"}


def __getattr__(name: str) -> Any:
    """Load a name, or say which extra it needs, where that is not installed."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        for needed in ("typer", "rich"):
            import_module(needed)
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"`{name}`", "cli") from error
    return getattr(import_module(f"toolcrib.cli.{_PLACES[name]}"), name)


def run_command() -> None:
    """Run the command that the arguments of the process name, and exit with its status."""
    try:
        app = import_module(__name__).app
    except MissingExtraError:
        print(MissingExtraError("the command line", "cli"), file=sys.stderr)
        sys.exit(2)
    app()
