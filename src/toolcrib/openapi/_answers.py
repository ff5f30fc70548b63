"""Answers as results: JSON shapes, text, `Media`; and as the text of an error that a model is shown."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from email.message import Message
from typing import Any, Final, cast

from toolcrib._json_writer import repeated_key
from toolcrib.calls import Media
from toolcrib.errors import ModelRetry, RemoteToolError
from toolcrib.openapi._bodies import is_json
from toolcrib.openapi._sending import Answer
from toolcrib.openapi._texts import brief

_log = logging.getLogger("toolcrib.openapi")
_MENDABLE: Final = frozenset({400, 404, 405, 406, 409, 410, 411, 412, 413, 414, 416, 422, 428})
_MESSAGE_CHARS = 1_000
_SAID = ("message", "detail", "error_description", "error", "title", "reason", "description", "errors")
_TEXTS = re.compile(r"text/.*|application/(.*\+)?(xml|yaml|x-yaml|javascript|x-ndjson|jsonl)")


def value_of(server: str, method: str, path: str, answer: Answer) -> Any:
    """Return the value of an answer.

    JSON becomes JSON shapes, text a text, anything else `Media`; an answer without a body its status.

    Raises:
        ModelRetry: The server refuses the arguments.
        RemoteToolError: It refuses the request for another reason, or failed.
    """
    if not 200 <= answer.status < 300:
        raise _error(server, method, path, answer)
    if method in ("HEAD", "OPTIONS"):
        shown = {name: text for name, text in answer.headers.items() if name != "set-cookie"}
        return {"status": answer.status, "headers": shown}
    if not answer.data:
        place = answer.headers.get("location")
        return {"status": answer.status, **({} if place is None else {"location": place})}
    return _content(server, answer)


def _content(server: str, answer: Answer) -> Any:
    content_type = answer.headers.get("content-type", "")
    kind = content_type.partition(";")[0].strip().lower()
    if is_json(kind):
        try:
            return _shapes(server, answer)
        except (ValueError, RecursionError):
            raise RemoteToolError(server, "the server's answer says that it is JSON, and cannot be read") from None
    if _TEXTS.fullmatch(kind):
        message = Message()
        message["content-type"] = content_type
        try:
            return answer.data.decode(str(message.get_content_charset("utf-8")), "replace")
        except LookupError:  # no such encoding
            return answer.data.decode("utf-8", "replace")
    if not kind:
        try:
            return _shapes(server, answer)
        except (ValueError, RecursionError):
            kind = "application/octet-stream"
    message = Message()
    message["content-disposition"] = answer.headers.get("content-disposition", "")
    name = re.split(r"[/\\]", message.get_filename("") or "")[-1].strip()
    try:
        return Media(kind, answer.data, name=name)
    except ValueError:  # what it says is not a media type
        return Media("application/octet-stream", answer.data, name=name)


def _shapes(server: str, answer: Answer) -> Any:
    shapes = json.loads(answer.data, parse_constant=_refuse)
    if key := repeated_key(answer.data):
        _log.warning("%s: it sent the key `%s` more than once in one object; the last value counts", server, key)
    return shapes


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


# --- errors


def _error(server: str, method: str, path: str, answer: Answer) -> Exception:
    status = answer.status
    text = f"{method} {path}: the server answered {status} {answer.reason}".rstrip()
    if status < 400:
        place = f" to {answer.headers['location']:.200}" if "location" in answer.headers else ""
        return RemoteToolError(server, f"{text}: it redirects{place}, which is followed for operations that read alone")
    message = _message(answer)
    text = f"{text}: {message}" if message else text
    if status in _MENDABLE:
        return ModelRetry(text)
    if status == 429 and "retry-after" in answer.headers:
        pause = answer.headers["retry-after"]
        text += f" It says to wait: {pause:.40} s." if pause.isdigit() else f" It says to wait until {pause:.40}."
    if status in (401, 403):
        text += " The host's credentials do not allow it." if not message else ""
    return RemoteToolError(server, text)


def _message(answer: Answer) -> str:
    """Return the message in the body of an error, bounded."""
    try:
        value: Any = json.loads(answer.data)
    except (ValueError, RecursionError):
        return brief(answer.data[: 4 * _MESSAGE_CHARS].decode("utf-8", "replace"), _MESSAGE_CHARS)
    found = _message_in(value)
    if isinstance(value, Mapping) and found is not None:
        more: Any = cast("Mapping[str, Any]", value).get("errors")
        found = f"{found} {_compact(more)}" if more and _compact(more) != found else found
    return (found if found is not None else _compact(value))[:_MESSAGE_CHARS]


def _message_in(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    if not isinstance(value, Mapping):
        return None
    named = cast("Mapping[str, Any]", value)
    for key in _SAID:
        found = named.get(key)
        if isinstance(found, str) and found:
            return found
        if isinstance(found, Mapping | list) and found:
            return _message_in(found) or _compact(found)
    return None


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
