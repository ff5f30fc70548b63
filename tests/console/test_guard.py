"""Who is let in, from where, and what a browser is told about every reply."""

from __future__ import annotations

import http.client
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Mount

from tests.console.conftest import Console, serve_app
from tests.networks import free_port
from tests.nginx import needs_nginx, nginx
from toolcrib.approvals import SqliteApprovalStore
from toolcrib.calls import ApprovalRequest, Delegation, Identity, RequiredApprovers, now
from toolcrib.console import ConsoleOptions, console_app
from toolcrib.console._guard import Guard, LoginLimit, Sessions, Visitor, _signature  # pyright: ignore[reportPrivateUsage] -- what a forger lacks
from toolcrib.record import sqlite_events

TOKEN = "0123456789abcdef-token"
REQUEST = ApprovalRequest("ask_1", "call_1", "refund", {"cents": 5}, "d5")

Serve = Callable[[ConsoleOptions], Console]


@pytest.fixture(scope="module")
def held(guarded: Serve) -> Console:
    """A console that asks for a token."""
    return guarded(ConsoleOptions(tokens={"": TOKEN}))


@pytest.mark.parametrize("path", ["/", "/main.js", "/console.css", "/api/state", "/api/nothing", "/nothing"])
def test_every_reply_says_what_a_browser_may_do_with_it(console: Console, path: str) -> None:
    headers = console.get(path).headers

    assert "default-src 'none'; script-src 'self'; style-src 'self'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "192.168.0.7", "", "127.0.0.1.nip.io"])
def test_a_name_that_only_leads_here_is_refused(console: Console, host: str) -> None:
    assert console.get("/api/state", host=host).status in (400, 421)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9", "127.0.0.1:80", "[::1]:8137"])
def test_the_names_of_this_machine_are_taken(console: Console, host: str) -> None:
    assert console.get("/api/state", host=host).status == 200


def test_a_further_name_has_to_be_allowed(guarded: Serve) -> None:
    console = guarded(ConsoleOptions(allowed_hosts=("Console.Example",)))

    assert console.get("/api/state", host="console.example").status == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "http://[", "file://"])
async def test_another_pages_change_is_refused(console: Console, origin: str) -> None:
    await console.store.put(REQUEST)

    reply = console.post("/api/answer", {"request": "ask_1", "answer": "approve", "name": "eve"}, origin=origin)

    assert (reply.status, reply.json["code"]) == (403, "origin")
    assert (await console.store.show("ask_1")).answer is None


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_browser_that_says_where_the_page_is_from_is_believed(console: Console, site: str) -> None:
    reply = console.post("/api/answer", {}, sec_fetch_site=site)

    assert (reply.status, reply.json["code"]) == (403, "origin")


@pytest.mark.parametrize("csrf", [None, "", "guess"])
async def test_a_change_needs_what_only_the_page_knows(console: Console, csrf: str | None) -> None:
    await console.store.put(REQUEST)

    sent = {"request": "ask_1", "answer": "approve", "name": "eve"}
    reply = console.post("/api/answer", sent, x_toolcrib_csrf=csrf)

    assert (reply.status, reply.json["code"]) == (403, "csrf")
    assert (await console.store.show("ask_1")).answer is None


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", None])
def test_what_a_plain_form_can_send_is_refused(console: Console, kind: str | None) -> None:
    assert console.post("/api/answer", {}, content_type=kind).status == 415


def test_a_request_without_an_end_is_refused(console: Console) -> None:
    csrf = console.get("/api/state").json["csrf"]
    headers = {"content-type": "application/json", "x-toolcrib-csrf": csrf, "transfer-encoding": "chunked"}

    with closing(http.client.HTTPConnection("127.0.0.1", console.port, timeout=60)) as connection:
        connection.putrequest("POST", "/api/answer")
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders()  # nothing follows, which could meet a connection that is closed already

        assert connection.getresponse().status == 413


@pytest.mark.parametrize(
    "path", ["/api/state", "/api/activities", "/api/inbox", "/api/stream", "/api/value?request=ask_1&path=arguments"]
)
def test_nothing_is_told_without_the_token(held: Console, path: str) -> None:
    reply = held.get(path)

    assert (reply.status, reply.json["code"]) == (401, "token")


