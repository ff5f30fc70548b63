"""Network addresses: which of them are public, and what one of the newer kind leads to."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_network
from typing import Final

__all__ = ["inner_address", "is_public"]

_NAT64: Final = (ip_network("64:ff9b::/96"), ip_network("::/96"))
"""Networks whose addresses end in one of the older kind: of translators, and as once written (RFC 6052, 4291)."""

_SPECIAL: Final = tuple(
    map(ip_network, ("192.0.0.0/24", "192.88.99.0/24", "64:ff9b:1::/48", "fec0::/10", "3fff::/20", "5f00::/16"))
)
"""Networks for a purpose of their own, or inside a site, which some versions of Python take for global."""


def inner_address(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Return the address of the older kind that one of the newer kind leads to, and else the address itself."""
    if isinstance(address, IPv4Address):
        return address
    inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
    if any(address in network for network in _NAT64) and int(address) > 1:  # neither `::` nor `::1`
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return inner or address


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Return whether an address can be that of any machine on the internet; of what leads to another, see above."""
    return address.is_global and not address.is_multicast and not any(address in network for network in _SPECIAL)
