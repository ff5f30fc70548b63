"""Network addresses: how a host may be written, which of them are public, and what one of the newer kind leads to."""

from __future__ import annotations

import socket
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final
from unicodedata import normalize

_NAT64: Final = (ip_network("64:ff9b::/96"), ip_network("::/96"), ip_network("::ffff:0:0:0/96"))
"""Networks whose addresses end in one of the older kind: of translators, and as once written (RFC 6052, 4291, 2765)."""

_GLOBAL: Final = ip_network("2000::/3")
"""The one network of the newer kind that machines on the internet have addresses of (RFC 4291)."""

_SPECIAL: Final = tuple(map(ip_network, ("192.0.0.0/24", "192.88.99.0/24", "3fff::/20")))
"""Networks for a purpose of their own, which some versions of Python take for global."""

_ABOUT_MACHINE: Final = frozenset(
    map(ip_address, ("100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254"))
)
"""Addresses outside of link-local networks at which clouds tell a machine its secrets."""


def plain_host(host: str) -> str:
    """Return a host as a resolver reads it: the digits, letters and dots of other scripts are plain ones."""
    return normalize("NFKC", host).replace("\u3002", ".").lower().rstrip(".")


def address_of(host: str) -> IPv4Address | IPv6Address | None:
    """Return the address that a host is, in any form that a resolver reads (`127.1`, `0x7f.0.0.1`); None for a name."""
    text = plain_host(host).strip("[]").partition("%")[0]
    with suppress(ValueError):
        return ip_address(text)
    with suppress(OSError, UnicodeError):
        return IPv4Address(socket.inet_aton(text))
    return None


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
    if not address.is_global or address.is_multicast or any(address in network for network in _SPECIAL):
        return False
    return isinstance(address, IPv4Address) or address in _GLOBAL


def is_about_machine(address: IPv4Address | IPv6Address) -> bool:
    """Return whether an address answers a machine about itself: a link-local one, or one of a cloud's metadata."""
    inner = inner_address(address)
    return inner.is_link_local or inner in _ABOUT_MACHINE