async def test_nothing_is_changed_without_the_token(held: Console) -> None:
    await held.store.put(REQUEST)

    sent = {"request": "ask_1", "answer": "approve", "name": "eve"}
    reply = held.post("/api/answer", sent, x_toolcrib_csrf="", authorization="Bearer guess")

    assert reply.status == 401
    assert (await held.store.show("ask_1")).answer is None


def test_nothing_is_told_without_the_token_where_it_is_mounted(tmp_path: Path) -> None:
    path = tmp_path / "toolcrib.db"
    app = console_app(sqlite_events(path), SqliteApprovalStore(path), ConsoleOptions(tokens={"": TOKEN}))
    with serve_app(app, inside=Starlette(routes=[Mount("/console", app=app)])) as port:
        mounted = Console(port)
        told = {where: mounted.get(f"/console{where}").status for where in ("/main.js", "/api/inbox", "/nothing")}
        changed = mounted.post("/console/api/revoke", {"grant": {}}, x_toolcrib_csrf="")
        let_in = mounted.get("/console/api/inbox", authorization=f"Bearer {TOKEN}")

    assert told == {"/main.js": 200, "/api/inbox": 401, "/nothing": 401}
    assert (changed.status, let_in.status) == (401, 200)


def test_the_page_itself_is_for_everybody(held: Console) -> None:
    assert held.get("/").status == held.get("/main.js").status == 200


def test_logging_in_gives_a_cookie_that_is_not_the_token(held: Console) -> None:
    reply = held.post("/api/login", {"token": TOKEN}, x_toolcrib_csrf=None)

    cookie = reply.headers["set-cookie"]
    assert reply.status == 200
    assert TOKEN not in cookie
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert held.get("/api/state", cookie=cookie.partition(";")[0]).status == 200


@pytest.mark.parametrize("token", ["", TOKEN[:-1], 5, "ü"])
def test_a_wrong_token_is_no_login(held: Console, token: object) -> None:
    reply = held.post("/api/login", {"token": token}, x_toolcrib_csrf=None)

    assert reply.status == 401
    assert "set-cookie" not in reply.headers


def test_logging_out_ends_that_login_and_no_other(held: Console) -> None:
    first, second = [
        held.post("/api/login", {"token": TOKEN}, x_toolcrib_csrf=None).headers["set-cookie"].partition(";")[0]
        for _ in range(2)
    ]
    csrf = held.get("/api/state", cookie=first).json["csrf"]

    assert held.post("/api/logout", {}, x_toolcrib_csrf=csrf, cookie=first).status == 200

    assert [held.get("/api/state", cookie=cookie).status for cookie in (first, second)] == [401, 200]


def test_a_login_outlives_a_restart_but_not_its_week_or_its_token() -> None:
    options = ConsoleOptions(tokens={"ann": TOKEN})
    session = Sessions(options).begin("ann")
    name, until, signature = session.split(".")

    assert Sessions(options).holder(session) == "ann"
    assert Sessions(ConsoleOptions(tokens={"ann": TOKEN[::-1]})).holder(session) is None
    assert Sessions(options).holder(f"{name}.{int(until) + 1}.{signature}") is None
    over = f"{name}.1"
    assert Sessions(options).holder(f"{over}.{_signature(TOKEN, over)}") is None


_COOKIE = ConsoleOptions(tokens={"": TOKEN}).cookie


@pytest.mark.parametrize("cookie", ["x=y", f"{_COOKIE}=", f"{_COOKIE}={TOKEN}", f"{_COOKIE}={'0' * 64}", "=;=,", '"'])
def test_a_made_up_cookie_is_no_login(held: Console, cookie: str) -> None:
    assert held.get("/api/state", cookie=cookie).status == 401


def test_a_login_page_of_somebody_elses_is_refused(held: Console) -> None:
    sent = {"token": TOKEN}

    assert held.post("/api/login", sent, x_toolcrib_csrf=None, origin="http://evil.example").status == 403


def test_a_cookie_alone_changes_nothing(held: Console) -> None:
    cookie = held.post("/api/login", {"token": TOKEN}, x_toolcrib_csrf=None).headers["set-cookie"].partition(";")[0]

    assert held.post("/api/answer", {}, x_toolcrib_csrf=None, cookie=cookie).json["code"] == "csrf"


