"""The console in a browser, as a person uses it: with the mouse, the keyboard, on a phone, in the dark, twice at once.

With TOOLCRIB_PICTURES set, the pictures of docs/console.md are taken on the way (`make pictures`).
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import os
import re
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, TypedDict, TypeVar
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect, sync_playwright

from tests.console.conftest import Console, serve_app, serving
from tests.console.provider import provider_of
from tests.console.shop import HOSTILE, PROGRAM, Running, shop, some_history
from tests.in_doubt import answered_in_doubt
from tests.networks import free_port
from tests.npm.programs import axe
from toolcrib._run_sync import run_sync
from toolcrib.adapters.dbos import (
    Client,
    DurableAgent,
    DurableProgram,
    DurableToolkit,
    Engine,
    Placement,
    Queue,
    WorkOperator,
)
from toolcrib.approvals import SqliteApprovalStore
from toolcrib.calls import (
    DOUBT_ANSWERS,
    ActivityEvent,
    ApprovalRequest,
    CallEvent,
    Denial,
    RequiredApprovers,
    Suspended,
    ToolCall,
    now,
)
from toolcrib.code import Toolkit
from toolcrib.console import ConsoleOptions, console_app
from toolcrib.console.openid import OpenIDLogin
from toolcrib.pipeline import Pipeline, Run
from toolcrib.provenance import Provenance
from toolcrib.record import SqliteSink, sqlite_events
from toolcrib.testing import FakeSandbox
from toolcrib.tools import ez_tool, tool
from toolcrib.toolsets import Toolset
from toolcrib.turns import Agent, Turn

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
TOKEN = "a-token-of-the-tests-0123"
WAS_DONE = DOUBT_ANSWERS["done"]

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium; `.ci/packages chromium` installs it")

_RED = base64.b64decode(  # a picture of one point
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
_PATIENCE = 60_000  # milliseconds that a busy machine may take to show something
_SHOWN = re.compile(r"pictures/(console-[a-z]+\.png)")
T = TypeVar("T")

RunConsole = Callable[[str], Running]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-dev-shm-usage"]
    arguments.append("--renderer-process-limit=1")  # starting one for each page is a large part of what a test costs
    expect.set_options(timeout=_PATIENCE)
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield made
        made.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "toolcrib.db"


@pytest.fixture
def tools() -> Toolset:
    return shop()


@pytest.fixture
def run(path: Path, tools: Toolset) -> Iterator[Run]:
    with SqliteSink(path) as sink:
        yield lambda code: Running(tools, path, sink, code)


@pytest.fixture
def served(path: Path) -> Iterator[Console]:
    with serving(path) as console:
        yield console


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Open a page in a browser of its own; nothing may go wrong on it."""
    troubles: list[str] = []
    with ExitStack() as stack:

        def opened(url: str, *, name: str = "Ann", scheme: Any = "light", width: int = 1280, height: int = 800) -> Page:
            context = browser.new_context(
                viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
            )
            stack.callback(context.close)
            context.set_default_timeout(_PATIENCE)
            if name:
                context.add_init_script(f"localStorage.setItem('toolcrib-name', '{name}')")
            page = context.new_page()
            page.on("pageerror", lambda error: troubles.append(str(error)))
            page.on("dialog", lambda dialog: troubles.append(dialog.message))
            page.goto(url)
            return page

        yield opened
    assert troubles == []


def picture(page: Page, name: str, height: int | None = None) -> None:
    """Take a picture of the page, or of its upper part, for the documentation, where that is asked for."""
    if os.environ.get("TOOLCRIB_PICTURES"):
        PICTURES.mkdir(exist_ok=True)
        page.wait_for_timeout(150)
        size: Any = page.viewport_size
        clip: Any = {"x": 0, "y": 0, **size, **({} if height is None else {"height": height})}
        page.screenshot(path=PICTURES / name, animations="disabled", caret="hide", clip=clip)


def request_card(page: Page) -> Locator:
    return page.get_by_role("article", name="Request for approval")


def activities(page: Page) -> Locator:
    """Return the list of calls and runs, once the page shows it: the view before may have links of the same names."""
    return page.get_by_role("region", name="Calls and runs")


# --- a person and a program


def test_a_person_edits_what_a_program_waits_for_and_sees_it_go_on(
    path: Path, tools: Toolset, served: Console, run: Run, visit: Callable[..., Page]
) -> None:
    some_history(path, tools)
    program = run(PROGRAM)
    page = visit(served.url, name="")
    page.get_by_role("link", name="Activity").click()
    activities(page).get_by_role("link", name="program").click()
    details = page.get_by_role("region", name="Details")
    expect(details.locator(".source .waits")).to_contain_text('receipt = refund(order="A-1007"')
    expect(details.get_by_role("heading", level=2)).to_contain_text("suspended")
    picture(page, "console-program.png")

    details.get_by_role("link", name="waits for refund").click()
    card = request_card(page)
    expect(card).to_contain_text("100.00 is more than 50.00")
    expect(card.locator(".changes")).to_contain_text("129.5")
    card.get_by_role("button", name="Edit…").click()
    save = card.get_by_role("button", name="Approve with these arguments")
    card.get_by_label("amount").fill("eighty")
    expect(card.locator(".problems")).to_contain_text('amount: must be a number; got "eighty"')
    expect(save).to_be_disabled()
    save.scroll_into_view_if_needed()
    picture(page, "console-edit.png")
    card.get_by_label("amount").fill("80")
    expect(save).to_be_enabled()
    save.click()
    page.get_by_label("Name", exact=True).fill("Ann")
    page.get_by_role("button", name="Save").click()

    expect(details).to_contain_text("by Ann (console)")
    expect(details).to_contain_text("paid back 80.00 EUR")
    assert program.end().output.splitlines()[-1] == "paid back 80.00 EUR for A-1007"
    expect(details.get_by_role("heading", level=2)).to_contain_text("completed")
    details.get_by_role("link", name="program").click()
    expect(page.get_by_role("heading", level=2)).to_contain_text("completed")
    expect(page.locator(".source .waits")).to_have_count(0)


def test_a_chart_that_a_program_left_is_a_picture(served: Console, run: Run, visit: Callable[..., Page]) -> None:
    png = "".join(f"{byte:02x}" for byte in _RED)
    run(
        f"open('artifacts/<b>.png', 'wb').write(bytes.fromhex('{png}'))\n"
        "open('artifacts/a.svg', 'w').write('<svg/>')\nopen('artifacts/t.csv', 'w').write('1')"
    ).end()
    page = visit(f"{served.url}#/activity")

    page.get_by_role("link", name="program").click()

    image = page.get_by_role("img", name="<b>.png")
    expect(image).to_have_js_property("naturalWidth", 1)
    expect(page.get_by_role("region", name="Details")).to_contain_text("t.csv, text/csv, 1 byte")
    expect(page.get_by_role("region", name="Details")).to_contain_text("a.svg, image/svg+xml, 6 bytes")


def test_a_person_edits_arguments_as_json(served: Console, run: Run, visit: Callable[..., Page]) -> None:
    program = run('print(refund(order="A-1007", amount=70))')
    page = visit(served.url)
    page.get_by_role("link", name="refund").click()
    card = request_card(page)
    card.get_by_role("button", name="Edit…").click()
    card.get_by_label("amount").fill("71")
    card.get_by_role("button", name="Edit as JSON").click()
    editor = card.get_by_label("Arguments, as JSON")
    expect(editor).to_have_value(re.compile('"amount": 71'))
    editor.fill('{"order": "A-1007", "amount": 80, "currency": "GBP"}')
    expect(card.locator(".problems")).to_contain_text('currency: must be "EUR" or "USD"; got "GBP"')
    editor.fill('{"order": "A-1007", "amount": 80, "currency": "USD"}')
    card.get_by_role("button", name="Approve with these arguments").click()

    expect(card).to_contain_text("by Ann (console)")
    assert program.end().output == "paid back 80.00 USD for A-1007\n"


