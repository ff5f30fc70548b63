"""Parts of a document, of which any may be something else than it should be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast


def mapping_of(value: object) -> Mapping[str, Any]:
    """Return an object of JSON; an empty one for anything else."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def list_of(value: object) -> list[Any]:
    """Return a list of JSON; an empty one for anything else."""
    return cast("list[Any]", value) if isinstance(value, list) else []