async def test_a_token_in_a_header_is_enough_for_a_script(guarded: Serve) -> None:
    console = guarded(ConsoleOptions(tokens={"ann": TOKEN, "ben": TOKEN[::-1]}))
    await console.store.put(REQUEST)

    sent = {"request": "ask_1", "answer": "approve", "name": "somebody else"}
    reply = console.post("/api/answer", sent, x_toolcrib_csrf=None, authorization=f"Bearer {TOKEN}")

    assert reply.status == 200
    answer = (await console.store.show("ask_1")).answer
    assert answer is not None
    assert answer.by == "ann (console)"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "console.example"])
def test_beyond_this_machine_there_has_to_be_a_token(host: str) -> None:
    with pytest.raises(ValueError, match="give a token"):
        ConsoleOptions(host=host)

    assert ConsoleOptions(host=host, tokens={"": TOKEN}).host == host


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.8.9.1"])
def test_on_this_machine_none_is_needed(host: str) -> None:
    assert ConsoleOptions(host=host).host == host


@pytest.mark.parametrize("token", ["", "short", "with spaces in between", "ümläut-token-is-long"])
def test_a_token_that_is_no_secret_is_refused(token: str) -> None:
    with pytest.raises(ValueError, match="at least 16 characters"):
        ConsoleOptions(tokens={"ann": token})


def test_tokens_do_not_show_in_a_log() -> None:
    assert TOKEN not in repr(ConsoleOptions(tokens={"ann": TOKEN}))


# --- roles, tries, logging out


def _login(console: Console, token: str = TOKEN) -> dict[str, str | None]:
    """Return the headers of a browser that has logged in."""
    reply = console.post("/api/login", {"token": token}, x_toolcrib_csrf=None)
    cookie = reply.headers["set-cookie"].partition(";")[0]
    return {"cookie": cookie, "x_toolcrib_csrf": console.get("/api/state", cookie=cookie).json["csrf"]}


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("/api/answer", {"request": "ask_1", "answer": "approve"}),
        ("/api/answers", {"requests": ["ask_1"], "answer": "approve"}),
        ("/api/revoke", {"grant": {}}),
        ("/api/work/cancel", {"id": "x"}),
        ("/api/anything", {}),
    ],
)
@pytest.mark.parametrize("by_header", [True, False])
async def test_a_viewer_looks_and_changes_nothing(guarded: Serve, path: str, sent: Any, by_header: bool) -> None:
    options = ConsoleOptions(tokens={"vic": TOKEN, "ann": TOKEN[::-1]}, viewers=frozenset({"vic"}))
    console = guarded(options)
    await console.store.put(REQUEST)
    bearer = {"authorization": f"Bearer {TOKEN}", "x_toolcrib_csrf": None}

    reply = console.post(path, sent, **(bearer if by_header else _login(console)))

    assert (reply.status, reply.json["code"]) == (403, "role")
    assert (await console.store.show("ask_1")).answer is None
    state = console.get("/api/state", authorization=f"Bearer {TOKEN}").json
    assert (state["name"], state["role"]) == ("vic", "viewer")
    assert console.get("/api/inbox", authorization=f"Bearer {TOKEN}").json["total"] == 1
    assert (
        console.post("/api/answer", {"request": "ask_1", "answer": "approve"}, **_login(console, TOKEN[::-1])).status
        == 200
    )


@pytest.mark.parametrize("kind", ["viewers", "administrators"])
def test_a_viewer_or_administrator_without_a_token_is_refused(kind: str) -> None:
    roles: dict[str, Any] = {kind: frozenset({"vic"})}

    with pytest.raises(ValueError, match="no token belongs to vic"):
        ConsoleOptions(tokens={"ann": TOKEN}, **roles)


@pytest.mark.parametrize(("hours", "valid"), [(1, True), (-1, False)])
def test_the_stream_of_a_program_ends_with_its_id_token(hours: int, valid: bool) -> None:
    login = Identity("ann", "openid", until=now() + timedelta(hours=hours))
    guard = Guard(Response(), ConsoleOptions(tokens={"ben": TOKEN}), ())

    assert guard.is_valid(Visitor("ann", by_header=True, identity=login)) is valid


