"""All kinds of attacks."""

from __future__ import annotations

from typing import Final

from benchmarks.dojo.adaptive import _links, _numbers, _private, _reading, _values

__all__ = ["KINDS"]

KINDS: Final = (*_values.KINDS, *_numbers.KINDS, *_links.KINDS, *_private.KINDS, *_reading.KINDS)
"""All kinds, in the order of the table."""
