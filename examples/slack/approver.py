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
from dataclasses import dataclass, replace
from datetime import datetime
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
from toolcrib.approvals import GrantForm, Notice
from toolcrib.calls import DOUBT_ANSWERS, Identity
from toolcrib.errors import ApprovalError

FRESH = 300  # seconds after which a press is a replay of an old one
LONGEST = 2900  # characters of one text in a message
LARGEST = 100_000  # bytes of a press
POLL = 1.0  # seconds
TITLES = {"pending": "", "reminder": "Still waiting: ", "escalated": "Further people may answer now: "}
ANSWERS = (*DOUBT_ANSWERS, "allow")  # of the buttons; the others show another message
OTHERS = ("further", "show", "back")
ARGUMENT = "argument "  # begins the id of the block for an argument
LIMITS = {
    "uses": "For how many calls, this one too",
    "hours": "For how many hours; until it is taken back where this is empty",
    "times": "At which times of the week, as mon-fri 09:00-17:00 Europe/Berlin",
    "total": "Up to which sum of an argument",
    "summed": "The argument that is summed up",
}
BOUNDS = 'any, <= 50, 5..50, under /srv/x, one of "a", "b"; empty for exactly this'
VALUE = 2000  # characters that a button carries
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
    names = [*words] if whole else ["deny"]  # an approver can approve only what was shown whole
    buttons = [_button(name, words[name], request.id) for name in names]
    if whole and GrantForm.fits(request) and all(0 < len(place) < 200 for place in GrantForm.places(request)):
        buttons.insert(1, _button("further", "Further calls, too", request.id))
    return [*plain(shown), *([_RESULT] if "done" in names else []), {"type": "actions", "elements": buttons}]


def form(request: ApprovalRequest, typed: Mapping[str, str], problem: str = "") -> list[dict[str, Any]]:
    """Return the blocks in which an approver says which further calls may run, with what they typed before."""
    fields = [
        *(
            _field(f"{ARGUMENT}{place}", place, typed, f"now {json.dumps(value):.200}; {BOUNDS}")
            for place, value in GrantForm.places(request).items()
        ),
        *(_field(name, words, typed) for name, words in LIMITS.items()),
    ]
    buttons = [_button("show", "Show what that allows", request.id), _button("back", "Back", request.id)]
    said = plain(problem) if problem else []
    return [*plain(request.text()), *said, *fields, {"type": "actions", "elements": buttons}]


