"""What a program calls the tools: a Python name for each, that hides nothing of Python's own."""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Iterable

from toolcrib.errors import DuplicateNameError

__all__ = ["program_names"]

_RESERVED = frozenset(dir(builtins)) | frozenset(keyword.kwlist) | {"asyncio"}


def program_names(tools: Iterable[str]) -> dict[str, str]:
    """Return the tools' names by the names that programs use.

    What cannot stand in a Python name becomes an underscore, and a name that Python has taken gets one at its end:
    `get-weather` is called as `get_weather`, `open` as `open_`.

    Raises:
        DuplicateNameError: Two tools would have one name.
    """
    names: dict[str, str] = {}
    for tool in tools:
        name = "".join(letter if f"_{letter}".isidentifier() else "_" for letter in tool)
        if not name.isidentifier():  # it begins with a digit, or is empty
            name = f"_{name}"
        if name in _RESERVED:
            name += "_"
        taken = names.setdefault(name, tool)
        if taken != tool:
            mend = f"In a program both would be `{name}`: rename one."
            raise DuplicateNameError(name, f"`{taken}`", f"`{tool}`", mend)
    return names
