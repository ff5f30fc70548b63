"""Formats: definitions, replies, results and transcripts as each provider writes them, to and from values.

One module per provider and one table of them. Nothing here knows a tool, runs one or talks to a provider.
"""

from toolcrib.formats._arguments import without_filler
from toolcrib.formats._format import ProviderFormat, ToolFormat
from toolcrib.formats._table import FORMATS, PROVIDERS, FormatName, ProviderName, definition, definitions
from toolcrib.formats._wire import Choice, Item, Media, ProblemKind, TranscriptProblem, WireCall, WireReply, WireResult

__all__ = [
    "FORMATS",
    "PROVIDERS",
    "Choice",
    "FormatName",
    "Item",
    "Media",
    "ProblemKind",
    "ProviderFormat",
    "ProviderName",
    "ToolFormat",
    "TranscriptProblem",
    "WireCall",
    "WireReply",
    "WireResult",
    "definition",
    "definitions",
    "without_filler",
]
