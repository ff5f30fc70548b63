"""The approver in a chat does what its README says, with the approver and the chat as servers of their own."""

from __future__ import annotations

import asyncio
import json
import os
import runpy
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.networks import free_port
from toolcrib import ApprovalRequest, SqliteApprovalStore

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
STAND_IN = EXAMPLES / "slack" / "chat.py"
chat = runpy.run_path(str(STAND_IN))
LATE = 120  # seconds that a busy machine may take to start a process


class Desk:
    """The refunds of a folder, the chat, and the address of the approver."""

    def __init__(self, folder: Path, environment: dict[str, str], url: str) -> None:
        self.folder, self.environment, self.url = folder, environment, url

    def work(self) -> str:
        command = [sys.executable, str(EXAMPLES / "approvals" / "refunds.py"), "work", str(self.folder)]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=LATE).stdout

    def messages(self) -> list[dict[str, Any]]:
        with urllib.request.urlopen(self.environment["SLACK_API"].removesuffix("/api") + "/messages") as reply:
            return json.load(reply)

    def about(self, order: int) -> dict[str, Any]:
        """Return the message about an order, once it is posted."""
        return until(lambda: next((one for one in self.messages() if f"order: {order}" in text_of(one)), None))

    def press(
        self, action: str, user: str, message: dict[str, Any], at: int | None = None, **typed: str
    ) -> tuple[int, str]:
        return chat["press"](self.url, action, user, message, at, typed)

    def after(self, action: str, order: int) -> dict[str, Any]:
        """Return the message about an order, once it has a button."""
        return until(lambda: next((one for one in [self.about(order)] if action in buttons_of(one)), None))


def text_of(message: dict[str, Any]) -> str:
    return message["blocks"][0]["text"]["text"].replace(" = ", ": ")


def buttons_of(message: dict[str, Any]) -> list[str]:
    return [button["action_id"] for block in message["blocks"] for button in block.get("elements", [])]


def until(found: Callable[[], Any]) -> Any:
    for _ in range(LATE * 5):
        if (value := found()) is not None:
            return value
        time.sleep(0.2)
    raise TimeoutError(f"not within {LATE} seconds")


def answers(url: str) -> bool | None:
    try:
        urllib.request.urlopen(url).close()
    except urllib.error.HTTPError as error:
        error.close()
        return True
    except OSError:
        return None
    return True


@contextmanager
def started(*command: str, environment: dict[str, str] | None = None) -> Generator[subprocess.Popen[str]]:
    env = {**os.environ, **(environment or {})}
    with subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True, env=env) as process:
        try:
            yield process
        finally:
            process.terminate()