def test_nobody_is_a_viewer_and_an_administrator() -> None:
    with pytest.raises(ValueError, match="ann is a viewer and an administrator"):
        ConsoleOptions(tokens={"ann": TOKEN}, viewers=frozenset({"ann"}), administrators=frozenset({"ann"}))


def test_an_administrator_ends_all_sessions_of_a_person_and_of_nobody_else(guarded: Serve) -> None:
    tokens = {"ann": TOKEN, "ben": f"{TOKEN}-of-ben", "cid": f"{TOKEN}-of-cid"}
    console = guarded(ConsoleOptions(tokens=tokens, administrators=frozenset({"ann"})))
    cookies = [_login(console, tokens[name])["cookie"] for name in ("ben", "ben", "cid")]
    ann, ben = ({"authorization": f"Bearer {tokens[name]}", "x_toolcrib_csrf": None} for name in ("ann", "ben"))

    by_ben = console.post("/api/sessions/end", {"person": "cid"}, **ben)
    nobody = console.post("/api/sessions/end", {"person": "kim"}, **ann)
    before = [console.get("/api/state", cookie=cookie).status for cookie in cookies]
    ended = console.post("/api/sessions/end", {"person": "ben"}, **ann)

    assert (by_ben.status, nobody.status, before, ended.status) == (403, 404, [200, 200, 200], 200)
    assert [console.get("/api/state", cookie=cookie).status for cookie in cookies] == [401, 401, 200]
    assert console.get("/api/state", cookie=_login(console, tokens["ben"])["cookie"]).status == 200


@pytest.mark.parametrize("by_header", [True, False])
def test_wrong_tokens_are_few_and_logged(guarded: Serve, by_header: bool, caplog: pytest.LogCaptureFixture) -> None:
    console = guarded(ConsoleOptions(tokens={"ann": TOKEN}))
    inside = _login(console)

    with caplog.at_level("WARNING", "toolcrib.console"):
        statuses = [_tried(console, "wrong", by_header) for _ in range(11)]

    assert statuses == [401] * 10 + [429]
    assert _tried(console, TOKEN, by_header) == 429
    assert caplog.text.count("a wrong token came from 127.0.0.1") == 10
    assert console.get("/api/state", cookie=inside["cookie"]).status == 200


@pytest.mark.parametrize("by_header", [True, False])
def test_no_header_gives_a_client_more_tries(guarded: Serve, by_header: bool) -> None:
    console = guarded(ConsoleOptions(tokens={"ann": TOKEN}))

    statuses = [_tried(console, "wrong", by_header, x_forwarded_for=f"10.0.0.{number}") for number in range(11)]

    assert statuses == [401] * 10 + [429]


def test_the_addresses_of_one_network_of_ipv6_share_their_tries() -> None:
    limit = LoginLimit()

    for number in range(10):
        limit.wrong(f"2001:db8::{number}")

    assert limit.wait("2001:db8::ffff") > 0
    assert limit.wait("2001:db8:0:1::1") == 0


@needs_nginx
def test_behind_a_proxy_each_client_has_its_tries_and_no_more(guarded: Serve, tmp_path: Path) -> None:
    console = guarded(ConsoleOptions(tokens={"ann": TOKEN}, trusted_proxies=("127.0.0.1",)))
    front = free_port()
    with nginx(tmp_path, front, _configured(console.port)):
        proxied = Console(front, console.path, source="127.0.0.2")
        forged = [_tried(proxied, "wrong", False, x_forwarded_for=f"198.51.100.{number}") for number in range(11)]
        other = _tried(Console(front, console.path, source="127.0.0.3"), TOKEN, False)

    assert forged == [401] * 10 + [429]
    assert other == 200


@needs_nginx
def test_behind_a_proxy_that_is_not_named_all_clients_share_their_tries(guarded: Serve, tmp_path: Path) -> None:
    console = guarded(ConsoleOptions(tokens={"ann": TOKEN}))
    front = free_port()
    with nginx(tmp_path, front, _configured(console.port)):
        sources = (Console(front, source=f"127.0.0.{number}") for number in range(2, 13))
        statuses = [_tried(one, "wrong", True, x_forwarded_for="198.51.100.1") for one in sources]

    assert statuses == [401] * 10 + [429]


