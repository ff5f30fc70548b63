"""Login of the console with OpenID Connect, at a provider of npm: who comes in, as what, and for how long."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urljoin, urlsplit

import httpx2
import pytest

from tests.console.conftest import Console, serving
from tests.console.provider import SECRET, provider_of
from tests.networks import free_port
from toolcrib.approvals import SqliteApprovalStore
from toolcrib.calls import ApprovalRequest, Grant, RequiredApprovers
from toolcrib.console import ConsoleOptions
from toolcrib.console.openid import OpenIDLogin, OpenIDProvider, load_login
from toolcrib.serving import claimed_groups
from toolcrib.serving.oauth import OpenIDClient
from toolcrib.testing import FakeClock

RULED = ApprovalRequest(
    "ask_1",
    "call_1",
    "refund",
    {"cents": 5},
    "d5",
    principal="ada@example.org",
    required=(RequiredApprovers("refunds", {"finance": 1}, from_login=("finance",), excluded=("ada@example.org",)),),
)


@dataclass
class Desk:
    """A console whose people log in at a provider."""

    console: Console
    provider: OpenIDProvider
    clock: FakeClock
    store: SqliteApprovalStore
    stack: ExitStack

    def browser(self, **options: Any) -> httpx2.Client:
        return self.stack.enter_context(httpx2.Client(follow_redirects=False, **options))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.console.port}"


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    path, clock = tmp_path_factory.mktemp("openid") / "toolcrib.db", FakeClock()
    port, address = free_port(), f"http://127.0.0.1:{free_port()}"
    with ExitStack() as stack:
        provider = stack.enter_context(provider_of(port, f"{address}/login/back"))
        login = OpenIDLogin(
            provider,
            address,
            approvers=["finance"],
            viewers=["auditors"],
            administrators=["admins"],
            lasts=timedelta(hours=2),
            clock=clock.monotonic,
        )
        console = stack.enter_context(serving(path, ConsoleOptions(login=login), urlsplit(address).port or 0))
        yield Desk(console, provider, clock, SqliteApprovalStore(path), stack)


def left_for(desk: Desk, name: str) -> tuple[httpx2.Client, str]:
    """Log in at the provider; return the browser, and where it is sent back to."""
    browser = desk.browser()
    reply = browser.get(f"{desk.url}/login/start")
    assert reply.status_code == 303
    return browser, agreed(desk, browser, reply.headers["location"], name)


def agreed(desk: Desk, browser: httpx2.Client, at: str, name: str) -> str:
    """Go through the provider's pages, from one on; return where they lead back to."""
    while not at.startswith(desk.url):
        reply = browser.get(at)
        while reply.status_code == 200:  # the page of the login, then that of the consent
            action = re.search(r'action="([^"]+)"', reply.text)
            prompt = re.search(r'name="prompt" value="([^"]+)"', reply.text)
            assert action is not None
            assert prompt is not None
            form = {"prompt": prompt[1], "login": name, "password": "any"}
            reply = browser.post(urljoin(at, html.unescape(action[1])), data=form)
        at = urljoin(at, reply.headers["location"])
    return at


def logged_in(desk: Desk, name: str) -> httpx2.Client:
    browser, back = left_for(desk, name)
    reply = browser.get(back)
    assert (reply.status_code, reply.headers["location"]) == (303, f"{desk.url}/"), reply.text
    return browser


def answer(desk: Desk, browser: httpx2.Client, request: str = "ask_1", **headers: str) -> httpx2.Response:
    state = browser.get(f"{desk.url}/api/state").json()
    sent = {"request": request, "answer": "approve", "name": "somebody else"}
    return browser.post(f"{desk.url}/api/answer", json=sent, headers={"x-toolcrib-csrf": state["csrf"], **headers})


async def test_a_person_of_the_group_logs_in_and_answers_as_the_login_says(desk: Desk) -> None:
    await desk.store.put(RULED)
    bob = logged_in(desk, "bob")

    state = bob.get(f"{desk.url}/api/state").json()
    reply = answer(desk, bob)

    assert (state["name"], state["role"], state["token"]) == ("bob@example.org", "approver", True)
    assert reply.status_code == 200, reply.text
    kept = (await desk.store.show("ask_1")).answer
    assert isinstance(kept, Grant)
    assert kept.identity is not None
    assert (kept.by, kept.identity.groups) == ("bob@example.org (openid)", ("finance", "staff"))
    assert kept.identity.until is not None


