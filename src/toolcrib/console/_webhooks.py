"""Webhooks: notices of approval requests, signed and sent again until they arrive."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any, Final, Literal
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener
from uuid import uuid4

from toolcrib.approvals import ApprovalEntry, KeepsNotices, Notice, NoticeKind
from toolcrib.calls import IN_DOUBT, ApprovalRequest, cut
from toolcrib.clock import SYSTEM_CLOCK, Clock
from toolcrib.errors import explain_options

_POLL_SECONDS = 2.0
_TIMEOUT = 10.0  # seconds of one delivery
_FIRST_DELAY = 1.0  # seconds; each later delay is twice as long
_LONGEST_DELAY = 300.0
_TRIES = 12  # some 20 minutes
_LISTED = 20  # requests in one notice
_REASON = 500  # characters of a reason
_TITLES: Final[Mapping[NoticeKind, str]] = {
    "pending": "Waiting for approval:",
    "reminder": "Still waiting for approval:",
    "escalated": "Waiting for approval, which further people may give now:",
}
_AGAIN = (408, 425, 429)  # statuses below 500 after which it is tried again
_log = logging.getLogger("toolcrib.console")


@explain_options()
@dataclass(frozen=True, slots=True)
class Webhook:
    """An address that gets a POST when requests for approval are pending, as a reminder, and as they escalate.

    Args:
        url: The address, `https://` or `http://`.
        secret: Signs each delivery; at least 16 characters. Slack's addresses are secrets themselves and need none.
        shape: `json` for what `docs/console.md` describes, `slack` for a message as Slack takes it.
        reasons: Whether a notice has the reason of each request. A policy, a hook, a server that asks, and provenance
            quote arguments and the user's words in it.
        groups: Groups of rules (`toolcrib.approvers`) whose people read there: they are notified of what they may
            answer, as soon as they may. When empty, it gets all notices.

    Raises:
        ValueError: The address is not a URL, or the secret is short.
    """

    url: str = field(repr=False)
    secret: str = field(default="", repr=False)
    shape: Literal["json", "slack"] = "json"
    reasons: bool = False
    groups: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if urlsplit(self.url).scheme not in ("http", "https") or not urlsplit(self.url).hostname:
            raise ValueError("the address of a webhook must begin with https:// or http:// and name a host")
        if self.secret and len(self.secret) < 16:
            raise ValueError("the secret of a webhook must have at least 16 characters")

    @property
    def address(self) -> str:
        """The key of the webhook in a store, in place of its URL, which may be a secret."""
        return f"webhook:{hashlib.sha256(self.url.encode()).hexdigest()}"

    def body(self, kind: NoticeKind, requests: Sequence[ApprovalRequest], console: str) -> bytes:
        """Return notices of one kind; without `reasons` they quote no argument, which may be private."""
        listed = [self._view(request, console) for request in requests[:_LISTED]]
        more = len(requests) - len(listed)
        if self.shape == "json":
            content: Any = {"type": f"approvals.{kind}", "requests": listed, "more": more}
        else:
            lines = [f"<{row['url']}|{_plain(row['tool'])}> {_plain(_about(row))}" for row in listed]
            content = {"text": "\n".join([_TITLES[kind], *lines, *([f"and {more} more"] if more else [])])}
        return json.dumps(content).encode()

    def _view(self, request: ApprovalRequest, console: str) -> dict[str, Any]:
        may_answer = dict.fromkeys(
            answerer["group"] for answerer in ApprovalEntry(request).answerers() if answerer["now"]
        )
        return {
            "id": request.id,
            "tool": request.tool,
            **({"reason": cut(request.reason, _REASON)} if self.reasons else {}),
            "principal": request.principal,
            "agent": request.agent,
            "conversation_id": request.conversation_id,
            "run_id": request.run_id,
            "created_at": request.created_at.isoformat(),
            "expires_at": None if request.expires_at is None else request.expires_at.isoformat(),
            "may_answer": list(may_answer),
            "in_doubt": request.in_doubt,
            "url": f"{console}/#/inbox/{quote(request.id, safe='')}",
        }

    def headers(self, body: bytes, delivery: str) -> dict[str, str]:
        """Return the headers of a delivery that is sent now."""
        at = str(int(time.time()))
        signed = {"x-toolcrib-signature": f"v1={webhook_signature(self.secret, at, body)}"} if self.secret else {}
        named = {"x-toolcrib-timestamp": at, "x-toolcrib-delivery": delivery, "user-agent": "toolcrib"}
        return {"content-type": "application/json", **named, **signed}


def webhook_signature(secret: str, timestamp: str, body: bytes) -> str:
    """Return the signature of a delivery: HMAC-SHA256 over the time stamp, a dot and the body, in hex."""
    return hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


@explain_options()
class Notifier:
    """Sends notices of requests to webhooks, as long as `run` runs: each once, of all processes that share a store.

    What a webhook does not take yet waits in the store.

    Args:
        approvals: The store of requests, which keeps what was sent.
        webhooks: The addresses.
        console: The URL of the console, as people reach it; notices have links to its requests.
        clock: The clock of the pauses between two looks, and between two tries of a delivery.
    """

    def __init__(
        self,
        approvals: KeepsNotices,
        webhooks: Iterable[Webhook],
        console: str,
        *,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._approvals, self._console, self._clock = approvals, console.rstrip("/"), clock
        self._webhooks = [*webhooks]

    async def run(self) -> None:
        """Send the notices that are due, again and again, until cancelled; those of one kind together."""
        async with asyncio.TaskGroup() as tasks:
            for webhook in self._webhooks:
                tasks.create_task(self._send_always(webhook))

    async def _send_always(self, webhook: Webhook) -> None:
        while True:
            try:
                due = await self._approvals.notices_due(webhook.address, webhook.groups)
            except Exception as error:  # the database may be away for a while
                _log.warning("webhooks cannot read the approval requests: %s", error)
                due = ()
            for kind in dict.fromkeys(notice.kind for notice in due):
                await self._deliver(webhook, [notice for notice in due if notice.kind == kind])
            await self._clock.sleep(_POLL_SECONDS)

    async def _deliver(self, webhook: Webhook, notices: Sequence[Notice]) -> None:
        delivery, delay, delivered = str(uuid4()), _FIRST_DELAY, list[Notice]()
        host = urlsplit(webhook.url).hostname
        for number in range(1, _TRIES + 1):
            problem, again = await self._try(webhook, notices, delivery, delivered, is_last=number == _TRIES)
            if not problem:
                return
            if not again or number == _TRIES:
                _log.error("the webhook at %s did not take a notice, which is dropped: %s", host, problem)
                return
            _log.warning("the webhook at %s did not take a notice: %s; try %d of %d", host, problem, number, _TRIES)
            await self._clock.sleep(min(delay, _LONGEST_DELAY))
            delay *= 2

    async def _try(
        self, webhook: Webhook, notices: Sequence[Notice], delivery: str, delivered: list[Notice], *, is_last: bool
    ) -> tuple[str, bool]:
        """Send notices whose requests still wait, and which no other process sent; return as `_post` does.

        Args:
            webhook: The webhook.
            notices: The notices.
            delivery: The id of the delivery in all tries.
            delivered: The notices that were begun here and not sent, also where the database was away to undo them.
            is_last: Whether there is no further try.
        """
        try:
            if delivered:
                await self._approvals.undo_notices(webhook.address, delivered)
            delivered[:] = begun = await self._approvals.begin_notices(webhook.address, notices)
            if not begun:
                return "", False
            body = webhook.body(begun[0].kind, [notice.request for notice in begun], self._console)
            problem, again = await asyncio.to_thread(_post, webhook, body, delivery)
            if problem and again and not is_last:
                await self._approvals.undo_notices(webhook.address, begun)
                delivered.clear()
        except Exception as error:  # the database may be away for a while
            return f"the database cannot be used now: {error}", True
        return problem, again


class _NoRedirect(HTTPRedirectHandler):
    """Takes no redirect: the notice is for the address that was given, and for no other."""

    def redirect_request(self, *arguments: Any, **options: Any) -> None:
        return None


_opener = build_opener(_NoRedirect)


def _post(webhook: Webhook, body: bytes, delivery: str) -> tuple[str, bool]:
    """Send a notice; return what went wrong, empty for nothing, and whether it may go better later."""
    request = Request(webhook.url, body, webhook.headers(body, delivery), method="POST")
    try:
        with _opener.open(request, timeout=_TIMEOUT) as reply:
            reply.read(1_000)
        return "", False
    except HTTPError as error:
        with suppress(OSError):
            error.close()
        return f"it answered {error.code}", error.code >= 500 or error.code in _AGAIN
    except (OSError, HTTPException, ValueError) as error:
        return str(error) or type(error).__name__, True


def _about(request: Mapping[str, Any]) -> str:
    whose = f"for {request['principal']}" if request["principal"] else ""
    doubt = f"it {IN_DOUBT}" if request["in_doubt"] else ""
    return ", ".join(part for part in (request.get("reason"), whose, doubt) if part)


def _plain(text: str) -> str:
    """Return text that Slack shows as it is, in one line."""
    return " ".join(text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("|", "¦").split())