@pytest.mark.parametrize(("scheme", "secure"), [("http", False), ("https", True)])
def test_the_cookie_of_a_page_over_tls_is_sent_over_tls_alone(guarded: Serve, scheme: str, secure: bool) -> None:
    console = guarded(ConsoleOptions(tokens={"ann": TOKEN}, allowed_hosts=("console.example",)))

    page = {"host": "console.example", "origin": f"{scheme}://console.example"}
    reply = console.post("/api/login", {"token": TOKEN}, x_toolcrib_csrf=None, **page)

    assert ("; secure" in reply.headers["set-cookie"].lower()) == secure


def _tried(console: Console, token: str, by_header: bool, **headers: str | None) -> int:
    """Return the status of a request with a token, in its header or as a login."""
    if by_header:
        return console.get("/api/state", authorization=f"Bearer {token}", **headers).status
    return console.post("/api/login", {"token": token}, x_toolcrib_csrf=None, **headers).status


def _configured(port: int) -> str:
    """Return the configuration of nginx as the page of the console has it, for a console at this port."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "console.md").read_text("utf-8")
    return page.partition("```nginx\n")[2].partition("```")[0].replace("127.0.0.1:8137", f"127.0.0.1:{port}")


def test_logging_in_and_out_is_logged(guarded: Serve, caplog: pytest.LogCaptureFixture) -> None:
    console = guarded(ConsoleOptions(tokens={"ann": TOKEN}))

    with caplog.at_level("INFO", "toolcrib.console"):
        console.post("/api/logout", {}, **_login(console))

    assert "ann logged in from 127.0.0.1" in caplog.text
    assert "ann logged out from 127.0.0.1" in caplog.text
    assert TOKEN not in caplog.text


RULED = replace(REQUEST, required=(RequiredApprovers("large sums", {"finance": 1}, {"finance": [["bob"]]}),))


async def test_a_rule_takes_the_holder_of_a_token_and_no_name_that_was_typed(guarded: Serve) -> None:
    console = guarded(ConsoleOptions(tokens={"bob": TOKEN, "eve": f"{TOKEN}-of-eve", "": f"{TOKEN}-of-all"}))
    await console.store.put(RULED)
    sent = {"request": "ask_1", "answer": "approve", "name": "bob"}

    def answered_with(token: str) -> tuple[int, str]:
        reply = console.post("/api/answer", sent, authorization=f"Bearer {token}", x_toolcrib_csrf=None)
        return reply.status, reply.json.get("error", "")

    shown = console.get("/api/request?id=ask_1", authorization=f"Bearer {TOKEN}").json["metadata"]
    by_eve, by_all, by_bob = map(answered_with, (f"{TOKEN}-of-eve", f"{TOKEN}-of-all", TOKEN))

    assert [line["text"] for line in shown] == ["large sums: 1 of finance (bob)"]
    assert by_eve == (409, "the approval of eve (console) does not meet the rule large sums: 1 of finance (bob)")
    assert by_all[0] == 409
    assert "bob (console), a name by which nobody has logged in, does not meet the rule" in by_all[1]
    assert by_bob == (200, "")


async def test_the_console_shows_who_may_answer_and_takes_the_holder_of_a_token_for_whom_they_stand_for(
    guarded: Serve,
) -> None:
    console = guarded(ConsoleOptions(tokens={"eve": TOKEN}))
    times = {"escalation": ((3600.0, "board"),), "delegations": (Delegation("bob", "eve", now() + timedelta(hours=1)),)}
    await console.store.put(replace(RULED, created_at=now(), required=(replace(RULED.required[0], **times),)))
    sent = {"request": "ask_1", "answer": "approve"}

    shown = console.get("/api/request?id=ask_1", authorization=f"Bearer {TOKEN}").json["answerers"]
    reply = console.post("/api/answer", sent, authorization=f"Bearer {TOKEN}", x_toolcrib_csrf=None)

    assert [(one["group"], one["people"], one["now"]) for one in shown] == [
        ("finance", ["bob", "eve for bob"], True),
        ("board", [], False),
    ]
    assert reply.json["answer"]["by"] == "eve for bob (console)"
