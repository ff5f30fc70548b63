"""Questions of a server to a person: how they reach one, and what of the answers goes back."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, cast
from urllib.parse import urlsplit

import mcp_types as types

from toolcrib.adapters.mcp_client._values import Elicitation
from toolcrib.calls import ApprovalRequest, Grant
from toolcrib.jsonschema.checker import misfits
from toolcrib.schema import ElicitRequest, Progress, RunContext
from toolcrib.tools import PersonAnswer, can_ask_person, person_answer
from toolcrib.tools import ask_person as ask_of_call

Answer = Mapping[str, Any] | bool | None
"""The fields by name; True or False for yes or no; None where the question was left."""

_log = logging.getLogger("toolcrib.mcp")
_MOST_CHARS: Final = 10_000  # of a message
_MOST_SCHEMA: Final = 64 * 1024  # characters of the fields
_MOST_FIELDS: Final = 100


def oversize(message: str, schema: Mapping[str, Any]) -> str:
    """Return why a question is too large to be shown; empty when it is not."""
    if len(message) > _MOST_CHARS:
        return f"its message has more than {_MOST_CHARS} characters"
    fields: Any = schema.get("properties", {})
    if not isinstance(fields, dict) or len(cast("dict[str, Any]", fields)) > _MOST_FIELDS:
        return f"it has more than {_MOST_FIELDS} fields, or none that can be read"
    return f"its fields have more than {_MOST_SCHEMA} characters" if len(json.dumps(schema)) > _MOST_SCHEMA else ""


def unsafe(url: str) -> str:
    """Return why a page is not one that a person may be sent to; empty when it is."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "its address cannot be read"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return "its address does not begin with http:// or https://"
    if len(url) > _MOST_CHARS or not url.isprintable() or parts.username is not None:
        return "its address has a user name, characters that are not shown, or is too long"
    return ""


# --- asking a person


async def ask_person(asked: Elicitation, ctx: RunContext[Any], seconds: float) -> PersonAnswer:
    """Return the answer of the approver of a call, or from its approval store; declined where there is neither.

    Args:
        seconds: How long the question waits in the store.
    """
    if not can_ask_person(ctx):
        unanswered = "%s asks a question during %s; no client, approver or connect(elicit=...) can answer it"
        _log.warning(unanswered, asked.server, ctx.tool_name)  # its words may quote arguments
        return PersonAnswer("decline", {})

    def problem_of(fields: Mapping[str, Any]) -> str:
        return "; ".join(map(str, misfits(asked.schema, fields)))

    question = ElicitRequest(asked.message, asked.schema, asked.url)
    answer = await ask_of_call(question, ctx, asked.server, problem_of, seconds, partial(_report, ctx, asked.server))
    if answer.problem:
        wrong = "%s: a question during %s was approved without what it asks for"
        _log.warning(wrong, asked.server, ctx.tool_name)  # the problem quotes what the person filled in
    return answer


async def granted(request: ApprovalRequest, ctx: RunContext[Any], seconds: float) -> bool:
    """Return whether the approver of a call, or its approval store, says yes to something."""
    waiting = partial(_report, ctx, str(request.asked_by))
    return isinstance(await person_answer(request, ctx, seconds, waiting), Grant)


def _report(ctx: RunContext[Any], server: str) -> None:
    if ctx.report is not None:
        ctx.report(Progress(0, None, f"{server} asks a question, which waits for a person"))


# --- what goes back


def elicit_result(answer: Answer, asked: Elicitation) -> types.ElicitResult | types.ErrorData:
    """Return an answer as the server gets it; fields that do not fit what it asked are an error."""
    if answer is None:
        return types.ElicitResult(action="cancel")
    if answer is False:
        return types.ElicitResult(action="decline")
    if asked.url is not None:
        return types.ElicitResult(action="accept")
    parts: Mapping[str, Any] = asked.schema.get("properties", {})
    defaults = {name: part["default"] for name, part in parts.items() if "default" in part}  # that the server gave
    content = {**defaults, **({} if answer is True else answer)}
    problem = next(map(str, misfits(asked.schema, content, f"an answer to {asked.server}")), None)
    if problem is not None:
        _log.error("%s: the answer to a question during %s does not fit what it asked", asked.server, asked.tool)
        text = f"the answer does not fit what {asked.server} asked: {problem}"
        return types.ErrorData(code=types.INVALID_PARAMS, message=text)
    return types.ElicitResult(action="accept", content=content)
