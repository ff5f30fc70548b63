"""An approver in a chat: each pending request is a message with buttons, and an approver's press answers it."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import os
import sys
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs
from urllib.request import Request as Post
from urllib.request import urlopen

import uvicorn
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from toolcrib import ApprovalRequest, Denial, Grant, SqliteApprovalStore
from toolcrib.approvals import Notice
from toolcrib.calls import DOUBT_ANSWERS, Identity
from toolcrib.errors import ApprovalError

FRESH = 300  # seconds after which a press is a replay of an old one
LONGEST = 2900  # characters of one text in a message
LARGEST = 100_000  # bytes of a press
POLL = 1.0  # seconds
TITLES = {"pending": "", "reminder": "Still waiting: ", "escalated": "Further people may answer now: "}
NEEDED = ("SLACK_BOT_TOKEN", "SLACK_SIGNING_SECRET", "SLACK_CHANNEL", "APPROVERS")


def is_signed(secret: str, headers: Mapping[str, str], body: bytes) -> bool:
    """Return whether the chat sent this, and lately."""
    at = headers.get("x-slack-request-timestamp", "")
    if not at.isdecimal() or abs(time.time() - int(at)) > FRESH:
        return False
    expected = hmac.new(secret.encode(), b"v0:" + at.encode() + b":" + body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(f"v0={expected}".encode(), headers.get("x-slack-signature", "").encode("latin-1"))


def message(request: ApprovalRequest) -> list[dict[str, Any]]:
    """Return the blocks of a message: what is asked, as plain text, and the buttons."""
    text = request.text()
    whole = len(text) <= LONGEST
    more = f"(cut, {len(text) - LONGEST} more characters: look at the whole of it in the console)"
    shown = text if whole else f"{text[:LONGEST]}\n{more}"
    words = DOUBT_ANSWERS if request.in_doubt else {"approve": "Approve", "deny": "Deny"}
    names = words if whole else ("deny",)  # an approver can approve only what was shown whole
    buttons = {"type": "actions", "elements": [_button(name, words[name], request.id) for name in names]}
    return [*plain(shown), *([_RESULT] if "done" in names else []), buttons]


_RESULT: dict[str, Any] = {
    "type": "input",
    "block_id": "result",
    "optional": True,
    "label": {"type": "plain_text", "text": "Its result as JSON, if it was done"},
    "element": {"type": "plain_text_input", "action_id": "result", "multiline": True},
}


def plain(text: str) -> list[dict[str, Any]]:
    """Return the block of a text in which nothing is markup."""
    shown = text if len(text) <= LONGEST else f"{text[:LONGEST]}\n({len(text) - LONGEST} more characters)"
    return [{"type": "section", "text": {"type": "plain_text", "text": shown, "emoji": False}}]


def _button(name: str, label: str, request_id: str) -> dict[str, Any]:
    return {"type": "button", "action_id": name, "value": request_id, "text": {"type": "plain_text", "text": label}}


def answer_to(request: ApprovalRequest, action: str, typed: str, approver: str) -> Grant | Denial:
    """Return the answer that a press is.

    Raises:
        ValueError: The call is said to be done, and what was typed is no JSON.
    """
    identity = Identity(approver)  # the chat's signature says who pressed, and `approvers` who that is
    if action == "done":
        return request.done(json.loads(typed), identity)
    return request.grant(identity) if action == "approve" else request.deny(message="An approver said no.", by=approver)


class Chat:
    """The chat's API, as far as an approver needs it."""

    def __init__(self, api: str, token: str, channel: str) -> None:
        self._api, self._token, self._channel = api, token, channel

    @property
    def address(self) -> str:
        """What the store knows it by, which keeps what was posted there."""
        return f"slack:{self._api}:{self._channel}"

    async def post(self, notice: Notice) -> None:
        text = f"{TITLES[notice.kind]}{notice.request.title}"
        blocks = [*(plain(text) if TITLES[notice.kind] else []), *message(notice.request)]
        await self._call("chat.postMessage", text=text, blocks=blocks)

    async def update(self, at: str, text: str, blocks: list[dict[str, Any]]) -> None:
        """Put other blocks in place of a message."""
        await self._call("chat.update", ts=at, text=text[:LONGEST], blocks=blocks)

    async def _call(self, method: str, **content: Any) -> None:
        body = json.dumps({"channel": self._channel, **content}).encode()
        headers = {"content-type": "application/json; charset=utf-8", "authorization": f"Bearer {self._token}"}
        said = await asyncio.to_thread(self._send, Post(f"{self._api}/{method}", body, headers))
        if not said.get("ok"):
            raise OSError(f"the chat refuses {method}: {said.get('error')}")

    @staticmethod
    def _send(request: Post) -> dict[str, Any]:
        with urlopen(request, timeout=30) as reply:
            said: dict[str, Any] = json.load(reply)
        return said


