"""The shop's tools as a durable agent: a large refund waits for a person, and is paid once."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.dbos.durable import engine_of
from toolcrib.calls import Completed, Suspended
from toolcrib.turns import Turn

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module, with a shop of the test's own."""
    monkeypatch.setenv("SHOP_DB", str(tmp_path / "shop.db"))
    monkeypatch.setattr(sys, "path", [str(EXAMPLES / "durable_refund"), *sys.path])
    before = set(sys.modules)
    yield importlib.import_module("refund")
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(EXAMPLES)):
            del sys.modules[name]


async def test_a_large_refund_waits_for_a_person_and_is_paid_once(shop: Any, tmp_path: Path) -> None:
    refund = next(tool for tool in shop.agent.agent.tools if tool.name == "refund")
    arguments = {"order_id": 1002, "amount": 96.5, "reason": "it came late"}

    async with engine_of(str(tmp_path / "crib.db"), shop.agent):
        handle = await shop.agent.put(Turn(refund, kwargs=arguments))
        asked = await handle.outcome()
        assert isinstance(asked, Suspended)
        await shop.agent.approve(asked.request, "ann")
        paid = await handle.outcome(through=True)

    assert asked.request.reason == "refunds over 50.00 need a yes"
    assert isinstance(paid, Completed)
    assert paid.value == "96.50 paid back"


def test_a_refund_goes_on_in_another_process_once_a_person_said_yes() -> None:
    done = subprocess.run(
        [EXAMPLES / "durable_refund" / "weekend.sh", Path(sys.executable).parent], capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr
    assert "refund needs approval: refunds over 50.00 need a yes" in done.stdout
    assert "approved `refund`, as ann" in done.stdout
    assert done.stdout.index("approved `refund`") < done.stdout.index("84.50 paid back")
