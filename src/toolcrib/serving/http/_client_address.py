"""Address of the client of a request, also behind proxies."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from starlette.datastructures import Headers
from starlette.types import Scope

from toolcrib.errors import explain_options
from toolcrib.serving.http._checks import host_of


@explain_options()
class TrustedProxies:
    """Proxies whose `X-Forwarded-For` tells where a request came from.

    A proxy appends the address of its own client to the header, so it is read from the right, and only as far as
    trusted proxies wrote it: what stands further left may be the client's own invention. Without trusted proxies the
    address is that of the connection, whatever the header says.

    Args:
        addresses: Addresses of proxies, or networks such as `10.0.0.0/8`.

    Raises:
        ValueError: An address is invalid.
    """

    def __init__(self, addresses: Sequence[str] = ()) -> None:
        if isinstance(addresses, str):
            raise ValueError("trusted proxies are a list of addresses, not one text")
        try:
            self._networks = [_network(address) for address in addresses]
        except ValueError as error:
            text = "invalid address of a trusted proxy: {}; write an IP address, or a network such as 10.0.0.0/8"
            raise ValueError(text.format(error)) from None

    def client_address(self, scope: Scope) -> str:
        """Return the address that a request came from; that of a proxy which does not tell its client's."""
        peer = scope.get("client")
        found = _address(str(peer[0])) if peer else None
        if found is None:
            return str(peer[0]) if peer else "an unknown address"
        entries = ",".join(Headers(scope=scope).getlist("x-forwarded-for")).split(",")
        while entries and self._trusts(found):
            before = _address(entries.pop().strip())
            if before is None:
                break
            found = before
        return str(found)

    def _trusts(self, address: IPv4Address | IPv6Address) -> bool:
        return any(address in network for network in self._networks)


def _network(text: str) -> IPv4Network | IPv6Network:
    """Return a network; one of IPv4 also where it is written as IPv6."""
    network = ip_network(text)
    mapped = network.network_address.ipv4_mapped if isinstance(network, IPv6Network) else None
    return network if mapped is None or network.prefixlen < 96 else ip_network((mapped, network.prefixlen - 96))


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """Return an address, with or without a port; an IPv4 address also where it is written as IPv6."""
    for candidate in (text, host_of(text)):
        try:
            address = ip_address(candidate)
        except ValueError:
            continue
        return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address
    return None
