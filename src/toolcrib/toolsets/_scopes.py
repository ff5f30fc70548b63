"""Scopes that the tools of a toolset need, by their names or by patterns of names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from toolcrib.toolsets._entry import ToolEntry

_SCOPE = r"[\x21\x23-\x5b\x5d-\x7e]+"  # RFC 6749, section 3.3


def read_scopes(scopes: Mapping[str, str | Sequence[str]]) -> dict[str, frozenset[str]]:
    """Return the scopes by name or pattern; raises ValueError for one that OAuth does not allow."""
    if not isinstance(scopes, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
        mend = "give scopes by the name of a tool, as in {'pay': 'payments:write'}"
        raise TypeError(f"with_scopes: scopes is {scopes!r:.80}; {mend}")
    read: dict[str, frozenset[str]] = {}
    for name, words in scopes.items():
        if not isinstance(words, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
            raise TypeError(f"with_scopes: the scopes of `{name}` are {words!r:.80}; give a scope, or a list of them")
        several = (words,) if isinstance(words, str) else tuple(words)
        wrong = next((scope for scope in several if not re.fullmatch(_SCOPE, scope)), None)
        if wrong is not None or not several:
            fault = "no scope is given" if wrong is None else f"{wrong!r} is not a scope"
            raise ValueError(f"the scopes of `{name}` are words without spaces and quotes, and {fault}")
        read[name] = frozenset(several)
    return read


def is_pattern(name: str) -> bool:
    """Return whether a name stands for several: `files_*`."""
    return any(mark in name for mark in "*?[")


def fits(name: str, pattern: str) -> bool:
    """Return whether a pattern of names, or a name, stands for a tool."""
    return fnmatchcase(name, pattern)


def scoped(entry: ToolEntry, needed: Mapping[str, frozenset[str]]) -> ToolEntry:
    """Return the entry with the scopes of its name and of all patterns that fit it."""
    more = [scopes for pattern, scopes in needed.items() if fits(entry.name, pattern)]
    return replace(entry, scopes=entry.scopes.union(*more)) if more else entry
