"""The root of the tree, and the sentence that helps with a misspelt name."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import ClassVar

__all__ = ["ToolcribError", "closest"]


def closest(name: str, names: Iterable[str]) -> str:
    """Return a sentence that helps with a misspelt `name`: the nearest of `names`, or all of them when they are few.

    The nearest is one that `name` ends with, as `functions.get_weather` does.
    """
    known = sorted(names)
    ends = [own for own in known if own and name.endswith(own) and not name[: -len(own)][-1:].isalnum()]
    near = [max(ends, key=len)] if ends else get_close_matches(name, known, n=3, cutoff=0.6)
    if near:
        return "Did you mean " + " or ".join(f"`{n}`" for n in near) + "?"
    if not known:
        return "There are none."
    if len(known) <= 12:
        return "There are: " + ", ".join(f"`{n}`" for n in known) + "."
    return f"There are {len(known)}, among them " + ", ".join(f"`{n}`" for n in known[:6]) + "."


class ToolcribError(Exception):
    """Root of the tree. Subclasses pass every constructor argument on, so that they pickle."""

    code: ClassVar[str] = "toolcrib_error"
