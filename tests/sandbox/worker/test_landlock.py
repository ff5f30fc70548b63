"""What is asked of Landlock, by version of the kernel's interface."""

from __future__ import annotations

import struct

import pytest

from toolcrib.sandbox._worker._landlock import attributes

# version: size in bytes, the highest right on files
VERSIONS = {1: (8, 12), 2: (8, 13), 3: (8, 14), 4: (16, 14), 5: (16, 15), 6: (24, 15), 7: (24, 15), 12: (24, 15)}


@pytest.mark.parametrize("version", VERSIONS)
def test_as_long_as_the_version_expects(version: int) -> None:
    size, _ = VERSIONS[version]

    assert len(attributes(version)) == size


@pytest.mark.parametrize("version", VERSIONS)
def test_every_right_on_files_is_taken(version: int) -> None:
    _, highest = VERSIONS[version]

    (files,) = struct.unpack_from("=Q", attributes(version))

    assert files == 2 ** (highest + 1) - 1


@pytest.mark.parametrize("version", [each for each in VERSIONS if each >= 4])
def test_ports_are_taken_where_they_can_be(version: int) -> None:
    (ports,) = struct.unpack_from("=Q", attributes(version), 8)

    assert ports == 0b11


@pytest.mark.parametrize("version", [each for each in VERSIONS if each >= 6])
def test_signals_and_abstract_sockets_are_taken_where_they_can_be(version: int) -> None:
    (scopes,) = struct.unpack_from("=Q", attributes(version), 16)

    assert scopes == 0b11
