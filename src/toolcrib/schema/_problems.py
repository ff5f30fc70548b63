"""From pydantic's validation errors to problems in plain words, each with its mend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from toolcrib.errors import FieldProblem

__all__ = ["problems_of"]


def path_of(parts: Sequence[int | str]) -> str:
    """Return `("stops", 0, "city")` as `stops[0].city`."""
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def problems_of(error: ValidationError) -> tuple[FieldProblem, ...]:
    """Return one problem for each field that did not fit."""
    details: list[Any] = error.errors(include_url=False, include_context=False)
    return tuple(FieldProblem(path_of(d["loc"]), d["msg"]) for d in details)
