"""Formats: a tool's definition as each provider's JSON, and the provider's JSON back.

One module per provider and one table of them. Nothing here knows a tool, runs one or talks to a provider.
"""

from toolcrib.formats._format import ProviderFormat
from toolcrib.formats._table import FORMATS, FormatName, definition, definitions

__all__ = ["FORMATS", "FormatName", "ProviderFormat", "definition", "definitions"]
