"""Toolsets: declare, combine, select and describe tools.

A toolset finds tools and keeps the gates around them; it never runs one. Views are new toolsets that only add gates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib._lazy_names import lazy_names

if TYPE_CHECKING:
    from toolcrib.toolsets._declare import off, use
    from toolcrib.toolsets._entry import Availability, PostStep, PreStep, ToolEntry, ToolRunner
    from toolcrib.toolsets._gates import shortener_of, steps_of
    from toolcrib.toolsets._live import LiveTools
    from toolcrib.toolsets._members import EntryFilter, is_available
    from toolcrib.toolsets._names import ToolNames, check_names, log_names
    from toolcrib.toolsets._scopes import is_pattern
    from toolcrib.toolsets._select import Definition, Group, Selectable, Selector, ToolAvailability, ToolRequirement
    from toolcrib.toolsets._sources import ToolSource
    from toolcrib.toolsets._toolset import Toolset, ToolsetLike, faults_of, nested, sources_of
    from toolcrib.toolsets._words import words_of
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "._declare": "off use",
            "._entry": "Availability PostStep PreStep ToolEntry ToolRunner",
            "._gates": "shortener_of steps_of",
            "._live": "LiveTools",
            "._members": "EntryFilter is_available",
            "._names": "ToolNames check_names log_names",
            "._scopes": "is_pattern",
            "._select": "Definition Group Selectable Selector ToolAvailability ToolRequirement",
            "._sources": "ToolSource",
            "._toolset": "Toolset ToolsetLike faults_of nested sources_of",
            "._words": "words_of",
        },
    )

__all__ = [
    "Availability",
    "Definition",
    "EntryFilter",
    "Group",
    "LiveTools",
    "PostStep",
    "PreStep",
    "Selectable",
    "Selector",
    "ToolAvailability",
    "ToolEntry",
    "ToolNames",
    "ToolRequirement",
    "ToolRunner",
    "ToolSource",
    "Toolset",
    "ToolsetLike",
    "check_names",
    "faults_of",
    "is_available",
    "is_pattern",
    "log_names",
    "nested",
    "off",
    "shortener_of",
    "sources_of",
    "steps_of",
    "use",
    "words_of",
]
