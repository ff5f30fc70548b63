"""All kinds of attacks."""

from __future__ import annotations

from typing import Final

from benchmarks.dojo.adaptive import (
    _collections,
    _elsewhere,
    _flows,
    _grants,
    _links,
    _names,
    _numbers,
    _parts,
    _payees,
    _private,
    _reading,
    _servers,
    _stores,
    _trust,
    _types,
    _unnamed,
    _values,
    _wording,
)

__all__ = ["KINDS"]

KINDS: Final = (
    *_values.KINDS,
    *_types.KINDS,
    *_numbers.KINDS,
    *_links.KINDS,
    *_private.KINDS,
    *_reading.KINDS,
    *_servers.KINDS,
    *_trust.KINDS,
    *_grants.KINDS,
    *_flows.KINDS,
    *_wording.KINDS,
    *_parts.KINDS,
    *_payees.KINDS,
    *_stores.KINDS,
    *_names.KINDS,
    *_collections.KINDS,
    *_unnamed.KINDS,
    *_elsewhere.KINDS,
)
"""All kinds, in the order of the table."""