async def test_who_asked_does_not_answer_and_who_looks_answers_nothing(desk: Desk) -> None:
    await desk.store.put(
        replace(RULED, id="ask_own", call_id="c", required=(replace(RULED.required[0], excluded=("BOB@example.org",)),))
    )

    own = answer(desk, logged_in(desk, "bob"), "ask_own")
    vic = logged_in(desk, "vic")
    looks, role = answer(desk, vic, "ask_own"), vic.get(f"{desk.url}/api/state").json()["role"]

    assert (own.status_code, looks.status_code, role) == (409, 403, "viewer")
    assert "does not meet the rule refunds" in own.json()["error"]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (
            "eve",
            "the claim email_verified of the token is not true: have the provider verify the address, or name another "
            "claim as principal_claim (a gateway) or id_claim (a console)",
        ),
        ("out", "out@example.org is in no group that this console lets in"),
    ],
)
def test_who_is_not_let_in_is_told_why_and_gets_no_session(desk: Desk, name: str, why: str) -> None:
    browser, back = left_for(desk, name)

    reply = browser.get(back)

    assert (reply.status_code, reply.text) == (403, f"You are not logged in: {why}.")
    assert browser.get(f"{desk.url}/api/state").status_code == 401


def test_an_answer_is_taken_once_and_from_the_browser_that_began_the_login(desk: Desk) -> None:
    browser, back = left_for(desk, "bob")
    stranger = desk.browser().get(back)
    _, other_back = left_for(desk, "vic")
    swapped = browser.get(other_back)
    again = browser.get(back)

    for reply in (stranger, swapped, again):
        assert reply.status_code == 403
        assert "set-cookie" not in reply.headers
    assert "this browser began no login here" in stranger.text
    assert "the answer belongs to another login" in swapped.text


@pytest.mark.parametrize(
    "change",
    [
        {"state": "guess"},
        {"code": "guess"},
        {"iss": "https://evil.example"},
        {"iss": None},
        {"code": None, "error": "access_denied"},
        {"code": None},
    ],
)
def test_an_answer_that_was_changed_begins_no_session(desk: Desk, change: dict[str, str | None]) -> None:
    browser, back = left_for(desk, "bob")
    query = {name: values[0] for name, values in parse_qs(urlsplit(back).query).items()} | change

    reply = browser.get(
        f"{desk.url}/login/back", params={name: value for name, value in query.items() if value is not None}
    )

    assert reply.status_code == 403
    assert browser.get(f"{desk.url}/api/state").status_code == 401


def test_a_session_ends_when_its_person_logs_out_and_when_its_time_is_over(desk: Desk) -> None:
    first, second = logged_in(desk, "bob"), logged_in(desk, "bob")
    cookie = {one.name: one.value or "" for one in first.cookies.jar if one.name.startswith("toolcrib_")}
    csrf = first.get(f"{desk.url}/api/state").json()["csrf"]

    first.post(f"{desk.url}/api/logout", json={}, headers={"x-toolcrib-csrf": csrf})
    stolen = desk.browser(cookies=cookie).get(f"{desk.url}/api/state")
    before = second.get(f"{desk.url}/api/state")
    desk.clock.advance(2 * 3600 + 1)
    after = second.get(f"{desk.url}/api/state")

    assert [reply.status_code for reply in (stolen, before, after)] == [401, 200, 401]
    assert after.json()["code"] == "login"


@pytest.mark.parametrize("id", ["bob@example.org", "bob;iss={issuer}"], ids=["claim", "subject"])
def test_an_administrator_ends_the_sessions_of_a_person(desk: Desk, id: str) -> None:
    bob, again, vic, adm = [logged_in(desk, name) for name in ("bob", "bob", "vic", "adm")]
    sent = {"person": id.format(issuer=quote(desk.provider.issuer, "@:.+ /"))}

    def end(browser: httpx2.Client) -> int:
        csrf = browser.get(f"{desk.url}/api/state").json()["csrf"]
        return browser.post(f"{desk.url}/api/sessions/end", json=sent, headers={"x-toolcrib-csrf": csrf}).status_code

    refused = [end(vic), end(bob)]
    done = [end(adm), end(adm)]

    assert (refused, done) == ([403, 403], [200, 404])
    assert [one.get(f"{desk.url}/api/state").status_code for one in (bob, again, vic, adm)] == [401, 401, 200, 200]


def test_a_login_that_takes_too_long_is_begun_anew(desk: Desk) -> None:
    browser, back = left_for(desk, "bob")

    desk.clock.advance(601)

    assert browser.get(back).status_code == 403


@pytest.mark.parametrize(("client", "status"), [("console", 200), ("other", 401)])
async def test_a_program_sends_an_id_token_that_is_for_this_console(desk: Desk, client: str, status: int) -> None:
    token, access = await tokens_of(desk, client)

    replies = [
        httpx2.get(f"{desk.url}/api/state", headers={"authorization": f"Bearer {sent}"})
        for sent in (token, access, f"{token[:-8]}AAAAAAAA", "x" * 40)
    ]

    assert [reply.status_code for reply in replies] == [status, 401, 401, 401]


