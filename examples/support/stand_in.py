"""A stand-in for the APIs of OpenAI and Anthropic: it refuses what they refuse, and plays a model that refunds a lamp.

python examples/support/stand_in.py      # prints the environment variables that point the clients here
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any, get_type_hints

from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from pydantic import TypeAdapter, ValidationError

Item = dict[str, Any]
_PARAMETERS: Mapping[str, Any] = {
    "/chat/completions": CompletionCreateParamsNonStreaming,
    "/v1/messages": MessageCreateParamsNonStreaming,
}


class Refused(Exception):
    """What the provider would answer with status 400."""


# --- what the providers check


def check(path: str, body: Item) -> None:
    """Raise Refused for a request that the provider would refuse."""
    parameters = _PARAMETERS[path]
    unknown = sorted(body.keys() - get_type_hints(parameters).keys())
    if unknown:
        raise Refused(f"Unrecognized request argument supplied: {unknown[0]}")
    try:
        list(TypeAdapter[Any](parameters).validate_python(body)["messages"])  # the SDKs' types are read one by one
    except ValidationError as error:
        raise Refused(str(error)) from error
    (_check_chat if path == "/chat/completions" else _check_messages)(body["messages"])


def _check_chat(messages: Sequence[Item]) -> None:
    """After a message with calls come the results, one for each, before anything else."""
    waiting: list[str] = []
    for place, message in enumerate(messages):
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                raise Refused(f"messages[{place}]: a tool message answers no call before it")
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            raise Refused(f"messages[{place}]: the calls {', '.join(waiting)} have no result")
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
        for call in message.get("tool_calls") or ():
            json.loads(call["function"]["arguments"])
    if waiting:
        raise Refused(f"the calls {', '.join(waiting)} have no result")


def _check_messages(messages: Sequence[Item]) -> None:
    """Turns alternate; each tool use is answered by the first blocks of the next message."""
    expected = "user"
    waiting: list[str] = []
    for place, message in enumerate(messages):
        if message["role"] != expected:
            raise Refused(f"messages.{place}: roles must alternate, and this is {message['role']}")
        expected = "assistant" if expected == "user" else "user"
        blocks = _blocks(message)
        answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if sorted(answered) != sorted(waiting):
            raise Refused(
                f"messages.{place}: `tool_use` ids without `tool_result` blocks: {waiting}, and not {answered}"
            )
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
    if waiting:
        raise Refused(f"`tool_use` ids were found without `tool_result` blocks: {waiting}")


# --- the model


def play(question: str, results: Sequence[str]) -> tuple[str, Item] | str:
    """Return the call that the model makes next, or what it says in the end."""
    found = re.search(r"\b\d{4}\b", question)
    if found is None:
        return "Which order is it? Please tell me its number."
    number = found.group()
    if not results:
        return "find_order", {"number": number}
    if len(results) == 1 and '"total"' in results[0]:
        return "refund", {"number": number, "amount": json.loads(results[0])["total"]}
    return f"I am done with order {number}: {results[-1]}"


def chat_reply(body: Item) -> Item:
    """Return the chat completion for a request."""
    messages: list[Item] = body["messages"]
    question = next(message["content"] for message in messages if message["role"] == "user")
    results = [message["content"] for message in messages if message["role"] == "tool"]
    made = play(question, results)
    message: Item = {"role": "assistant", "content": made if isinstance(made, str) else None}
    if not isinstance(made, str):
        call = {"name": made[0], "arguments": json.dumps(made[1])}
        message["tool_calls"] = [{"id": f"call_{len(messages)}", "type": "function", "function": call}]
    stop = "stop" if isinstance(made, str) else "tool_calls"
    choice = {"index": 0, "message": message, "finish_reason": stop, "logprobs": None}
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    base = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": body["model"]}
    return {**base, "choices": [choice], "usage": usage}


def messages_reply(body: Item) -> Item:
    """Return the message for a request."""
    messages: list[Item] = body["messages"]
    blocks = [block for message in messages for block in _blocks(message)]
    results = [_text(block["content"]) for block in blocks if block["type"] == "tool_result"]
    made = play(_text(messages[0]["content"]), results)
    if isinstance(made, str):
        content: list[Item] = [{"type": "text", "text": made}]
    else:
        content = [{"type": "tool_use", "id": f"toolu_{len(messages)}", "name": made[0], "input": made[1]}]
    stop = "end_turn" if isinstance(made, str) else "tool_use"
    usage = {"input_tokens": 100, "output_tokens": 10}
    base = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"]}
    return {**base, "content": content, "stop_reason": stop, "stop_sequence": None, "usage": usage}


def _blocks(message: Item) -> list[Item]:
    content: Any = message["content"]
    return [] if isinstance(content, str) else [*content]


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(block.get("text", "") for block in content)


# --- the server


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        path = self.path.partition("?")[0]
        try:
            check(path, body)
            status, reply = 200, chat_reply(body) if path == "/chat/completions" else messages_reply(body)
        except Refused as error:
            status, reply = 400, {"type": "error", "error": {"type": "invalid_request_error", "message": str(error)}}
        data = json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def served() -> Generator[str]:
    """Serve while the body runs; return the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    thread = Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


if __name__ == "__main__":
    with served() as url:
        print(
            f"export OPENAI_BASE_URL={url} ANTHROPIC_BASE_URL={url} OPENAI_API_KEY=none ANTHROPIC_API_KEY=none",
            flush=True,
        )
        with suppress(KeyboardInterrupt):
            Event().wait()
