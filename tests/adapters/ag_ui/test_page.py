"""A page over AG-UI in a browser, with its own client: a run, an approval, a refusal, an error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.adapters.front_ends import BOOK, WEATHER, Trips, me, site
from toolcrib.adapters.ag_ui import ag_ui_app
from toolcrib.calls import ToolCall


@pytest.fixture(scope="module")
def script(bundle: Callable[[Path], str]) -> str:
    return bundle(Path(__file__).with_name("page.js"))


@pytest.fixture
def trips() -> Trips:
    more = [ToolCall("picture", {}, "call_p"), ToolCall("broken", {}, "call_b")]
    return Trips(WEATHER, "It is cold.", BOOK, "Booked.", more, BOOK, "Then not.")


@pytest.fixture
def address(script: str, trips: Trips) -> Iterator[str]:
    with site(script, ag_ui_app(trips.open, principal=me)) as url:
        yield url


def test_a_person_sees_a_run_and_answers_its_calls(browser: Browser, address: str, trips: Trips) -> None:
    troubles: list[str] = []
    page = browser.new_page()
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.goto(address)
    message = page.get_by_label("Message")

    message.fill("How is Oslo?")
    message.press("Enter")
    expect(page.get_by_text("It is cold.")).to_be_visible()
    expect(page.locator("[data-role=tool]")).to_have_text('{"city": "Oslo", "temp": 4}')

    message.fill("Book it.")
    message.press("Enter")
    expect(page.locator("pre")).to_have_text('book needs approval\n  to = "Oslo"')
    expect(page.locator("[data-tool=book]")).to_have_text('{"to": "Oslo"}')
    assert trips.did == ["weather Oslo"]
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_text("Booked.")).to_be_visible()
    expect(page.get_by_text("booked to Oslo")).to_be_visible()

    message.fill("And again, with a picture.")
    message.press("Enter")
    page.get_by_role("button", name="Deny").click()
    expect(page.get_by_text("Then not.")).to_be_visible()
    expect(page.get_by_text("the line is dead")).to_be_visible()
    expect(page.get_by_text("iVBORw0KGgo=")).to_be_visible()
    expect(page.get_by_text("too far")).to_be_visible()

    assert (trips.did, troubles) == (["weather Oslo", "book Oslo"], [])
    trips.model.finish()
