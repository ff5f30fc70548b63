"""From a signature and a docstring to everything that a model or a caller needs to know about a tool.

ToolSpec and what parameters may be marked with. Nothing here runs a tool or knows a provider.
"""

from toolcrib.schema._context import RunContext
from toolcrib.schema._markers import REDACTED, Injectable, Injected, InjectedKind, InjectedParameter, Redacted
from toolcrib.schema._spec import ToolSpec

__all__ = [
    "REDACTED",
    "Injectable",
    "Injected",
    "InjectedKind",
    "InjectedParameter",
    "Redacted",
    "RunContext",
    "ToolSpec",
]
