"""Which addresses are public, on every Python: one list for what is fetched for OpenAPI and for credentials."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest

from toolcrib._networks import address_of, inner_address, is_about_machine, is_public
from toolcrib.credentials._guarded_http import _range_of
from toolcrib.openapi._servers import is_inside, is_private

NOT_PUBLIC = [
    *("0.0.0.0", "10.0.0.1", "100.64.0.1", "127.0.0.1", "169.254.169.254", "192.0.0.1", "192.0.0.8", "192.88.99.1"),
    *("198.18.0.1", "203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "::", "::1", "::10.0.0.1"),
    *("::ffff:10.0.0.1", "64:ff9b::a00:1", "64:ff9b:1::1", "100::1", "2001:0:a00:1::1", "2001:2::1", "2001:db8::1"),
    *("2002:a00:1::1", "3fff::1", "5f00::1", "fd00::1", "fe80::1", "fec0::1", "ff02::1", "::ffff:0:a00:1"),
]
SPECIAL = [  # IANA's special-purpose networks that machines on the internet are not in, and what it has given to nobody
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24"),
    *("192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
    *("224.0.0.0/4", "240.0.0.0/4", "::/128", "::1/128", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001::/32"),
    *("2001:2::/48", "2001:10::/28", "2001:db8::/32", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10"),
    *("ff00::/8", "200::/7", "400::/6", "800::/5", "1000::/4", "4000::/3", "6000::/3", "8000::/3", "a000::/3"),
    *("c000::/3", "e000::/4", "f000::/5", "f800::/6", "fe00::/9"),
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


@pytest.mark.parametrize("network", SPECIAL)
def test_no_address_of_a_special_network_is_public(network: str) -> None:
    found = ip_network(network)

    assert not any(map(is_public, (found[0], found[found.num_addresses // 2], found[-1])))


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "127.1", "127.0.0.0x1", "0x7f.1", "0177.0.0.1", "2130706433", "0x7f000001", "127.0.0.1."),
        *("[127.0.0.1]", "127\u30020\u30020\u30021", "\u2460\u2461\u2466.0.0.1", "::ffff:127.0.0.1"),
    ],
)
def test_an_address_is_read_in_any_form_that_a_resolver_reads(host: str) -> None:
    address = address_of(host)

    assert address is not None
    assert inner_address(address).is_loopback
    assert is_inside(host)


@pytest.mark.parametrize("host", ["localhost.", "LOCALHOST", "db.internal.", "a.localhost.", "printer", ""])
def test_a_name_inside_is_read_as_a_resolver_reads_it(host: str) -> None:
    assert is_inside(host)


@pytest.mark.parametrize(
    "host",
    [
        *("169.254.169.254", "2852039166", "0xa9.254.169.254", "169.254.169.0xfe", "::ffff:169.254.169.254", "fe80::1"),
        *("64:ff9b::a9fe:a9fe", "fe80::1%eth0", "fd00:ec2::254", "100.100.100.200", "168.63.129.16"),
    ],
)
def test_what_answers_a_machine_about_itself_is_known_in_each_form(host: str) -> None:
    address = address_of(host)

    assert address is not None
    assert is_about_machine(address)
    assert _range_of(str(address)) == "never"