class ChatApprover:
    """Posts what is pending, and answers it by the presses of approvers.

    Args:
        store: Where the requests are kept.
        chat: Where they are shown.
        secret: What the chat signs with.
        approvers: Who may answer: names by the ids that the chat has for them.
    """

    def __init__(self, store: SqliteApprovalStore, chat: Chat, secret: str, approvers: Mapping[str, str]) -> None:
        self._store, self._chat, self._secret, self._approvers = store, chat, secret, approvers
        self._updating = asyncio.Lock()
        self.app = Starlette(routes=[Route("/press", self._press, methods=["POST"])], lifespan=self._lifespan)

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncGenerator[None]:
        posting = asyncio.create_task(self._post_pending())
        yield
        posting.cancel()

    async def _post_pending(self) -> None:
        """Post each notice once, whatever becomes of this process: the store keeps what was posted."""
        while True:
            try:
                for due in await self._store.notices_due(self._chat.address):
                    for notice in await self._store.begin_notices(self._chat.address, [due]):
                        await self._post(notice)
            except OSError as error:  # it is posted the next time
                print(error, file=sys.stderr)
            await asyncio.sleep(POLL)

    async def _post(self, notice: Notice) -> None:
        try:
            await self._chat.post(notice)
        except OSError:
            await self._store.undo_notices(self._chat.address, [notice])
            raise

    async def _press(self, request: Request) -> Response:
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > LARGEST:
                return PlainTextResponse("too large", 413)
        if not is_signed(self._secret, request.headers, body):
            return PlainTextResponse("the signature is wrong, or old", 401)
        try:
            payload = json.loads(parse_qs(body.decode())["payload"][0])
            user, at, action = payload["user"]["id"], payload["container"]["message_ts"], payload["actions"][0]
            request_id, pressed = action["value"], action["action_id"]
            typed = payload.get("state", {}).get("values", {}).get("result", {}).get("result", {}).get("value") or ""
            if pressed not in DOUBT_ANSWERS:
                raise LookupError(pressed)
        except (ValueError, LookupError, TypeError, AttributeError):
            return PlainTextResponse("this is no press of a button", 400)
        approver = self._approvers.get(user)
        if approver is None:
            return PlainTextResponse("only approvers answer", 403)
        late = await self._answer(request_id, pressed, typed, approver)
        said, _ = await self._shown(request_id, late)
        # The chat waits three seconds for this; the message is updated after it.
        return PlainTextResponse(said, background=BackgroundTask(self._update, at, request_id, late))

    async def _answer(self, request_id: str, pressed: str, typed: str, approver: str) -> str:
        """Answer a request; return why the answer does not count, empty where it does."""
        try:
            request = (await self._store.show(request_id)).request
            await self._store.answer(answer_to(request, pressed, typed, approver))
        except json.JSONDecodeError:
            return f'\n({approver}: type the result as JSON first, such as "paid" or {{"paid": 5}})'
        except ApprovalError as error:
            return f"\n({approver}: {error})"
        return ""

    async def _shown(self, request_id: str, late: str) -> tuple[str, list[dict[str, Any]]]:
        """Return what became of a request, also where another answer came first, and the message that says so."""
        try:
            entry = await self._store.show(request_id)
        except ApprovalError as error:
            return str(error), plain(str(error))
        if entry.answer is None:  # it takes another approver
            so_far = f"{', '.join(entry.request.approved_by)} approved; it takes one more"
            return f"{so_far if entry.request.approved_by else 'it waits'}{late}", message(entry.request)
        yes = entry.answer if isinstance(entry.answer, Grant) else None
        word = "denied" if yes is None else "approved" if yes.done is None else "said to be done"
        said = f"{entry.request.text()}\n{word} by {entry.answer.by}{late}"
        return said, plain(said)

    async def _update(self, at: str, request_id: str, late: str) -> None:
        """Have the message say how the request stands now: one update at a time, so that the last one is the newest."""
        async with self._updating:
            said, blocks = await self._shown(request_id, late)
            try:
                await self._chat.update(at, said, blocks)
            except OSError as error:  # the answer is kept, and the reply to the next press says so
                print(error, file=sys.stderr)


def main() -> None:
    """Run the approver: `approver.py DATABASE PORT`, with the chat in the environment."""
    database, port = sys.argv[1:]
    lacking = [name for name in NEEDED if name not in os.environ]
    if lacking:
        sys.exit(f"Set {', '.join(lacking)}: start examples/slack/chat.py and export what it prints, or see the page.")
    chat = Chat(
        os.environ.get("SLACK_API", "https://slack.com/api"), os.environ["SLACK_BOT_TOKEN"], os.environ["SLACK_CHANNEL"]
    )
    approvers = dict(pair.split("=", 1) for pair in os.environ["APPROVERS"].split(","))  # U012AB=ann,U034CD=bob
    approver = ChatApprover(SqliteApprovalStore(database), chat, os.environ["SLACK_SIGNING_SECRET"], approvers)
    uvicorn.run(approver.app, host="127.0.0.1", port=int(port), log_level="warning")


if __name__ == "__main__":
    main()
