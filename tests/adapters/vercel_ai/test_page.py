"""A chat of the Vercel AI SDK in a browser, with its own clients: a run, an approval, a refusal, an error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.adapters.front_ends import BOOK, WEATHER, Trips, me, site
from toolcrib.adapters.vercel_ai import vercel_ai_app
from toolcrib.calls import ToolCall


@pytest.fixture(scope="module")
def script(bundle: Callable[[Path], str]) -> str:
    return bundle(Path(__file__).with_name("page.jsx"))


@pytest.fixture
def trips() -> Trips:
    more = [ToolCall("picture", {}, "call_p"), ToolCall("broken", {}, "call_b")]
    beside = [WEATHER, BOOK]
    return Trips(WEATHER, "It is cold.", BOOK, "Booked.", more, BOOK, "Then not.", beside, "Both done.")


@pytest.fixture
def address(script: str, trips: Trips) -> Iterator[str]:
    with site(script, vercel_ai_app(trips.open, principal=me)) as url:
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
    expect(page.locator("[data-tool=weather] output")).to_have_text('{"city":"Oslo","temp":4}')
    expect(page.locator("main[data-status=ready]")).to_be_visible()

    message.fill("Book it.")
    message.press("Enter")
    expect(page.locator("pre")).to_have_text('book needs approval\n  to = "Oslo"')
    assert trips.did == ["weather Oslo"]
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_text("Booked.")).to_be_visible()
    expect(page.locator("[data-tool=book] output")).to_have_text('"booked to Oslo"')
    expect(page.locator("main[data-status=ready]")).to_be_visible()

    message.fill("And again, with a picture.")
    message.press("Enter")
    page.get_by_role("button", name="Deny").click()
    expect(page.get_by_text("Then not.")).to_be_visible()
    expect(page.locator("[data-tool=broken] em")).to_contain_text("the line is dead")
    expect(page.get_by_alt_text("file")).to_have_attribute("src", "data:image/png;base64,iVBORw0KGgo=")
    assert page.locator("[data-tool=book]").last.get_attribute("data-state") == "output-denied"

    message.fill("Look, and book.")
    message.press("Enter")
    expect(page.locator("[data-tool=weather] em")).to_contain_text("The result comes when")
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_text("Both done.")).to_be_visible()
    expect(page.locator("[data-tool=weather] output").last).to_have_text('{"city":"Oslo","temp":4}')

    assert (trips.did, troubles) == (["weather Oslo", "book Oslo", "weather Oslo", "book Oslo"], [])
    trips.model.finish()
