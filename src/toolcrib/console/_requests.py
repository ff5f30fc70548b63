"""Requests and replies of the console's API: JSON bodies, numbers in a query, and the user."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse

from toolcrib._json_writer import RepeatedKeyError, read_valid_json
from toolcrib._numbers import parse_time
from toolcrib.console._guard import Visitor

SURROGATES = "backslashreplace"  # of half pairs, which models send and UTF-8 cannot encode; JSON has the same escapes


class JsonReply(JSONResponse):
    """A reply of JSON, with any text in it."""

    def render(self, content: Any) -> bytes:
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8", SURROGATES)


def visitor_of(request: Request) -> Visitor:
    """Return the user that a request is from."""
    return cast("Visitor", request.scope["visitor"])


async def json_body(request: Request) -> Mapping[str, Any]:
    """Return the JSON object that a request holds; an HTTPException for anything else."""
    try:
        sent: Any = read_valid_json(await request.body())
    except RepeatedKeyError as error:
        raise HTTPException(400, str(error)) from None
    except (ValueError, RecursionError):
        raise HTTPException(400, "the request is not JSON") from None
    if not isinstance(sent, dict):
        raise HTTPException(400, "the request is not a JSON object")
    return cast("Mapping[str, Any]", sent)


def texts_of(sent: Mapping[str, Any], name: str, most: int) -> list[str]:
    """Return a list of 1 to so many texts in a body, each once; empty for anything else."""
    listed: Any = sent.get(name)
    if not isinstance(listed, list) or len(cast("list[Any]", listed)) > most:
        return []
    return list(dict.fromkeys(map(str, cast("list[Any]", listed))))


def number(request: Request, name: str) -> int | None:
    """Return a number of the query; None where it is left out."""
    text = request.query_params.get(name, "")
    if not text:
        return None
    if not (text.isdecimal() and len(text) < 16):
        raise HTTPException(400, f"{name} is a number")
    return int(text)


def choices(request: Request, name: str) -> tuple[str, ...]:
    """Return the values of a parameter of the query that may be repeated, each of which may be several with commas."""
    return tuple(filter(None, ",".join(request.query_params.getlist(name)).split(",")))


def moment(request: Request, name: str, *, to_end: bool = False) -> datetime | None:
    """Return a time of the query, or with `to_end` the end of a day of it; None where it is left out."""
    text = request.query_params.get(name, "")
    if not text:
        return None
    try:
        found = parse_time(text, to_end=to_end)
    except (ValueError, OverflowError):
        raise HTTPException(400, f"{name} is a time, such as 2030-01-31T12:00Z") from None
    return found
