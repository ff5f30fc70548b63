"""The short form of `make soak-gateway`."""

from __future__ import annotations

import logging

import pytest

from tests.gateway.soak import soaked


@pytest.mark.timeout(1500)
def test_a_gateway_whose_servers_are_disturbed_loses_nothing_and_holds_on_to_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.CRITICAL, "mcp"):  # the clients leave in the middle of a reply
        wrong = soaked(360, 27, phases=3, seed=7)
    assert not wrong, "\n".join(wrong[:50])