@contextmanager
def slow_chat(go_on: threading.Event, seen: list[str]) -> Generator[str]:
    """Serve a chat that answers an update of a message when it is told to; give its address."""

    class Answering(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            if self.path.endswith("update"):
                go_on.wait(LATE)
            seen.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"ok": true}')

        def log_message(self, format: str, *args: Any) -> None:
            """Write nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    port = free_port()
    with ExitStack() as stack:
        stand_in = stack.enter_context(started(str(STAND_IN)))
        assert stand_in.stdout is not None
        exported = stand_in.stdout.readline().removeprefix("export ").split()
        environment = dict(word.split("=", 1) for word in exported)
        approver = str(EXAMPLES / "slack" / "approver.py"), str(tmp_path / "approvals.db"), str(port)
        stack.enter_context(started(*approver, environment=environment))
        url = f"http://127.0.0.1:{port}/press"
        until(lambda: answers(url))
        yield Desk(tmp_path, environment, url)


def test_a_press_of_an_approver_lets_the_call_go_on_once(desk: Desk) -> None:
    desk.work()

    yes, no = desk.about(7), desk.about(8)
    approved = desk.press("approve", "U1", yes)
    denied = desk.press("deny", "U2", no)
    again = desk.press("deny", "U2", yes)

    assert approved[0] == 200
    assert approved[1].endswith("approved by ann")
    assert denied[1].endswith("denied by bob")
    assert "approved by ann\n(bob: " in again[1]
    until(lambda: all(len(one["blocks"]) == 1 for one in desk.messages()) or None)  # the buttons are gone
    assert desk.work() == "refunded 19.99 on order 7\nRejected: An approver said no.\nnothing is pending\n"


def test_each_press_on_the_command_line_is_for_a_message_that_is_still_open(desk: Desk) -> None:
    desk.work()
    orders = (7, 8)
    for order in orders:
        desk.about(order)
    command = [sys.executable, str(STAND_IN), "press", "approve", "U1", desk.url]
    pressed = []

    for _ in orders:
        made = subprocess.run(command, capture_output=True, text=True, env=desk.environment, timeout=LATE)
        pressed.append(made.stdout)
        until(lambda: len(pressed) == sum("approved by ann" in text_of(one) for one in desk.messages()) or None)
    last = subprocess.run(command, capture_output=True, text=True, env=desk.environment, timeout=LATE)

    assert sorted(order for order in orders for said in pressed if f"order = {order}" in said) == [*orders]
    assert (last.returncode, last.stderr) == (1, "No message has a button to approve.\n")


def test_further_calls_run_as_the_words_say_that_were_shown_before_they_were_allowed(desk: Desk) -> None:
    desk.work()
    bounds = {"argument order": "any", "argument cents": "<= 4500"}

    desk.press("further", "U1", desk.about(7))
    shown = desk.press("show", "U1", desk.after("show", 7), **bounds, uses="5", hours="8")
    waiting = desk.work()
    confirmed = desk.after("allow", 7)
    allowed = desk.press("allow", "U2", confirmed)

    assert shown[1].startswith("refund: order any, cents up to 4500; on behalf of no principal; until ")
    assert shown[1].endswith("; at most 5 times")
    assert confirmed["blocks"][1]["text"]["text"] == shown[1]
    assert waiting.endswith("2 suspended: answer at the desk\n")
    assert allowed[1].endswith(f"approved by bob\n{shown[1]}")
    assert desk.work() == "refunded 19.99 on order 7\nrefunded 45.00 on order 8\nnothing is pending\n"


def test_further_calls_may_be_bound_to_parts_of_a_nested_argument() -> None:
    approver = runpy.run_path(str(EXAMPLES / "slack" / "approver.py"))
    request = ApprovalRequest("a", "c", "buy", {"order": {"to": "ada", "items": [{"price": 5}]}}, "d")

    blocks = [block["block_id"] for block in approver["form"](request, {}) if block["type"] == "input"]
    grant = approver["grant_of"](request, {"argument order.items[*].price": "<= 50"}, "ann")

    assert blocks[:3] == ["argument order", "argument order.to", "argument order.items[*].price"]
    assert grant.text().startswith('buy: order.to exactly "ada", order.items[*].price up to 50; ')


def test_what_makes_no_grant_is_said_in_the_form_and_allows_nothing(desk: Desk) -> None:
    desk.work()

    stranger = desk.press("further", "U3", desk.about(7))
    desk.press("further", "U1", desk.about(7))
    wrong = desk.press("show", "U1", desk.after("show", 7), **{"argument cents": "up to 5"}, uses="7")
    again = until(lambda: next((one for one in [desk.about(7)] if "'up to 5'" in json.dumps(one["blocks"][1])), None))
    kept = {
        block["block_id"]: block["element"].get("initial_value")
        for block in again["blocks"]
        if block["type"] == "input"
    }
    back = desk.press("back", "U1", again)
    forged = {"blocks": [{"elements": [{"action_id": "allow", "value": "{}"}], "type": "actions"}], "ts": again["ts"]}

    assert stranger[0] == 403
    assert wrong[1].startswith("`cents`: 'up to 5' is not a bound: ")
    assert (kept["argument cents"], kept["uses"], kept["argument order"]) == ("up to 5", "7", None)
    assert back == (200, "it waits")
    assert buttons_of(desk.after("approve", 7)) == ["approve", "further", "deny"]
    assert desk.press("allow", "U1", forged)[0] == 400
    assert asyncio.run(SqliteApprovalStore(desk.folder / "approvals.db").standing()) == ()


def test_an_approver_without_its_environment_says_what_to_set(tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / "slack" / "approver.py"), str(tmp_path / "approvals.db"), "8790"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SLACK")}

    made = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=LATE)

    assert made.returncode == 1
    assert made.stderr.startswith("Set SLACK_BOT_TOKEN, SLACK_SIGNING_SECRET, SLACK_CHANNEL, APPROVERS: start")


def test_a_press_that_is_forged_or_old_or_of_another_user_answers_nothing(desk: Desk) -> None:
    desk.work()
    message = desk.about(7)
    now = int(time.time())

    forged = chat["send_signed"](desk.url, b"payload=%7B%7D", now, "another secret")
    old = desk.press("approve", "U1", message, now - 301)
    stranger = desk.press("approve", "U3", message)
    odd = chat["send_signed"](desk.url, b"payload=%7B%7D", now)

    assert [forged[0], old[0], stranger[0], odd[0]] == [401, 401, 403, 400]
    assert desk.work().endswith("2 suspended: answer at the desk\n")


def test_a_request_that_takes_two_approvers_keeps_its_buttons_for_the_second(desk: Desk) -> None:
    store = SqliteApprovalStore(desk.folder / "approvals.db")
    asyncio.run(store.put(ApprovalRequest("ask_two", "call_two", "refund", {"order": 5}, "digest", approvals_needed=2)))
    message = desk.about(5)

    first = desk.press("approve", "U1", message)
    assert desk.about(5)["blocks"][1]["type"] == "actions"
    second = desk.press("approve", "U2", desk.about(5))

    assert first == (200, "ann approved; it takes one more")
    assert second[1].endswith("approved by ann\napproved by bob")


def test_a_call_in_doubt_has_three_buttons_and_a_field_for_its_result(desk: Desk) -> None:
    store = SqliteApprovalStore(desk.folder / "approvals.db")
    asyncio.run(store.put(ApprovalRequest("ask_d", "call_d", "refund", {"order": 5}, "digest", in_doubt=True)))
    message = desk.about(5)

    buttons = [button["text"]["text"] for button in message["blocks"][2]["elements"]]
    empty = desk.press("done", "U1", message)
    done = chat["press"](desk.url, "done", "U1", message, None, {"result": '{"paid": 5}'})

    assert buttons == ["Do it", "It was done: this is the result", "It must not be done"]
    assert message["text"] == "refund may have run already"
    assert "type the result as JSON first" in empty[1]
    assert done[1].endswith("said to be done by ann")
    assert asyncio.run(store.show("ask_d")).answer.done.value == {"paid": 5}


def test_a_press_is_acknowledged_before_the_chat_has_updated_the_message(tmp_path: Path) -> None:
    store = SqliteApprovalStore(tmp_path / "approvals.db")
    asyncio.run(store.put(ApprovalRequest("ask_one", "call_one", "refund", {"order": 5}, "digest")))
    port, go_on, seen = free_port(), threading.Event(), list[str]()
    url = f"http://127.0.0.1:{port}/press"
    button = {"elements": [{"action_id": "approve", "value": "ask_one"}]}

    with ExitStack() as stack:
        api = stack.enter_context(slow_chat(go_on, seen))
        told = {"SLACK_API": api, "SLACK_BOT_TOKEN": "t", "SLACK_SIGNING_SECRET": chat["SECRET"], "SLACK_CHANNEL": "C1"}
        command = str(EXAMPLES / "slack" / "approver.py"), str(store.path), str(port)
        stack.enter_context(started(*command, environment={**told, "APPROVERS": "U1=ann"}))
        until(lambda: answers(url))
        status, said = chat["press"](url, "approve", "U1", {"ts": "1.0", "blocks": [button]})
        acknowledged = [*seen]
        go_on.set()
        until(lambda: "/chat.update" in seen or None)

    assert (status, said.splitlines()[-1]) == (200, "approved by ann")
    assert "/chat.update" not in acknowledged
