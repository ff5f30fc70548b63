"""A stand-in of Anthropic's API on loopback, for the program that the Claude Agent SDK brings: it plays a script."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any


class ScriptedApi:
    """An API that makes the calls of one step after the other, and says that it is done after the last.

    Attributes:
        steps: The calls of each step: `(id, name, input)`.
        results: What the model was given for each call, by id.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self.steps: list[list[tuple[str, str, dict[str, Any]]]] = []
        self.results: dict[str, Any] = {}

    def environment(self, folder: Path) -> dict[str, str]:
        """Return the environment of a program that talks to this API alone, and keeps its files in a folder."""
        quiet = ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER", "IS_SANDBOX")
        places = {"HOME": str(folder), "CLAUDE_CONFIG_DIR": str(folder / ".claude")}
        return {**dict.fromkeys(quiet, "1"), **places, "ANTHROPIC_BASE_URL": self._url, "ANTHROPIC_API_KEY": "none"}

    def reply(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the next message of the model."""
        for message in request.get("messages", []):
            for block in message["content"] if isinstance(message["content"], list) else []:
                if block["type"] == "tool_result":
                    self.results[block["tool_use_id"]] = block["content"]
        step = self.steps.pop(0) if self.steps and request.get("tools") else []
        content = [{"type": "tool_use", "id": id, "name": name, "input": given} for id, name, given in step]
        about = {"type": "message", "role": "assistant", "model": request.get("model"), "stop_sequence": None}
        reason, usage = "tool_use" if step else "end_turn", {"input_tokens": 1, "output_tokens": 1}
        done = content or [{"type": "text", "text": "done"}]
        return {"id": "msg_1", **about, "content": done, "stop_reason": reason, "usage": usage}


@contextmanager
def scripted_api() -> Iterator[ScriptedApi]:
    """Serve an API while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if not self.path.startswith("/v1/messages?"):
                return self._send("application/json", json.dumps({"input_tokens": 1}))
            message = api.reply(request)
            if not request.get("stream"):
                return self._send("application/json", json.dumps(message))
            return self._send("text/event-stream", "".join(_events(message)))

        def do_HEAD(self) -> None:
            self._send("text/plain", "")

        do_GET = do_HEAD

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def _send(self, kind: str, text: str) -> None:
            data = text.encode()
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    api = ScriptedApi(f"http://127.0.0.1:{server.server_port}")
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _events(message: dict[str, Any]) -> Iterator[str]:
    """Return a message as the events of a stream."""
    begun = {**message, "content": [], "stop_reason": None}
    yield _event({"type": "message_start", "message": begun})
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield _event({"type": "content_block_start", "index": index, "content_block": empty})
        yield _event({"type": "content_block_delta", "index": index, "delta": delta})
        yield _event({"type": "content_block_stop", "index": index})
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield _event({"type": "message_delta", "delta": ended, "usage": {"output_tokens": 1}})
    yield _event({"type": "message_stop"})


def _event(data: dict[str, Any]) -> str:
    return f"event: {data['type']}\ndata: {json.dumps(data)}\n\n"