def test_a_person_says_no_and_the_program_is_told_why(served: Console, run: Run, visit: Callable[..., Page]) -> None:
    program = run('refund(order="A-1", amount=70)')
    page = visit(served.url)
    expect(page.locator("#pending")).to_have_text("1")
    page.get_by_role("link", name="refund").click()
    card = request_card(page)
    card.get_by_role("button", name="Deny…").click()
    card.get_by_label("What should the model read?").fill("Ask <b>tomorrow</b>.")
    card.get_by_role("button", name="Deny", exact=True).click()

    expect(card).to_contain_text("Denied by Ann (console)")
    expect(card.locator("q")).to_have_text("Ask <b>tomorrow</b>.")
    result = program.end()
    assert not result.success
    assert "Ask <b>tomorrow</b>." in (result.error or "")
    expect(page.locator("#pending")).to_be_hidden()
    page.get_by_role("link", name="Activity").click()
    expect(activities(page).get_by_role("link", name="program")).to_contain_text("failed")


def _elsewhere(work: Coroutine[Any, Any, T]) -> T:
    """Run work in a thread of its own: the browser's event loop is in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(run_sync, work).result()


async def _in_doubt(path: Path, tools: Toolset) -> Suspended:
    """Return a refund that was begun by a process that is gone, with its request in the database."""
    pipeline = Pipeline(tools)
    with SqliteSink(path) as sink:
        begun = ToolCall("refund", {"order": "A-1", "amount": 70}, "call_1")
        made = await pipeline.recover(begun, Run(approvals=SqliteApprovalStore(path), sinks=(sink,)))
    assert isinstance(made, Suspended)
    return made


def test_a_person_gives_the_result_of_a_call_in_doubt(
    path: Path, tools: Toolset, served: Console, visit: Callable[..., Page]
) -> None:
    suspended = _elsewhere(_in_doubt(path, tools))
    page = visit(served.url)
    expect(page.get_by_role("link", name="refund")).to_contain_text("order='A-1', amount=70")
    page.get_by_role("link", name="refund").click()
    card = request_card(page)
    expect(card.get_by_role("heading", name="refund may have run already")).to_be_visible()
    expect(card.get_by_role("button", name="Do it")).to_be_visible()
    expect(card.locator(".primary, .danger")).to_have_count(0)
    expect(card.get_by_role("button", name="Edit…")).to_have_count(0)
    card.get_by_role("button", name=f"{WAS_DONE}…").click()
    expect(card.get_by_role("button", name="It must not be done…")).to_be_visible()
    card.get_by_label("Result").fill("paid back by hand")
    card.get_by_role("button", name=WAS_DONE, exact=True).click()

    expect(card).to_contain_text("Said to be done by Ann (console)")
    expect(page.locator("#pending")).to_be_hidden()
    outcome = _elsewhere(Pipeline(tools).run(suspended, Run(approvals=SqliteApprovalStore(path))))
    assert (outcome.kind, outcome.text()) == ("completed", "paid back by hand")


def test_what_is_always_allowed_does_not_ask_again_until_it_is_taken_back(
    served: Console, run: Run, visit: Callable[..., Page]
) -> None:
    program = run('print(refund(order="A-1", amount=70))\nprint(refund(order="A-2", amount=71))')
    page = visit(served.url + "#/inbox")
    page.get_by_role("link", name="refund").click()
    card = request_card(page)
    card.get_by_role("button", name="Always allow…").click()
    card.get_by_label("refund with any arguments").check()
    card.get_by_role("button", name="Always allow", exact=True).click()

    assert program.end().output.count("paid back") == 2
    page.get_by_role("link", name="Standing").click()
    grant = page.get_by_role("listitem").filter(has_text="any arguments")
    expect(grant).to_contain_text("for ada@example.org")
    expect(grant).to_contain_text(re.compile(r"used 2 times, last \w+"))
    grant.get_by_role("button", name="Take back").click()
    expect(page.get_by_text("There are none.")).to_be_visible()


def test_a_person_picks_what_a_yes_covers_and_reads_it_before_it_counts(
    served: Console, run: Run, visit: Callable[..., Page]
) -> None:
    program = run('print(refund(order="A-1", amount=70))\nprint(refund(order="A-2", amount=71))')
    page = visit(served.url + "#/inbox")
    page.get_by_role("link", name="refund").click()
    card = request_card(page)
    card.get_by_role("button", name="Always allow…").click()
    card.get_by_label("refund with arguments within bounds").check()
    card.get_by_label("order").fill("most")
    expect(card.get_by_text("`order`: 'most' is not a bound")).to_be_visible()
    expect(card.get_by_role("button", name="Always allow", exact=True)).to_be_disabled()
    card.get_by_label("order").fill("any")
    card.get_by_label("amount", exact=False).first.fill("<= 71")
    card.get_by_label("For how many calls").fill("2")
    expect(card.get_by_text("It allows: refund: order any, amount up to 71")).to_be_visible()
    card.get_by_text("It allows: refund").scroll_into_view_if_needed()
    picture(page, "console-bounds.png")
    card.get_by_role("button", name="Always allow", exact=True).click()

    assert program.end().output.count("paid back") == 2
    page.get_by_role("link", name="Standing").click()
    grant = page.get_by_role("listitem").filter(has_text="order any, amount up to 71")
    expect(grant).to_contain_text(re.compile(r"used 2 of 2 calls, last \w+"))
    picture(page, "console-standing.png", height=240)


def test_a_person_picks_the_times_of_the_week_at_which_a_yes_counts(
    served: Console, run: Run, visit: Callable[..., Page]
) -> None:
    program = run('print(refund(order="A-1", amount=70))\nprint(refund(order="A-2", amount=71))')
    page = visit(served.url + "#/inbox")
    page.get_by_role("link", name="refund").click()
    card = request_card(page)
    card.get_by_role("button", name="Always allow…").click()
    card.get_by_label("refund with any arguments").check()
    allow, times = card.get_by_role("button", name="Always allow", exact=True), card.get_by_label("At these times")
    yesterday = (now() - timedelta(days=1)).strftime("%a").lower()
    for typed, said in (
        ("at night", "'at night' is not a time of day"),
        ("mon-fri 09:00-17:00 Berlin", "'Berlin' is not a time zone here"),
        (f"{yesterday} 00:00-00:01", "it does not cover this call: it was given for calls from 00:00 to 00:01"),
    ):
        times.fill(typed)
        expect(card.get_by_text(said)).to_be_visible()
        expect(allow).to_be_disabled()
    times.fill("mon-sun 00:00-24:00 Europe/Berlin")
    expect(card.get_by_text("from 00:00 to 24:00 every day (Europe/Berlin)")).to_be_visible()
    allow.click()

    assert program.end().output.count("paid back") == 2
    page.get_by_role("link", name="Standing").click()
    grant = page.get_by_role("listitem").filter(has_text="any arguments")
    expect(grant).to_contain_text("from 00:00 to 24:00 every day (Europe/Berlin)")


# --- several browsers, a server that goes away


def test_of_two_browsers_one_answers_and_the_other_sees_it(
    served: Console, run: Run, visit: Callable[..., Page]
) -> None:
    program = run('refund(order="A-1", amount=70)')
    ann, ben = visit(served.url, name="Ann"), visit(served.url, name="Ben")
    for page in (ann, ben):
        page.get_by_role("link", name="refund").click()
        expect(request_card(page).get_by_role("button", name="Approve")).to_be_visible()

    request_card(ann).get_by_role("button", name="Approve").click()

    expect(request_card(ben)).to_contain_text("Approved by Ann (console)")
    expect(request_card(ben).get_by_role("button")).to_have_count(0)
    expect(ben.locator("#pending")).to_be_hidden()
    assert program.end().success


def test_who_is_too_late_is_told_so(served: Console, run: Run, visit: Callable[..., Page]) -> None:
    program = run('refund(order="A-1", amount=70)')
    page = visit(served.url)
    page.get_by_role("link", name="refund").click()
    approve = request_card(page).get_by_role("button", name="Approve")
    expect(approve).to_be_visible()
    (request,) = served.get("/api/inbox").json["requests"]
    page.route("**/api/stream*", lambda route: route.abort())  # what it is told does not arrive
    page.evaluate("window.stop()")
    served.post("/api/answer", {"request": request["id"], "answer": "deny", "name": "Ben"})

    if approve.count():
        approve.click(timeout=1_000, force=True, no_wait_after=True)

    expect(request_card(page)).to_contain_text("Denied by Ben (console)")
    assert not program.end().success


def test_a_page_goes_on_after_its_server_was_away(path: Path, run: Run, visit: Callable[..., Page]) -> None:
    with serving(path) as first:
        page = visit(first.url)
        expect(page.get_by_text("No request is pending.")).to_be_visible()
        expect(page.locator("#live")).to_have_text("live")
    expect(page.locator("#live")).to_have_text("reconnecting")
    program = run('refund(order="A-1", amount=70)')

    with serving(path, port=first.port):
        page.get_by_role("link", name="refund").click()
        expect(page.locator("#live")).to_have_text("live")
        request_card(page).get_by_role("button", name="Approve").click()

        expect(request_card(page)).to_contain_text("Approved by Ann (console)")
        assert program.end().success


# --- many requests


async def _ask_many(path: Path, size: int) -> None:
    """Let an agent ask for many refunds; written as one batch, as a test has no minute."""
    schema = {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]}
    requests = [
        ApprovalRequest(
            f"ask_{number}",
            f"call_{number}",
            "refund" if number % 10 else "close_account",
            {"order": f"A-{number}"},
            f"digest {number}",
            created_at=now() - timedelta(minutes=size - number),
            principal=f"user{number % 3}",
            parameters=schema,
        )
        for number in range(size)
    ]
    with SqliteSink(path) as sink:
        sink.emit_activity(ActivityEvent("opened", "agent", "a1", None, "support", now(), {}))
        for request in requests:
            arguments = {"arguments": dict(request.arguments)}
            sink.emit(CallEvent("received", request.call_id, request.tool, "", "turn", now(), arguments, None, "a1"))
    SqliteApprovalStore(path)
    rows = [(one.id, one.call_id, json.dumps(one.to_dict())) for one in requests]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany("INSERT INTO requests (id, call_id, request) VALUES (?, ?, ?)", rows)


def test_a_thousand_requests_are_found_and_answered_at_once(
    path: Path, served: Console, visit: Callable[..., Page]
) -> None:
    _elsewhere(_ask_many(path, 1_000))
    page = visit(served.url)
    side = page.get_by_role("region", name="Pending requests")
    expect(page.locator("#pending")).to_have_text("1 000")
    expect(side.locator(".row-link")).to_have_count(60)
    side.get_by_role("button", name="Show more of 1 000").click()
    expect(side.locator(".row-link")).to_have_count(120)

    side.get_by_label("Tool", exact=True).select_option("close_account")
    side.get_by_label("On behalf of").select_option("user1")
    expect(side.get_by_label("All 33")).to_be_visible()
    assert "tool=close_account" in page.url
    page.reload()
    expect(side.get_by_label("All 33")).to_be_visible()
    side.get_by_label("All 33").check()
    side.get_by_role("button", name="Deny…").click()
    dialog = page.get_by_role("dialog", name="Deny 33 requests?")
    dialog.get_by_label("What should the models read?").fill("not today")
    dialog.get_by_role("button", name="Deny all").click()

    expect(page.get_by_text("Nothing fits these filters.")).to_be_visible()
    expect(page.locator("#pending")).to_have_text("967")
    answer = _elsewhere(SqliteApprovalStore(path).show("ask_10")).answer
    assert isinstance(answer, Denial)
    assert (answer.by, answer.message) == ("Ann (console)", "not today")
    page.goto(served.url + "#/inbox/ask_11?text=A-11")
    expect(request_card(page)).to_contain_text("asked by agent support")
    expect(side.locator(".row-link").first).to_contain_text("A-11")


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_several_requests_are_chosen_with_the_keyboard(
    path: Path, served: Console, visit: Callable[..., Page], scheme: str, width: int
) -> None:
    _elsewhere(_ask_many(path, 3))
    page = visit(served.url, scheme=scheme, width=width)
    side = page.get_by_role("region", name="Pending requests")
    expect(side.locator(".row-link")).to_have_count(3)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert _contrast(page, ".row-link .sub") > 4.5
    assert _contrast(page, ".bulk .leave") > 4.5
    if width < 760:  # else the first is open
        page.keyboard.press("j")
    page.keyboard.press("x")
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(side.get_by_text("2 chosen")).to_be_visible()
    side.get_by_role("button", name="Approve…").press("Enter")
    page.get_by_role("button", name="Approve all").press("Enter")

    expect(side.locator(".row-link")).to_have_count(1)
    assert _elsewhere(SqliteApprovalStore(path).list(pending=True))[0].request.id == "ask_2"


def test_a_key_means_the_request_that_is_open_as_soon_as_the_list_shows(
    path: Path, served: Console, visit: Callable[..., Page]
) -> None:
    _elsewhere(_ask_many(path, 3))
    page = visit(served.url + "#/grants")
    expect(page.get_by_role("heading", name="Standing grants")).to_be_visible()  # it takes keys from now on
    lookups = itertools.count()
    page.route("**/api/inbox*", lambda route: None if next(lookups) else route.continue_())  # the first is answered

    page.keyboard.press("1")
    side = page.get_by_role("region", name="Pending requests")
    expect(side.locator(".row-link")).to_have_count(3)
    page.keyboard.press("x")
    page.keyboard.press("j")
    page.keyboard.press("x")

    expect(side.get_by_text("2 chosen")).to_be_visible()


def test_a_list_shows_though_a_later_lookup_is_never_answered(
    path: Path, served: Console, visit: Callable[..., Page]
) -> None:
    _elsewhere(_ask_many(path, 3))
    page = visit(served.url + "#/grants")
    expect(page.get_by_role("heading", name="Standing grants")).to_be_visible()  # it takes keys from now on
    held: list[Route] = []
    page.route("**/api/inbox*", lambda route: held.append(route))  # which Playwright marks

    with page.expect_request("**/api/inbox*"):
        page.keyboard.press("1")
    with page.expect_request("**/api/inbox*"):
        _elsewhere(SqliteApprovalStore(path).put(ApprovalRequest("ask_later", "c9", "refund", {}, "d")))
    held[0].continue_()

    expect(page.get_by_role("region", name="Pending requests").locator(".row-link").first).to_be_visible()


def test_of_two_approvers_each_sees_the_other(path: Path, served: Console, visit: Callable[..., Page]) -> None:
    request = ApprovalRequest("ask_1", "c1", "refund", {"order": "A-1"}, "d", approvals_needed=2)
    _elsewhere(SqliteApprovalStore(path).put(request))
    ann, ben = (visit(served.url + "#/inbox/ask_1", name=name) for name in ("Ann", "Ben"))
    expect(request_card(ben)).to_contain_text("It needs 2 approvers")
    expect(request_card(ann).get_by_role("button", name="Edit…")).to_have_count(0)

    request_card(ann).get_by_role("button", name="Approve").click()
    expect(request_card(ben)).to_contain_text("Approved so far by Ann (console)")
    expect(ann.locator("#pending")).to_have_text("1")
    request_card(ben).get_by_role("button", name="Approve").click()

    expect(request_card(ann)).to_contain_text("Approved by Ann (console), Ben (console)")


REFUNDS = RequiredApprovers(
    "refunds over 1,000",
    {"finance": 1},
    {"finance": [["bob@example.org"], ["cid@example.org"]], "managers": [["eve@example.org"]]},
    from_login=("finance",),
    escalation=((3600.0, "managers"),),
)


def test_a_request_shows_who_may_answer_it_now_and_from_when_on(
    path: Path, served: Console, visit: Callable[..., Page]
) -> None:
    arguments = {"order": "A-1007", "euros": 1200}
    request = ApprovalRequest("ask_1", "c1", "refund", arguments, "d", "the order came broken", required=(REFUNDS,))
    _elsewhere(SqliteApprovalStore(path).put(request))
    page = visit(served.url + "#/inbox/ask_1", name="Ann")

    card = request_card(page)

    lines = card.locator("[data-shows=answerers] li")
    expect(lines).to_have_count(2)
    expect(lines.first).to_have_text("may answer now: finance (bob@example.org, cid@example.org)")
    expect(lines.last).to_have_text(re.compile(r"^from .*: managers \(eve@example.org\)$"))
    picture(page, "console-escalation.png", height=520)


def test_an_open_page_is_drawn_anew_as_its_request_escalates(
    path: Path, served: Console, visit: Callable[..., Page]
) -> None:
    rule = RequiredApprovers(
        *("refunds", {"finance": 1}, {"finance": [["bob"]], "managers": [["eve"]]}),
        escalation=((3600.0, "managers"),),
        instead=True,
    )
    asked_at = now() - timedelta(seconds=3590)
    request = ApprovalRequest("ask_1", "c1", "refund", {}, "d", required=(rule,), created_at=asked_at)
    _elsewhere(SqliteApprovalStore(path).put(request))

    lines = request_card(visit(served.url + "#/inbox/ask_1", name="Ann")).locator("[data-shows=answerers] li")

    expect(lines).to_have_count(1, timeout=60_000)
    expect(lines).to_have_text("may answer now: managers (eve)")


# --- however it is used


def test_the_first_request_is_open_where_there_is_room_and_leaves_the_focus(
    path: Path, served: Console, visit: Callable[..., Page]
) -> None:
    _elsewhere(_ask_many(path, 2))
    wide, narrow = visit(served.url), visit(served.url, width=390)

    expect(request_card(wide)).to_be_visible()
    expect(wide.locator(".row-link").first).to_have_attribute("aria-current", "true")
    assert wide.evaluate("document.activeElement === document.body")
    expect(narrow.locator(".row-link")).to_have_count(2)
    expect(request_card(narrow)).to_have_count(0)


def test_arguments_of_a_suspended_call_are_on_its_page_once(
    served: Console, run: Run, visit: Callable[..., Page]
) -> None:
    program = run('refund(order="A-1", amount=70)')
    page = visit(served.url)
    request_card(page).get_by_role("link", name="the call").click()
    details = page.get_by_role("region", name="Details")
    expect(details.locator(".arguments")).to_have_count(1)
    expect(details).to_contain_text("Waits for a person")

    request_card(page).get_by_role("button", name="Approve").click()

    expect(details).to_contain_text("paid back 70.00 EUR for A-1")
    expect(details).not_to_contain_text("Waits for a person")
    expect(details.locator(".arguments")).to_have_count(1)
    assert program.end().success


def test_the_keyboard_is_enough(served: Console, run: Run, visit: Callable[..., Page]) -> None:
    program = run('refund(order="A-1", amount=70)')
    page = visit(served.url + "#/activity", name="")
    expect(page.get_by_role("link", name="program")).to_be_visible()

    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("1")
    expect(page.get_by_role("link", name="refund")).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(request_card(page).get_by_role("button", name="Approve")).to_be_visible()
    page.keyboard.press("d")
    page.keyboard.type("no, 1 2 3 a e?")
    page.keyboard.press("Control+Enter")
    page.keyboard.type("Kay")
    page.keyboard.press("Enter")

    expect(request_card(page)).to_contain_text("Denied by Kay (console)")
    expect(request_card(page).locator("q")).to_have_text("no, 1 2 3 a e?")
    assert not program.end().success


def test_whatever_has_the_focus_shows_it(served: Console, run: Run, visit: Callable[..., Page]) -> None:
    program = run('refund(order="A-1", amount=70)')
    page = visit(served.url)
    page.get_by_role("link", name="refund").click()
    expect(request_card(page).get_by_role("button", name="Approve")).to_be_visible()
    page.keyboard.press("a")
    outline = "getComputedStyle(document.activeElement).outlineStyle + document.activeElement.textContent"
    assert page.evaluate(outline) == "solidApprove"

    page.keyboard.press("Enter")

    expect(request_card(page)).to_contain_text("Approved by Ann (console)")
    assert program.end().success


def test_it_fits_a_phone(served: Console, run: Run, visit: Callable[..., Page]) -> None:
    program = run(PROGRAM)
    page = visit(served.url, width=390, height=844)
    page.get_by_role("link", name="refund").click()
    card = request_card(page)
    expect(card.get_by_role("button", name="Approve")).to_be_in_viewport()
    picture(page, "console-phone.png")
    for view in ("#/activity", "#/timeline", "#/grants", "#/inbox"):
        page.goto(served.url + view)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), view
    page.get_by_role("link", name="refund").click()
    card.get_by_role("button", name="Approve").click()

    expect(card).to_contain_text("Approved by Ann (console)")
    assert program.end().success


@pytest.mark.parametrize("width", [390, 768, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_any_page(
    path: Path, tools: Toolset, visit: Callable[..., Page], scheme: str, width: int
) -> None:
    some_history(path, tools)
    doubt = _elsewhere(_in_doubt(path, tools)).request

    app = console_app(sqlite_events(path), SqliteApprovalStore(path), ConsoleOptions(), Desk())
    with serve_app(app) as port:
        page = visit(f"http://127.0.0.1:{port}/", scheme=scheme, width=width)
        call = f"#/activity/call/{doubt.call_id}/{doubt.run_id}"
        views = {
            "#/inbox": page.get_by_role("link", name="refund"),
            f"#/inbox/{doubt.id}": page.get_by_role("button", name="Do it"),
            "#/activity": activities(page).get_by_role("link", name="get_page"),
            call: page.get_by_role("button", name="Do it"),
            "#/timeline": page.locator(".event").first,
            "#/work": page.get_by_text("2 in hand"),
            "#/grants": page.get_by_text("There are none."),
        }
        for view, shown in views.items():
            page.goto(f"http://127.0.0.1:{port}/{view}")
            expect(shown).to_be_visible()

            page.evaluate(axe())
            found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]

            assert [(view, one["id"], [node["target"] for node in one["nodes"]]) for one in found] == []
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), view
            assert page.evaluate(_CUT_SELECTS) == [], view


_CUT_SELECTS = """[...document.querySelectorAll("select")].filter((one) => {
    const shown = document.createElement("span");
    Object.assign(shown.style, {font: getComputedStyle(one).font, position: "absolute", whiteSpace: "nowrap"});
    shown.textContent = one.selectedOptions[0].textContent;
    document.body.append(shown);
    const { width } = shown.getBoundingClientRect();
    shown.remove();
    return one.offsetParent && width + 34 > one.clientWidth;  // its edges, and the arrow
}).map((one) => one.ariaLabel)"""
"""The selects whose chosen words have no room."""


def test_it_is_dark_where_everything_is(served: Console, run: Run, visit: Callable[..., Page]) -> None:
    program = run(PROGRAM)
    page = visit(served.url, scheme="dark")
    page.get_by_role("link", name="refund").click()
    expect(request_card(page)).to_contain_text("Changed since the model asked")

    assert _contrast(page, "body") > 10
    assert _contrast(page, ".request .muted") > 4.5
    assert _contrast(page, ".request button.danger") > 4.5
    picture(page, "console-inbox.png")
    request_card(page).get_by_role("button", name="Approve").click()
    assert program.end().success


def test_it_is_readable_in_the_light(served: Console, run: Run, visit: Callable[..., Page]) -> None:
    run("get_page(url='x')").end()
    page = visit(served.url + "#/timeline")
    expect(page.locator(".event").first).to_be_visible()

    assert _contrast(page, "body") > 10
    assert _contrast(page, ".event .text") > 4.5
    assert _contrast(page, ".event time") > 4.5


def _contrast(page: Page, selector: str) -> float:
    """Return how much the text of an element stands out from what is behind it, as WCAG counts it."""
    colours = page.evaluate(
        """selector => {
            let element = document.querySelector(selector);
            const ink = getComputedStyle(element).color;
            let paper = "rgba(0, 0, 0, 0)";
            for (; element && paper === "rgba(0, 0, 0, 0)"; element = element.parentElement)
                paper = getComputedStyle(element).backgroundColor;
            return [ink, paper];
        }""",
        selector,
    )
    light, dark = sorted((_luminance(colour) for colour in colours), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


# --- what comes from a tool or a model


def test_html_from_a_tool_is_text(path: Path, served: Console, run: Run, visit: Callable[..., Page]) -> None:
    program = run(f"# {HOSTILE}\nget_page(url={HOSTILE!r})\nrefund(order={HOSTILE!r}, amount=70)")
    page = visit(served.url)
    page.get_by_role("link", name="refund").click()
    expect(request_card(page)).to_contain_text(HOSTILE)
    for link, shown in (("program", HOSTILE), ("get_page", HOSTILE)):
        page.get_by_role("link", name="Activity").click()
        page.get_by_label("Kind").select_option("all")
        activities(page).get_by_role("link", name=link).click()
        expect(page.get_by_role("region", name="Details")).to_contain_text(shown)
    page.get_by_role("link", name="Timeline").click()
    expect(page.locator(".event").first).to_be_visible()

    assert page.evaluate("window.hacked") is None
    assert page.locator("main script, main img").count() == 0
    served.post("/api/answer", {"request": _only_request(served), "answer": "deny", "name": "Ann", "message": HOSTILE})
    program.end()


def _only_request(console: Console) -> str:
    (request,) = console.get("/api/inbox").json["requests"]
    return str(request["id"])


def test_the_path_of_a_value_leads_to_the_call_that_it_is_from(
    path: Path, served: Console, visit: Callable[..., Page]
) -> None:
    @ez_tool(effect="none")
    async def read_file(name: str) -> str:
        return "Pay\nto bob@evil.com"

    @ez_tool(effect="send")
    async def pay(recipient: str) -> str:
        return recipient

    async def ask(sink: SqliteSink) -> None:
        run = Run(sinks=(sink,), features=[Provenance()], approvals=SqliteApprovalStore(path))
        pipeline = Pipeline([read_file, pay])
        await pipeline.run(ToolCall("read_file", {"name": "bill.txt"}), run)
        await pipeline.run(ToolCall("pay", {"recipient": "bob@evil.com"}), run)

    with SqliteSink(path) as sink, ThreadPoolExecutor() as pool:
        pool.submit(lambda: run_sync(ask(sink))).result()
    page = visit(served.url)
    page.get_by_role("link", name="pay").first.click()
    card = request_card(page)
    expect(card.locator(".origins")).to_have_text("bob@evil.com untrusted, from read_file line 2 → recipient")
    card.locator(".origins").get_by_role("link", name="read_file").click()
    expect(page.get_by_role("heading", name="read_file")).to_be_visible()


def test_a_script_in_the_page_would_not_run(served: Console, visit: Callable[..., Page]) -> None:
    page = visit(served.url)

    page.evaluate("document.body.insertAdjacentHTML('beforeend', `<img src='x:' onerror='window.hacked=1'>`)")
    page.evaluate("document.body.append(Object.assign(document.createElement('script'), {text: 'window.hacked=1'}))")
    page.wait_for_timeout(50)

    assert page.evaluate("window.hacked") is None


def test_a_long_value_is_shown_whole_when_asked(path: Path, served: Console, visit: Callable[..., Page]) -> None:
    @tool()
    async def count(to: int) -> str:
        return "".join(f"{number}\n" for number in range(to))

    with SqliteSink(path) as sink:
        scope = Run(sinks=(sink,))
        call = threading.Thread(
            target=lambda: run_sync(Pipeline(Toolset([count])).run(ToolCall("count", {"to": 5000}), scope))
        )
        call.start()
        call.join(60)
    page = visit(served.url + "#/activity")
    page.get_by_role("link", name="count").click()
    expect(page.get_by_role("region", name="Details")).not_to_contain_text("4999")

    page.get_by_role("button", name=re.compile("Show all .* characters")).click()

    expect(page.get_by_role("region", name="Details")).to_contain_text("4999")


# --- finding, following, logging in


def test_what_happens_appears_by_itself(served: Console, run: Run, visit: Callable[..., Page]) -> None:
    run("get_page(url='first')").end()
    page = visit(served.url + "#/timeline")
    expect(page.locator(".event").filter(has_text="first").first).to_be_visible()

    run("find_order(number='second')").end()

    expect(page.locator(".event").filter(has_text="second").first).to_be_visible()
    expect(page.locator(".event .what").first).to_have_text("program closed")


def test_search_finds_arguments(served: Console, run: Run, visit: Callable[..., Page]) -> None:
    run("for n in range(5):\n    find_order(number=f'N-{n}')\nget_page(url='x')").end()
    page = visit(served.url)
    expect(page.get_by_text("No request is pending.")).to_be_visible()
    page.keyboard.press("2")
    expect(page.get_by_role("region", name="Calls and runs")).to_be_visible()
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()

    page.keyboard.type("n-3 find_order")

    rows = page.get_by_role("region", name="Calls and runs").locator(".row-link")
    expect(rows).to_have_count(1)
    page.get_by_role("searchbox").fill("")
    page.get_by_label("Kind").select_option("call")
    expect(rows).to_have_count(6)
    page.get_by_label("Tool").fill("get_page")
    expect(rows).to_contain_text(["get_page"])
    page.reload()
    expect(page.get_by_label("Tool")).to_have_value("get_page")
    expect(rows).to_contain_text(["get_page"])


def test_states_are_chosen_together_and_the_address_has_each(
    path: Path, tools: Toolset, served: Console, visit: Callable[..., Page]
) -> None:
    some_history(path, tools)
    page = visit(served.url + "#/activity?status=running")
    rows = activities(page).locator(".row-link")
    expect(page.get_by_text("Nothing fits these filters.")).to_be_visible()
    page.get_by_label("Status: running").press("Enter")
    boxes = page.get_by_role("group", name="Status")
    boxes.get_by_label("running").uncheck()
    boxes.get_by_label("rejected").check()
    expect(rows).to_have_count(1)

    boxes.get_by_label("failed").check()

    expect(rows).to_have_count(2)
    page.keyboard.press("Escape")
    expect(boxes).to_be_hidden()
    assert page.evaluate("new URLSearchParams(location.hash.split('?')[1]).getAll('status')") == [
        "failed,error",
        "rejected,refused",
    ]
    page.reload()
    expect(page.get_by_label("Status: failed, rejected")).to_be_visible()
    expect(rows).to_have_count(2)


def test_a_token_lets_in_and_says_who_it_is(path: Path, run: Run, visit: Callable[..., Page]) -> None:
    program = run('refund(order="A-1", amount=70)')
    with serving(path, ConsoleOptions(tokens={"ann": TOKEN})) as console:
        page = visit(console.url, name="")
        page.get_by_label("Token").fill("not the token at all")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_have_text("This is not a token of this console.")
        page.get_by_label("Token").fill(TOKEN)
        page.keyboard.press("Enter")

        page.get_by_role("link", name="refund").click()
        request_card(page).get_by_role("button", name="Approve").click()

        expect(request_card(page)).to_contain_text("Approved by ann (console)")
        assert page.evaluate("document.cookie") == ""
        page.reload()
        expect(page.get_by_text("No request is pending.")).to_be_visible()

        page.get_by_role("button", name="Log out").click()
        expect(page.get_by_label("Token")).to_be_visible()
    assert program.end().success


def test_what_says_nothing_any_more_does_not_look_alive(path: Path, visit: Callable[..., Page]) -> None:
    began = now() - timedelta(minutes=7)
    with SqliteSink(path) as sink, serving(path) as console:
        sink.emit_activity(ActivityEvent("opened", "agent", "killed", None, "support", began, {}))
        sink.emit_activity(ActivityEvent("opened", "agent", "alive", None, "helper", now(), {}))
        sink.flush()
        page = visit(f"{console.url}#/activity/agent/killed")

        expect(page.get_by_role("heading", name="support")).to_contain_text("no news for 7 min")
        expect(page.get_by_role("link", name="helper")).to_contain_text("running")


def test_a_call_that_was_said_to_be_done_does_not_look_approved(path: Path, visit: Callable[..., Page]) -> None:
    @ez_tool(requires_approval=True)
    def refund(order: int) -> str:
        return f"refunded {order}"

    with SqliteSink(path) as sink, serving(path) as console:
        answered = answered_in_doubt(
            Pipeline([refund], sinks=[sink]), lambda request: request.done("refunded 7", "ann")
        )
        with ThreadPoolExecutor(1) as pool:
            call_id = pool.submit(run_sync, answered).result()
        sink.flush()
        page = visit(f"{console.url}#/activity/call/{call_id}")

        expect(page.locator("p.answered")).to_contain_text("Said to be done, and not run again, by ann")
        expect(page.locator("p.answered")).not_to_contain_text("Approved")


def test_activities_are_chosen_by_their_days(path: Path, visit: Callable[..., Page]) -> None:
    day = now() - timedelta(days=3)
    with SqliteSink(path) as sink, serving(path) as console:
        for number in range(3):
            at = day + timedelta(days=number)
            sink.emit_activity(ActivityEvent("opened", "agent", f"agent_{number}", None, f"day{number}", at, {}))
        sink.flush()
        page = visit(f"{console.url}#/activity")
        chosen = page.evaluate("(at) => new Date(at).toLocaleDateString('sv')", (day + timedelta(days=1)).isoformat())
        page.get_by_label("From this day on").fill(chosen)
        page.get_by_label("Up to this day").fill(chosen)

        expect(page.get_by_role("link", name="day2")).to_have_count(0)
        expect(page.get_by_role("link", name="day0")).to_have_count(0)
        expect(page.get_by_role("link", name="day1")).to_contain_text(f"{day + timedelta(days=1):%Y}")
        page.reload()
        expect(page.get_by_label("From this day on")).to_have_value(chosen)


# --- a run in time, durable work, and those who only look


async def _nested(path: Path, calls: int) -> None:
    """Keep a program of many calls, each with a call of its own inside, some 10 ms apart."""
    began = now() - timedelta(seconds=calls)
    with SqliteSink(path) as sink:
        sink.emit_activity(ActivityEvent("opened", "program", "p1", None, "program", began, {"source": "x = 1"}))
        for number in range(calls):
            parent = "p1" if number % 2 == 0 else f"c{number - 1}"
            about = (f"c{number}", "outer" if number % 2 == 0 else "inner", "run", "code")
            at = began + timedelta(seconds=number)
            sink.emit(CallEvent("received", *about, at, {"arguments": {"number": number}}, None, parent))
            done = {"outcome": {"kind": "completed", "value": f"result {number}"}}
            sink.emit(CallEvent("ended", *about, at + timedelta(seconds=1), done, None, parent))
        closed = {"outcome": "completed"}
        sink.emit_activity(ActivityEvent("closed", "program", "p1", None, "program", now(), closed))


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_a_waterfall_shows_a_run_of_500_calls_and_unfolds(
    path: Path, served: Console, visit: Callable[..., Page], scheme: str, width: int
) -> None:
    _elsewhere(_nested(path, 500))
    page = visit(served.url + "#/activity/program/p1", scheme=scheme, width=width)
    page.get_by_text("Waterfall", exact=True).press("Enter")

    rows = page.locator(".waterfall li")
    expect(rows).to_have_count(501)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert _contrast(page, ".waterfall .took") > 4.5
    bars = page.evaluate(
        "[...document.querySelectorAll('.waterfall .span')].map((one) => one.getBoundingClientRect().x)"
    )
    assert bars[1] < bars[250] < bars[500]
    indents = page.evaluate(
        "[1, 2].map((at) => getComputedStyle(document.querySelectorAll('.waterfall .name')[at]).paddingLeft)"
    )
    assert indents == ["14px", "28px"]
    rows.nth(2).locator("summary").press("Enter")
    expect(rows.nth(2)).to_contain_text("result 1")
    expect(rows.nth(2)).to_contain_text("number")


@dataclass
class Desk:
    """Durable work of one lost worker and one turn."""

    done: list[str] = field(default_factory=list[str])
    states: tuple[str, ...] = ("waiting", "cancelled")

    def workers(self) -> list[Any]:
        about = {"id": "w1", "host": "h", "pid": 7, "started_at": 1.0, "seen_at": time.time() - 60, "pending": 2}
        return [{**about, "state": "recovered" if "w1" in self.done else "lost"}]

    def queues(self) -> list[Any]:
        return [{"name": "mail", "waiting": 1, "running": 0, "oldest_at": time.time() - 60}]

    def works(
        self,
        states: Collection[str] = (),
        queue: str | None = None,
        limit: int = 50,
        start: int = 0,
        text: str | None = None,
    ) -> list[Any]:
        mine = "cancelled" if "t1" in self.done else "waiting"
        about = {"kind": "turn", "target": "support: refund", "queue": "mail", "worker": "w1", "attempts": 2}
        one = {**about, "id": "t1", "state": mine, "created_at": time.time() - 60, "error": None}
        return [one] if not states or mine in states else []

    def cancel(self, work_id: str) -> Any:
        self.done.append(work_id)
        return self.works()[0]

    def resume(self, work_id: str) -> Any:
        self.done.remove(work_id)
        return self.works()[0]

    def retry(self, work_id: str) -> Any:
        raise NotImplementedError

    def calls(self, work_id: str) -> list[Any]:
        raise NotImplementedError

    def fork(self, work_id: str, step: int, new_id: str | None) -> Any:
        raise NotImplementedError

    def recover(self, worker_id: str) -> list[str]:
        self.done.append(worker_id)
        return ["t1", "t2"]


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_durable_work_is_cancelled_resumed_and_handed_over(
    path: Path, visit: Callable[..., Page], scheme: str, width: int
) -> None:
    @ez_tool
    def refund(order: str, note: str) -> str:
        return order

    with SqliteSink(path) as sink:
        call = ToolCall("refund", {"order": "A-1", "note": "the lamp arrived broken, " * 20}, "t1")
        _elsewhere(Pipeline([refund], sinks=[sink]).run(call))
    app = console_app(sqlite_events(path), SqliteApprovalStore(path), ConsoleOptions(), Desk())
    with serve_app(app) as port:
        page = visit(f"http://127.0.0.1:{port}/", scheme=scheme, width=width)
        expect(page.get_by_text("No request is pending.")).to_be_visible()
        page.keyboard.press("5")
        view = page.get_by_role("region", name="Durable work")
        expect(view).to_contain_text("1 waiting · 0 running")
        expect(view).to_contain_text("2 in hand")
        arguments = view.get_by_text("order='A-1'")
        expect(arguments).to_be_visible()
        assert arguments.evaluate("one => one.clientHeight < 30 && one.scrollWidth > one.clientWidth")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert _contrast(page, ".grant .muted") > 4.5

        for button, then in (("Hand over", "recovered"), ("Cancel", "cancelled"), ("Resume", "waiting")):
            view.get_by_role("button", name=button).press("Enter")
            page.get_by_role("dialog", name=button).get_by_role("button", name=button).press("Enter")
            expect(view.locator(".status").filter(has_text=then)).to_have_count(1)

        view.get_by_text("any state").click()
        view.get_by_label("cancelled").check()
        expect(view).to_contain_text("There is no such work.")
        assert "state=cancelled" in page.url
        for view_of in ("#/activity", "#/timeline", "#/inbox", "#/work"):
            page.goto(f"http://127.0.0.1:{port}/{view_of}")
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), view_of


@dataclass
class Paused(Desk):
    """Durable work of one program, which waits for several answers."""

    asked: tuple[str, ...] = ()

    def works(
        self,
        states: Collection[str] = (),
        queue: str | None = None,
        limit: int = 50,
        start: int = 0,
        text: str | None = None,
    ) -> list[Any]:
        return [{**one, "kind": "program", "state": "suspended", "waits_for": self.asked} for one in super().works()]


@dataclass
class Crowd(Desk):
    """A thousand turns that wait for a person."""

    def works(
        self,
        states: Collection[str] = (),
        queue: str | None = None,
        limit: int = 50,
        start: int = 0,
        text: str | None = None,
    ) -> list[Any]:
        (one,) = super().works()
        ids = [n for n in range(1_000) if text is None or text in f"number {n}"][start : start + limit]
        return [
            {**one, "state": "suspended", "id": f"t{n}", "target": f"number {n}", "waits_for": (f"a{n}",)} for n in ids
        ]


def test_a_thousand_pieces_of_work_are_turned_over_to_the_last(path: Path, visit: Callable[..., Page]) -> None:
    app = console_app(sqlite_events(path), SqliteApprovalStore(path), ConsoleOptions(), Crowd())
    with serve_app(app) as port:
        page = visit(f"http://127.0.0.1:{port}/#/work")
        view = page.get_by_role("region", name="Durable work")
        expect(view.get_by_text("number 0", exact=True)).to_be_visible()
        expect(view.get_by_role("button", name="Newer")).to_have_count(0)
        for first in range(50, 1_000, 50):
            view.get_by_role("button", name="Older").click()
            expect(view.get_by_text(f"number {first}", exact=True)).to_be_visible()
        expect(view.get_by_text("number 999", exact=True)).to_be_visible()
        expect(view.get_by_role("button", name="Older")).to_have_count(0)
        view.get_by_role("button", name="Newer").click()

        expect(view.get_by_text("number 900", exact=True)).to_be_visible()


def test_work_is_looked_for_and_cancelled_all_at_once(path: Path, visit: Callable[..., Page]) -> None:
    crowd = Crowd()
    app = console_app(sqlite_events(path), SqliteApprovalStore(path), ConsoleOptions(), crowd)
    with serve_app(app) as port:
        page = visit(f"http://127.0.0.1:{port}/#/work")
        view = page.get_by_role("region", name="Durable work")
        view.get_by_label("Search ids, names, principals, keys").fill("number 99")
        view.get_by_label("All 11", exact=True).click()
        expect(view).to_contain_text("11 chosen")
        view.get_by_label("Choose number 99", exact=True).uncheck()
        view.locator(".bulk").get_by_role("button", name="Cancel").press("Enter")
        page.get_by_role("dialog", name="Cancel").get_by_role("button", name="Cancel").press("Enter")

        expect(page.get_by_text("10 done")).to_be_visible()
    assert crowd.done == [f"t{number}" for number in range(990, 1_000)]


def test_a_program_is_shown_with_every_request_that_it_waits_for(path: Path, visit: Callable[..., Page]) -> None:
    store = SqliteApprovalStore(path)
    asked = [ApprovalRequest(f"ask_{n}", f"c{n}", "refund", {"order": f"A{n}"}, "d") for n in (1, 2)]
    for request in asked:
        _elsewhere(store.put(request))
    app = console_app(sqlite_events(path), store, ConsoleOptions(), Paused(asked=tuple(one.id for one in asked)))
    with serve_app(app) as port:
        page = visit(f"http://127.0.0.1:{port}/#/work")
        page.get_by_role("button", name="Answer 2…").click()

        dialog = page.get_by_role("dialog", name="Request")
        expect(dialog).to_contain_text("A1")
        expect(dialog).to_contain_text("A2")


async def _suspended(path: Path, count: int) -> None:
    """Run so many turns until each of them has asked a person."""

    @tool(register=False, requires_approval=True)
    async def refund(order: str) -> str:
        """Pay money back."""
        return order

    name = f"desk_{uuid4().hex[:8]}"
    queue, asked = Queue(name, polling=0.02), SqliteApprovalStore(path)
    async with Client(path) as client:
        agent = DurableAgent(Agent(name, "Pays.", [refund]), queue, client=client)
        with client.engine.begin() as connection:  # one commit for all of them
            for number in range(count):
                turn = Turn(refund, kwargs={"order": f"A-{number:03}"})
                await agent.put(turn, attributes={"customer": f"c{number:03}"}, connection=connection)
    async with Engine(path, worker_id="w1", queues=[queue]):
        while len(await asked.list(pending=True)) < count:  # noqa: ASYNC110 -- the engine asks
            await asyncio.sleep(0.2)


@pytest.mark.systems  # it runs a thousand turns
@pytest.mark.timeout(600)
def test_a_thousand_turns_that_wait_for_a_person_are_found_answered_and_cancelled(
    path: Path, visit: Callable[..., Page]
) -> None:
    _elsewhere(_suspended(path, 1_000))
    client, store = Client(path), SqliteApprovalStore(path)
    app = console_app(sqlite_events(path), store, ConsoleOptions(), WorkOperator(client))
    with closing(client), serve_app(app) as port:
        page = visit(f"http://127.0.0.1:{port}/#/work?state=suspended")
        view = page.get_by_role("region", name="Durable work")
        expect(view.get_by_text(re.compile(r"^All 1\W000$"))).to_be_visible()
        rows, seen = view.locator("p.one-line"), set[str]()
        for number in range(20):
            if number:
                first = rows.first.inner_text()
                view.get_by_role("button", name="Older").press("Enter")  # workers above it move it under a pointer
                expect(rows.first).not_to_have_text(first)
            expect(rows).to_have_count(50)
            seen |= set(rows.all_inner_texts())
        expect(view.get_by_role("button", name="Older")).to_have_count(0)
        assert seen == {f"order='A-{number:03}'" for number in range(1_000)}

        search = view.get_by_label("Search ids, names, principals, keys")
        search.fill("customer=c123")
        expect(view.get_by_text("All 1", exact=True)).to_be_visible()
        view.get_by_role("button", name="Answer…").click()
        card = page.get_by_role("dialog", name="Request")
        card.get_by_role("button", name="Approve", exact=True).click()
        expect(card).to_contain_text("Approved by Ann (console)")
        page.keyboard.press("Escape")

        search.fill("customer=c99")
        view.get_by_label("All 10", exact=True).click()
        expect(view).to_contain_text("10 chosen")
        view.locator(".bulk").get_by_role("button", name="Cancel").press("Enter")
        page.get_by_role("dialog", name="Cancel").get_by_role("button", name="Cancel").press("Enter")
        expect(page.get_by_text("10 done")).to_be_visible()
        search.fill("")
        expect(view.get_by_text("All 990", exact=True)).to_be_visible()

    pending = {entry.request.arguments["order"] for entry in _elsewhere(store.list(pending=True))}
    assert pending == {f"A-{number:03}" for number in range(990) if number != 123}


class Paid(TypedDict):
    cents: int
    book: str


async def _doubted(path: Path) -> tuple[Any, Any]:
    """Begin a turn and a program, lose their worker, and return how they end with another of its name."""
    begun, both = list[int](), asyncio.Event()

    @tool(register=False)
    async def pay(cents: int) -> Paid:
        """Pay."""
        begun.append(cents)
        if len(begun) == 2:
            both.set()
        await asyncio.Event().wait()
        return {"cents": cents, "book": ""}

    name = f"desk_{uuid4().hex[:8]}"
    agent = DurableAgent(Agent(name, "Pays.", [pay]), Queue(name, polling=0.02))
    sandbox = FakeSandbox(("pay", {"cents": 3}))
    toolkit = DurableToolkit(Toolkit([pay], sandbox=sandbox), agent.queue, name=name)
    options: dict[str, Any] = {"worker_id": "w1", "queues": [agent.queue], "record": True, "answers": 0.02}
    async with asyncio.timeout(60):
        async with Engine(path, grace=0, **options):
            turn = await agent.put(Turn(pay, kwargs={"cents": 5}))
            await toolkit.start("pay(3)", placement=Placement("program"))
            await both.wait()
        async with Engine(path, **options) as engine:
            program = DurableProgram("program", engine.client)
            return await agent.handle(turn.id).outcome(through=True), await program.result(polling=0.02)


def test_a_turn_and_a_program_in_doubt_go_on_with_the_results_that_a_person_gives(
    path: Path, visit: Callable[..., Page]
) -> None:
    client = Client(path)
    app = console_app(sqlite_events(path), SqliteApprovalStore(path), ConsoleOptions(), WorkOperator(client))
    with closing(client), serve_app(app) as port, ThreadPoolExecutor(1) as thread:
        work = thread.submit(run_sync, _doubted(path))
        page = visit(f"http://127.0.0.1:{port}/#/work")
        view = page.get_by_role("region", name="Durable work")
        expect(view.locator(".status").filter(has_text="in doubt")).to_have_count(2)
        for kind, cents in (("turn", "5"), ("program", "3")):
            row = view.get_by_role("listitem").filter(has=page.locator(".kind").get_by_text(kind))
            row.get_by_role("button", name="Answer…").click()
            card = page.get_by_role("dialog", name="Request")
            for button in ("Do it", "It must not be done…"):
                expect(card.get_by_role("button", name=button)).to_be_visible()
            card.get_by_role("button", name=f"{WAS_DONE}…").click()
            card.get_by_label("cents").fill("five")
            card.get_by_label("book").fill("by hand")
            card.get_by_role("button", name=WAS_DONE, exact=True).click()
            expect(card.get_by_role("alert")).to_contain_text("cents")
            card.get_by_label("cents").fill(cents)
            card.get_by_role("button", name=WAS_DONE, exact=True).click()
            expect(card).to_contain_text("Said to be done by Ann (console)")
            page.keyboard.press("Escape")
        turn, program = work.result()

    assert turn.value == {"cents": 5, "book": "by hand"}
    assert program.return_value == {"cents": 3, "book": "by hand"}


async def _added(path: Path, forked: threading.Event) -> list[int]:
    """Run a program of three calls, have a person fork it, and return what was added, in order."""
    added = list[int]()

    @tool(register=False)
    async def add(left: int) -> int:
        """Add."""
        added.append(left)
        return left

    queue = Queue(f"desk_{uuid4().hex[:8]}", polling=0.02)
    sandbox = FakeSandbox(*(("add", {"left": number}) for number in (1, 2, 3)))
    toolkit = DurableToolkit(Toolkit([add], sandbox=sandbox), queue, name="sums")
    async with asyncio.timeout(90), Engine(path, worker_id="w1", queues=[queue], answers=0.02) as engine:
        await (await toolkit.start("...", placement=Placement("sums"))).result(polling=0.02)
        await asyncio.to_thread(forked.wait)
        await DurableProgram("again", engine.client).result(polling=0.02)
    return added


def test_a_program_is_forked_from_its_second_call(path: Path, visit: Callable[..., Page]) -> None:
    client = Client(path)
    app = console_app(sqlite_events(path), SqliteApprovalStore(path), ConsoleOptions(), WorkOperator(client))
    with closing(client), serve_app(app) as port, ThreadPoolExecutor(1) as thread:
        forked = threading.Event()
        work = thread.submit(run_sync, _added(path, forked))
        page = visit(f"http://127.0.0.1:{port}/#/work", width=390)
        view = page.get_by_role("region", name="Durable work")
        expect(view.locator(".status").filter(has_text="done")).to_have_count(1)
        view.get_by_role("button", name="Fork…").press("Enter")
        dialog = page.get_by_role("dialog", name="Fork")
        step = dialog.get_by_label("The first call to be made again")
        expect(step.locator("option")).to_have_text(["1 add: ended", "2 add: ended", "3 add: ended"])
        step.select_option("2")
        dialog.get_by_label("The id of the new work").fill("sums")
        dialog.get_by_role("button", name="Fork").press("Enter")
        expect(dialog.get_by_role("alert")).to_have_text("other work has the id sums; a fork needs one of its own")
        dialog.get_by_label("The id of the new work").fill("again")
        dialog.get_by_role("button", name="Fork").press("Enter")

        expect(dialog).to_have_count(0)
        forked.set()
        expect(view.locator(".status").filter(has_text="done")).to_have_count(2)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    assert work.result() == [1, 2, 3, 2, 3]


def _log_in(page: Page, name: str) -> None:
    """Log in at the provider of the tests."""
    page.get_by_role("link", name="Log in with your account").click()
    page.locator("[name=login]").fill(name)
    page.locator("[name=password]").fill("any")
    page.get_by_role("button").click()
    page.get_by_role("button", name="Continue").click()


def test_people_log_in_at_their_provider_and_answer_as_its_login_says(path: Path, visit: Callable[..., Page]) -> None:
    _elsewhere(_ask_many(path, 2))
    address = f"http://127.0.0.1:{free_port()}"
    with provider_of(free_port(), f"{address}/login/back") as provider:
        login = OpenIDLogin(provider, address, approvers=["finance"])
        with serving(path, ConsoleOptions(login=login), urlsplit(address).port or 0):
            page = visit(address, name="")
            expect(page.get_by_label("Token")).to_have_count(0)
            picture(page, "console-login.png", height=300)
            _log_in(page, "bob")

            page.get_by_role("link", name="refund").click()
            request_card(page).get_by_role("button", name="Approve").click()

            expect(request_card(page)).to_contain_text("Approved by bob@example.org (openid)")
            page.get_by_role("button", name="Log out").click()
            expect(page.get_by_role("link", name="Log in with your account")).to_be_visible()


def test_of_people_with_three_roles_one_answers_and_the_others_see_why_they_do_not(
    path: Path, visit: Callable[..., Page]
) -> None:
    arguments = {"order": "A-1007", "euros": 1200}
    request = ApprovalRequest("ask_1", "c1", "refund", arguments, "d", "the order came broken", required=(REFUNDS,))
    _elsewhere(SqliteApprovalStore(path).put(request))
    address = f"http://127.0.0.1:{free_port()}"
    with provider_of(free_port(), f"{address}/login/back") as provider:
        login = OpenIDLogin(provider, address, approvers=["finance", "staff"], viewers=["auditors"])
        with serving(path, ConsoleOptions(login=login), urlsplit(address).port or 0):
            pages = {name: visit(f"{address}/#/inbox/ask_1", name="") for name in ("bob", "sam", "vic")}
            for name, page in pages.items():
                _log_in(page, name)
                page.goto(f"{address}/#/inbox/ask_1")
            cards = {name: request_card(page) for name, page in pages.items()}
            expect(cards["vic"]).to_contain_text("You may look here, and answer nothing.")
            expect(cards["vic"].get_by_role("button")).to_have_count(0)
            cards["sam"].get_by_role("button", name="Approve").click()
            expect(cards["sam"].get_by_role("alert")).to_contain_text("finance")
            expect(cards["sam"].get_by_role("button", name="Deny…")).to_be_enabled()
            picture(pages["sam"], "console-roles.png", height=570)

            cards["bob"].get_by_role("button", name="Approve").click()

            for name in ("bob", "vic"):
                expect(cards[name]).to_contain_text("Approved by bob@example.org (openid)")


def test_a_viewer_sees_a_request_and_cannot_answer_it(path: Path, visit: Callable[..., Page]) -> None:
    _elsewhere(_ask_many(path, 2))
    options = ConsoleOptions(tokens={"vic": TOKEN}, viewers=frozenset({"vic"}))
    with serving(path, options) as console:
        page = visit(console.url, name="")
        page.get_by_label("Token").fill(TOKEN)
        page.keyboard.press("Enter")
        page.get_by_role("link", name="refund").click()

        expect(request_card(page)).to_contain_text("You may look here, and answer nothing.")
        expect(request_card(page).get_by_role("button")).to_have_count(0)
        expect(page.locator(".bulk")).to_be_hidden()
        page.get_by_role("button", name="Log out").click()
        expect(page.get_by_label("Token")).to_be_visible()


def test_an_administrator_ends_the_sessions_of_a_person(path: Path, visit: Callable[..., Page]) -> None:
    tokens = {"ann": TOKEN, "ben": f"{TOKEN}-of-ben"}
    with serving(path, ConsoleOptions(tokens=tokens, administrators=frozenset({"ann"}))) as console:
        pages = {name: visit(console.url, name="") for name in tokens}
        for name, page in pages.items():
            page.get_by_label("Token").fill(tokens[name])
            page.keyboard.press("Enter")
            expect(page.get_by_role("button", name="Log out")).to_be_visible()
        ann, dialog = pages["ann"], pages["ann"].get_by_role("dialog")
        expect(pages["ben"].get_by_role("button", name="End sessions…")).to_be_hidden()

        ann.get_by_role("button", name="End sessions…").click()
        dialog.get_by_role("textbox").fill("kim")
        ann.keyboard.press("Enter")
        expect(dialog.get_by_role("alert")).to_contain_text("there is no token and no session of this person")
        dialog.get_by_role("textbox").fill("ben")
        ann.keyboard.press("Enter")

        expect(ann.locator("#toast")).to_contain_text("The sessions of ben have ended.")
        expect(pages["ben"].get_by_label("Token")).to_be_visible()
        expect(ann.get_by_role("button", name="Log out")).to_be_visible()


# --- the documentation


@pytest.mark.parametrize(
    "name",
    sorted({found for page in PICTURES.parent.glob("*.md") for found in _SHOWN.findall(page.read_text("utf-8"))}),
)
def test_the_documentation_has_its_pictures(name: str) -> None:
    data = (PICTURES / name).read_bytes()

    assert data.startswith(b"\x89PNG")
    assert 10_000 < len(data) < 400_000
