"""OpenAPI document as the target of a command."""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from toolcrib.errors import TargetError
from toolcrib.toolsets import Toolset

_PREFIX = "openapi:"
_YAML = (".yaml", ".yml")
_CREDENTIALS, _SERVER = "TOOLCRIB_API_CREDENTIALS", "TOOLCRIB_API_SERVER"


def is_api(target: str) -> bool:
    """Return whether a target is an OpenAPI document: by its prefix, its ending, or what is in the file."""
    if target.startswith(_PREFIX):
        return True
    if target.startswith(("http://", "https://")):
        return urlsplit(target).path.endswith((*_YAML, ".json"))
    if target.endswith(_YAML):
        return True
    return target.endswith(".json") and _says_so(Path(target))


def _says_so(file: Path) -> bool:
    try:
        found = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    document: dict[str, Any] = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    return "swagger" in document or isinstance(document.get("openapi"), str)  # in a file of servers it is a section


def api_place(target: str) -> str:
    """Return the path or the address of the document that a target is."""
    return target.removeprefix(_PREFIX)


def toolset_of_api(target: str) -> Toolset:
    """Return the operations of a document as tools; all that do not only read need approval.

    Raises:
        DocumentError: It cannot be read or used.
        TargetError: The environment has credentials that cannot be read.
    """
    openapi: Any = importlib.import_module("toolcrib.openapi")  # of an extra, which its error names
    server = os.environ.get(_SERVER) or None
    return openapi.toolset(api_place(target), approval="writes", server=server, credentials=_credentials(target))


def _credentials(target: str) -> dict[str, str] | None:
    """Return the credentials in the environment by security scheme: `NAME=SECRET`, several parted by spaces."""
    words = os.environ.get(_CREDENTIALS, "").split()
    pairs = [word.partition("=") for word in words]
    if not all(name and secret for name, _, secret in pairs):
        raise TargetError(target, f"{_CREDENTIALS} is NAME=SECRET, with the name of a security scheme of the document")
    return {name: secret for name, _, secret in pairs} or None
