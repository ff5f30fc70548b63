"""Requests for approval and their answers, as text for a screen and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from rich.table import Table
from rich.text import Text

from toolcrib.approvals import ApprovalEntry, answer_row, grant_row
from toolcrib.calls import DOUBT_ANSWERS, Denial, Grant, GrantUse, lenient, now
from toolcrib.cli._formatting import arguments_text, cell_text, table_of

SHORT_ID = 16
"""The characters of an id in a list: as many are needed to find and answer a request by."""

_SCOPES = {
    "once": "",
    "values": "always, with these values of others",
    "arguments": "always, with these arguments",
    "tool": "always, with any arguments",
    "within": "always, within these bounds",
}
_COMMANDS = {"approve": "approve ID", "done": "done ID --result JSON", "deny": "deny ID"}
_BY = {"approved": "approved by", "done": "said to be done by", "denied": "denied by"}
_WIDE = 60  # characters of the arguments in a list
_NARROW = 24  # characters that the arguments have at least, as long as another column can be left out
_COLUMNS = ("id", "tool", "since", "for", "state", "by", "until")
_OF_ANSWERS = ("by", "until")
_LEAVING = ("until", "since", "for", "by")  # what is left out, the first one first


def entry_json(entry: ApprovalEntry) -> dict[str, Any]:
    """Return a request and its answer as JSON shapes; secrets are hidden, as the store has them."""
    return {
        **entry.request.to_dict(),
        "state": entry.status,
        "changes": entry.request.changes(),
        "answerers": entry.answerers(),
        "answer": None if entry.answer is None else entry.answer.to_dict(),
        "used_at": None if entry.used_at is None else entry.used_at.isoformat(),
    }


def entries_table(entries: Iterable[ApprovalEntry], *, answers: bool, width: int) -> Table:
    """Return requests as a table, a line each; some columns are left out where the arguments would have no room.

    Args:
        answers: Whether to show the answers, too.
        width: The characters of a line of the screen.
    """
    rows = [_cells(entry) for entry in entries]
    columns = [name for name in _COLUMNS if answers or name not in _OF_ANSWERS]
    widths = {name: max(len(name), *(len(row[name]) for row in rows)) + 2 for name in columns}
    for name in _LEAVING:
        if name in columns and sum(widths[column] for column in columns) + _NARROW > width:
            columns.remove(name)
    table = table_of(*columns, no_wrap=True)
    table.add_column("arguments", overflow="fold")
    for row in rows:
        table.add_row(*(Text(row[name]) for name in (*columns, "arguments")))
    return table


def _cells(entry: ApprovalEntry) -> dict[str, str]:
    row = entry.row()
    until = entry.answer.expires_at if isinstance(entry.answer, Grant) else None
    cells = {
        "id": row["id"][:SHORT_ID],
        "tool": row["tool"],
        "since": _age(entry.request.created_at),
        "for": row["principal"] or "-",
        "state": row["status"],
        "by": entry.answer.by if entry.answer is not None else "-",
        "until": "-" if until is None else _time(until),
        "arguments": arguments_text(entry.request.arguments),
    }
    return {name: cell_text(text, _WIDE) for name, text in cells.items()}


def entry_text(entry: ApprovalEntry) -> str:
    """Return a request and its answer as text, for the person who decides."""
    request = entry.request
    asked = {
        "id": request.id,
        "state": entry.status,
        "since": f"{_time(request.created_at)} ({_age(request.created_at)} ago)",
        "on behalf of": request.principal or "no principal",
        "agent": request.agent or "",
        "conversation": request.conversation_id or "",
        "run": request.run_id,
        "call": request.call_id,
        "digest": request.digest,
    }
    asked = {name: text for name, text in asked.items() if text}
    answered = {} if entry.answer is None else _answer_lines(entry.answer)
    if entry.used_at is not None:
        answered["used"] = _time(entry.used_at)
    lines = [request.text(), "", *_aligned(asked), *_answerers(entry)]
    if request.in_doubt and entry.state == "pending":
        commands = {DOUBT_ANSWERS[answer]: f"toolcrib approvals {command}" for answer, command in _COMMANDS.items()}
        lines += ["", *_aligned(commands)]
    return "\n".join([*lines, "", *_aligned(answered)] if answered else lines) + "\n"


def _answerers(entry: ApprovalEntry) -> list[str]:
    """Return lines of who may answer a pending request now, and from when on others may."""
    if entry.state != "pending":
        return []
    return [
        f"{'may answer now' if who['now'] else 'from ' + _time(datetime.fromisoformat(who['from']))}: {who['group']}"
        + (f" ({', '.join(who['people'])})" if who["people"] else "")
        for who in entry.answerers()
    ]


def answer_text(answer: Grant | Denial) -> str:
    """Return an answer as lines of text."""
    return "\n".join(_aligned(_answer_lines(answer)))


def standing_text(grant: Grant, use: GrantUse) -> str:
    """Return a line of a standing grant: the request that it answered, what it covers, and what was used of it."""
    row = grant_row(grant, use)
    last = "" if use.last_at is None else f", last at {_time(use.last_at)}"
    return f"{row['request_id'] or '-'}  {row['text']}; by {row['by']}; used {row['used_text']}{last}"


def _answer_lines(answer: Grant | Denial) -> dict[str, str]:
    row = answer_row(answer)
    found = {_BY[row["kind"]]: row["by"], "at": _time(answer.at), "message": answer.message}
    if isinstance(answer, Grant):
        found |= {
            "scope": _SCOPES.get(answer.scope, "nothing, as its scope is not known here"),
            "covers": row["covers"],
            "until": _time(answer.expires_at) if answer.expires_at is not None else "",
            "arguments": "" if answer.override_args is None else arguments_text(answer.override_args),
            "result": "" if answer.done is None else json.dumps(lenient(answer.done.value), ensure_ascii=False),
            "input": "" if answer.user_input is None else str(answer.user_input),
            "digest": answer.digest or "",
        }
    return {name: " ".join(text.split()) for name, text in found.items() if text}


def _aligned(named: dict[str, str]) -> list[str]:
    width = max(map(len, named))
    return [f"{name:{width}}  {text}" for name, text in named.items()]


def _time(at: datetime) -> str:
    return at.astimezone().isoformat(sep=" ", timespec="seconds")


def _age(since: datetime) -> str:
    seconds = max(0, int((now() - since).total_seconds()))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