async def test_a_program_answers_by_the_id_token_of_a_person(desk: Desk) -> None:
    await desk.store.put(replace(RULED, id="ask_token", call_id="call_token"))
    token, _ = await tokens_of(desk, "console")

    headers = {"authorization": f"Bearer {token}"}
    sent = {"request": "ask_token", "answer": "approve"}
    reply = httpx2.post(f"{desk.url}/api/answer", json=sent, headers=headers)

    assert reply.status_code == 200, reply.text
    assert reply.json()["answer"]["by"] == "bob@example.org (openid)"


async def tokens_of(desk: Desk, client: str) -> tuple[str, str]:
    """Return the tokens that a client of the provider gets for bob: that of his identity, and that of access."""
    application = OpenIDClient(replace(desk.provider, client_id=client))
    departure = await application.depart(f"{desk.url}/login/back")
    at = agreed(desk, desk.browser(), departure.url, "bob")
    await application.close()
    form = {
        "grant_type": "authorization_code",
        "code": parse_qs(urlsplit(at).query)["code"][0],
        "redirect_uri": departure.back,
        "code_verifier": departure.verifier,
    }
    found = httpx2.post(f"{desk.provider.issuer}/token", data=form, auth=(client, SECRET)).json()
    return found["id_token"], found["access_token"]


# --- options


def test_a_console_with_a_login_may_be_reached_by_other_machines(desk: Desk) -> None:
    login = OpenIDLogin(desk.provider, "https://console.example.org", approvers=["finance"])

    assert not ConsoleOptions("0.0.0.0", login=login).is_open


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"approvers": "finance"}, "approvers is a list of groups"),
        ({"approvers": []}, "name the groups that may come in"),
        ({"approvers": ["x"], "lasts": timedelta(0)}, "lasts must be more than no time"),
    ],
)
def test_a_login_that_nobody_could_use_is_refused(wrong: dict[str, Any], problem: str) -> None:
    provider = OpenIDProvider("https://login.example.org", "console")

    with pytest.raises((TypeError, ValueError), match=problem):
        OpenIDLogin(provider, "https://console.example.org", **wrong)


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"issuer": "http://login.example.org"}, "issuer must begin with https://"),
        ({"client_id": ""}, "client_id is empty"),
        ({"scopes": ["profile"]}, "scopes must be a list with `openid`"),
        ({"algorithms": ["HS256"]}, "no secret is shared"),
        ({"client_auth": "none"}, "client_auth is 'none'; give one of 'basic', 'post'"),
    ],
)
def test_a_provider_that_is_none_is_refused(wrong: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        OpenIDProvider(**{"issuer": "https://login.example.org", "client_id": "console", **wrong})


FILE = """
issuer = "https://login.example.org"
client_id = "console"
client_secret_env = "CONSOLE_SECRET"
address = "https://console.example.org/"
id_claim = "email"
groups_claim = "realm_access.roles"
approvers = ["finance"]
hours = 4
"""


def test_a_file_describes_a_login(tmp_path: Path) -> None:
    path = tmp_path / "login.toml"
    path.write_text(FILE)

    login = load_login(path, {"CONSOLE_SECRET": "secret"})

    assert login.provider == OpenIDProvider(
        "https://login.example.org",
        "console",
        "secret",
        scopes=["openid", "profile", "email"],
        id_claim="email",
        groups_claim="realm_access.roles",
    )
    assert login.address == "https://console.example.org"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (FILE, "the environment variable CONSOLE_SECRET is not set"),
        (FILE.replace("approvers", "approver"), "`approvers`: field required"),
        (FILE.replace("4", '"4"'), "`hours`: input should be a valid number"),
        (FILE.replace("https://login", "http://login"), "issuer must begin with https://"),
        ("issuer = ", "login.toml: "),
    ],
)
def test_a_file_of_a_login_that_is_wrong_is_named(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "login.toml"
    path.write_text(text.replace('client_secret_env = "CONSOLE_SECRET"\n', "") if "http://" in text else text)

    with pytest.raises(ValueError, match=problem):
        load_login(path, {})


def test_groups_are_a_list_a_text_or_a_part_of_a_claim() -> None:
    claims = {"groups": ["a", 3, "", "b"], "role": "c", "realm": {"roles": ["d"]}, "x.y": ["e"], "realm.roles": None}

    found = [
        claimed_groups(claims, name) for name in ("groups", "role", "realm.roles", "x.y", "gone", "realm.gone.more")
    ]

    assert found == [("a", "b"), ("c",), ("d",), ("e",), (), ()]
