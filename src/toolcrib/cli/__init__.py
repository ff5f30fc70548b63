"""The command line: list the tools of a target, show their schemas, call one, run a program with them.

Every call goes through the pipeline like a model's. Needs the extra `cli`: typer and rich are imported nowhere else.
"""

from __future__ import annotations

import sys
from importlib.metadata import version

from toolcrib.errors import MissingExtraError

try:
    from toolcrib.cli._app import app
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] not in ("typer", "rich"):
        raise
    app = None

__all__ = ["app", "main"]


def main() -> None:
    """Run the command that the arguments of the process name, and exit with its status."""
    if app is None:
        if sys.argv[1:] == ["--version"]:
            print(f"toolcrib {version('toolcrib')}")
            return
        print(MissingExtraError("the command line", "cli"), file=sys.stderr)
        sys.exit(2)
    app()
