"""Which addresses are public, on every Python: one list for what is fetched for OpenAPI and for credentials."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from toolcrib._networks import inner_address, is_public
from toolcrib.credentials._guarded_http import _range_of
from toolcrib.openapi._servers import is_private

NOT_PUBLIC = [
    *("0.0.0.0", "10.0.0.1", "100.64.0.1", "127.0.0.1", "169.254.169.254", "192.0.0.1", "192.0.0.8", "192.88.99.1"),
    *("198.18.0.1", "203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "::", "::1", "::10.0.0.1"),
    *("::ffff:10.0.0.1", "64:ff9b::a00:1", "64:ff9b:1::1", "100::1", "2001:0:a00:1::1", "2001:2::1", "2001:db8::1"),
    *("2002:a00:1::1", "3fff::1", "5f00::1", "fd00::1", "fe80::1", "fec0::1", "ff02::1"),
]
PUBLIC = ["8.8.8.8", "192.175.48.1", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1", "2606:4700::1"]


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_a_network_for_a_purpose_of_its_own_is_not_public(address: str) -> None:
    assert not is_public(inner_address(ip_address(address)))
    assert is_private(address)
    assert _range_of(address) != "public"


@pytest.mark.parametrize("address", PUBLIC)
def test_a_machine_on_the_internet_is_public(address: str) -> None:
    assert is_public(inner_address(ip_address(address)))
    assert not is_private(address)
    assert _range_of(address) == "public"
