"""Toolsets: declare, combine, select and describe tools.

A toolset finds tools and keeps the gates around them; it never runs one. Views are new toolsets that only add gates.
"""

from toolcrib.toolsets._declare import off, use
from toolcrib.toolsets._entry import Availability, PostStep, PreStep, ToolEntry, ToolRunner
from toolcrib.toolsets._gates import steps_of
from toolcrib.toolsets._live import LiveTools
from toolcrib.toolsets._members import EntryFilter, is_available
from toolcrib.toolsets._select import Definition, Group, Selectable, Selector, ToolAvailability, ToolRequirement
from toolcrib.toolsets._sources import ToolSource
from toolcrib.toolsets._toolset import Toolset, ToolsetLike, nested, sources_of
from toolcrib.toolsets._words import words_of

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
    "ToolRequirement",
    "ToolRunner",
    "ToolSource",
    "Toolset",
    "ToolsetLike",
    "is_available",
    "nested",
    "off",
    "sources_of",
    "steps_of",
    "use",
    "words_of",
]