def words(request: ApprovalRequest, grant: Grant, typed: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the blocks that show a grant word for word, with the button by which it counts.

    Raises:
        ValueError: It is too long for the chat.
    """
    until = None if grant.expires_at is None else grant.expires_at.isoformat()
    value = json.dumps(
        {"request": request.id, "typed": {name: text for name, text in typed.items() if text}, "until": until}
    )
    if len(value) > VALUE or len(grant.text()) > LONGEST:
        raise ValueError("that is too long for a message: use the console")
    buttons = [_button("allow", "Allow all of this", value), _button("back", "Back", request.id)]
    return [*plain(request.text()), *plain(grant.text()), {"type": "actions", "elements": buttons}]


def grant_of(request: ApprovalRequest, typed: Mapping[str, str], approver: str) -> Grant:
    """Return the grant that an approver typed; raises ValueError."""
    bounds = {place: typed.get(f"{ARGUMENT}{place}", "") for place in GrantForm.places(request)}
    limits = {name: typed.get(name, "") for name in LIMITS}
    return GrantForm(bounds, **limits).grant(request, Identity(approver))


_RESULT: dict[str, Any] = {
    "type": "input",
    "block_id": "result",
    "optional": True,
    "label": {"type": "plain_text", "text": "Its result as JSON, if it was done"},
    "element": {"type": "plain_text_input", "action_id": "result", "multiline": True},
}


def _field(name: str, label: str, typed: Mapping[str, str], hint: str = "") -> dict[str, Any]:
    """Return a field of one line, whose block has the name."""
    kept = {"initial_value": typed[name]} if typed.get(name) else {}
    element = {"type": "plain_text_input", "action_id": name.split()[0], **kept}
    said = {"hint": {"type": "plain_text", "text": hint}} if hint else {}
    shown = {"label": {"type": "plain_text", "text": label}, "element": element}
    return {"type": "input", "block_id": name, "optional": True, **shown, **said}


def plain(text: str) -> list[dict[str, Any]]:
    """Return the block of a text in which nothing is markup."""
    shown = text if len(text) <= LONGEST else f"{text[:LONGEST]}\n({len(text) - LONGEST} more characters)"
    return [{"type": "section", "text": {"type": "plain_text", "text": shown, "emoji": False}}]


def _button(name: str, label: str, request_id: str) -> dict[str, Any]:
    return {"type": "button", "action_id": name, "value": request_id, "text": {"type": "plain_text", "text": label}}


@dataclass(frozen=True)
class Press:
    """A button that a user pressed, with what the fields of its message hold; raises ValueError for another payload."""

    user: str
    at: str
    action: str
    request_id: str
    typed: Mapping[str, str]
    until: str | None = None

    @classmethod
    def of(cls, payload: Any) -> Press:
        """Return the press of a payload, which the chat has signed."""
        try:
            user, at, action = payload["user"]["id"], payload["container"]["message_ts"], payload["actions"][0]
            pressed, value = action["action_id"], action["value"]
            if pressed not in (*ANSWERS, *OTHERS):
                raise ValueError(pressed)
            if pressed == "allow":
                kept = json.loads(value)
                return cls(user, at, pressed, kept["request"], kept["typed"], kept["until"])
            fields: dict[str, dict[str, Any]] = payload.get("state", {}).get("values", {})
            typed = {block: next(iter(held.values()))["value"] or "" for block, held in fields.items()}
            return cls(user, at, pressed, value, typed)
        except (LookupError, TypeError, AttributeError, StopIteration) as error:
            raise ValueError(error) from error


def answer_to(request: ApprovalRequest, press: Press, approver: str) -> Grant | Denial:
    """Return the answer that a press is.

    Raises:
        ValueError: The call is said to be done, and what was typed is no JSON; or what was typed makes no grant.
    """
    identity = Identity(approver)  # the chat's signature says who pressed, and `approvers` who that is
    if press.action == "done":
        return request.done(json.loads(press.typed.get("result", "")), identity)
    if press.action == "allow":  # until when, it says as it was shown
        until = None if press.until is None else datetime.fromisoformat(press.until)
        return replace(grant_of(request, press.typed, approver), expires_at=until)
    return (
        request.grant(identity)
        if press.action == "approve"
        else request.deny(message="An approver said no.", by=approver)
    )


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
            press = Press.of(json.loads(parse_qs(body.decode())["payload"][0]))
        except (ValueError, LookupError):
            return PlainTextResponse("this is no press of a button", 400)
        approver = self._approvers.get(press.user)
        if approver is None:
            return PlainTextResponse("only approvers answer", 403)
        late = await self._answer(press, approver) if press.action in ANSWERS else ""
        said, _ = await self._shown(press, approver, late)
        # The chat waits three seconds for this; the message is updated after it.
        return PlainTextResponse(said, background=BackgroundTask(self._update, press, approver, late))

    async def _answer(self, press: Press, approver: str) -> str:
        """Answer a request; return why the answer does not count, empty where it does."""
        try:
            request = (await self._store.show(press.request_id)).request
            await self._store.answer(answer_to(request, press, approver))
        except json.JSONDecodeError:
            return f'\n({approver}: type the result as JSON first, such as "paid" or {{"paid": 5}})'
        except (ApprovalError, ValueError) as error:
            return f"\n({approver}: {error})"
        return ""

    async def _shown(self, press: Press, approver: str, late: str) -> tuple[str, list[dict[str, Any]]]:
        """Return what became of a request, also where another answer came first, and the message that says so."""
        try:
            entry = await self._store.show(press.request_id)
        except ApprovalError as error:
            return str(error), plain(str(error))
        if entry.answer is None and press.action in ("further", "show"):
            return _standing(entry.request, press, approver)
        if entry.answer is None:  # it takes another approver
            so_far = f"{', '.join(entry.request.approved_by)} approved; it takes one more"
            return f"{so_far if entry.request.approved_by else 'it waits'}{late}", message(entry.request)
        yes = entry.answer if isinstance(entry.answer, Grant) else None
        word = "denied" if yes is None else "approved" if yes.done is None else "said to be done"
        further = f"\n{yes.text()}" if yes is not None and yes.standing else ""
        said = f"{entry.request.text()}\n{word} by {entry.answer.by}{further}{late}"
        return said, plain(said)

    async def _update(self, press: Press, approver: str, late: str) -> None:
        """Have the message say how the request stands now: one update at a time, so that the last one is the newest."""
        async with self._updating:
            said, blocks = await self._shown(press, approver, late)
            try:
                await self._chat.update(press.at, said, blocks)
            except OSError as error:  # the answer is kept, and the reply to the next press says so
                print(error, file=sys.stderr)


def _standing(request: ApprovalRequest, press: Press, approver: str) -> tuple[str, list[dict[str, Any]]]:
    """Return the form for further calls; or, of one that is filled in, the words of the grant."""
    if not any(one.get("action_id") == "further" for block in message(request) for one in block.get("elements", [])):
        return "it is answered for its call alone", message(request)
    if press.action == "further":
        return "which further calls may run?", form(request, {})
    try:
        grant = grant_of(request, press.typed, approver)
        return grant.text(), words(request, grant, press.typed)
    except ValueError as error:
        return str(error), form(request, press.typed, str(error))


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
