"""A stand-in for the chat: it keeps messages, wants the bot's token, and signs what a user presses.

`chat.py` prints what to export, and runs on; `chat.py press approve U1` presses a button of the newest message,
and `chat.py press show U1 'argument order=any' uses=10` types into its fields before.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import socket
import sys
import time
from contextlib import suppress
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request as Post
from urllib.request import urlopen

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

TOKEN, SECRET = "xoxb-stand-in", "stand-in-signing-secret"


def app() -> Starlette:
    messages: dict[str, dict[str, Any]] = {}

    async def send(request: Request) -> JSONResponse:
        """Take `chat.postMessage` and `chat.update`, as the chat does."""
        content = await request.json()
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return JSONResponse({"ok": False, "error": "invalid_auth"})
        at = content.get("ts", f"{time.time_ns() / 1e9:.6f}")
        if request.path_params["method"] == "update" and at not in messages:
            return JSONResponse({"ok": False, "error": "message_not_found"})
        messages[at] = content
        return JSONResponse({"ok": True, "ts": at})

    async def read(_: Request) -> JSONResponse:
        return JSONResponse([{"ts": at, **content} for at, content in messages.items()])

    return Starlette(
        routes=[Route("/api/chat.{method}", send, methods=["POST"]), Route("/messages", read, methods=["GET"])]
    )


def press(
    url: str,
    action: str,
    user: str,
    message: dict[str, Any],
    at: int | None = None,
    typed: dict[str, str] | None = None,
) -> tuple[int, str]:
    """Press a button of a message as a user does, with what they typed into which block.

    Returns:
        The status and the approver's words.
    """
    buttons = [button for block in message["blocks"] for button in block.get("elements", [])]
    value = next(button["value"] for button in buttons if button["action_id"] == action)
    inputs = {block["block_id"]: block["element"] for block in message["blocks"] if block.get("type") == "input"}
    held = {**{id: element.get("initial_value") for id, element in inputs.items()}, **(typed or {})}
    payload = {
        "type": "block_actions",
        "user": {"id": user},
        "container": {"message_ts": message["ts"]},
        "actions": [{"action_id": action, "value": value}],
        "state": {
            "values": {
                id: {inputs[id]["action_id"]: {"type": "plain_text_input", "value": text or None}}
                for id, text in held.items()
            }
        },
    }
    body = urlencode({"payload": json.dumps(payload)}).encode()
    return send_signed(url, body, int(time.time()) if at is None else at)


def send_signed(url: str, body: bytes, at: int, secret: str = SECRET) -> tuple[int, str]:
    signature = hmac.new(secret.encode(), b"v0:%d:" % at + body, hashlib.sha256).hexdigest()
    headers = {"x-slack-request-timestamp": str(at), "x-slack-signature": f"v0={signature}"}
    try:
        with urlopen(Post(url, body, headers), timeout=60) as reply:
            return reply.status, reply.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


def newest(action: str) -> dict[str, Any]:
    """Return the newest message that still has this button."""
    if "SLACK_API" not in os.environ:
        sys.exit("Export what `chat.py` printed when it started.")
    with urlopen(os.environ["SLACK_API"].removesuffix("/api") + "/messages", timeout=60) as reply:
        messages = json.load(reply)
    message: dict[str, Any]
    for message in reversed(messages):
        buttons = [button for block in message["blocks"] for button in block.get("elements", [])]
        if any(button["action_id"] == action for button in buttons):
            return message
    sys.exit(f"No message has a button to {action}.")


def main() -> None:
    if sys.argv[1:2] == ["press"]:
        action, user, *more = sys.argv[2:]
        typed = dict(word.split("=", 1) for word in more if not word.startswith("http"))
        url = next((word for word in more if word.startswith("http")), "http://127.0.0.1:8790/press")
        print(press(url, action, user, newest(action), typed=typed)[1])
        return
    with socket.create_server(("127.0.0.1", 0)) as listening:
        api = f"http://127.0.0.1:{listening.getsockname()[1]}/api"
        print(
            f"export SLACK_API={api} SLACK_BOT_TOKEN={TOKEN} SLACK_SIGNING_SECRET={SECRET} SLACK_CHANNEL=C1 "
            "APPROVERS=U1=ann,U2=bob",
            flush=True,
        )
        with suppress(KeyboardInterrupt):
            uvicorn.Server(uvicorn.Config(app(), log_level="warning")).run(sockets=[listening])


if __name__ == "__main__":
    main()
