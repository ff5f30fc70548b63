"""Toolsets: declare, combine, select and describe tools.

A toolset finds tools and keeps the gates around them; it never runs one. Views are new toolsets that only add gates.
"""

from toolcrib.toolsets._entry import Availability, PostStep, PreStep, ToolEntry, ToolRunner
from toolcrib.toolsets._toolset import Toolset, ToolsetLike

__all__ = ["Availability", "PostStep", "PreStep", "ToolEntry", "ToolRunner", "Toolset", "ToolsetLike"]
