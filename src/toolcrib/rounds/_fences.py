"""JSON between the fences that models like to put around it."""

from __future__ import annotations

import re

__all__ = ["unfenced"]

_FENCED = re.compile(r"\s*```\w*\s*\n(?P<inner>.*?)\n?\s*```\s*", re.DOTALL)


def unfenced(text: str) -> str:
    """Return what is between the fences of a text that is one block of code; any other text as it is."""
    found = _FENCED.fullmatch(text)
    return text if found is None else found["inner"]
