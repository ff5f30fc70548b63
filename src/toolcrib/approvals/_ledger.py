"""Rules for requests and their answers, over a ledger of any kind."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, Protocol, TypeVar

from toolcrib.calls import ApprovalRequest, Denial, Grant, now
from toolcrib.errors import ApprovalError

__all__ = [
    "EVERYBODY",
    "ApprovalEntry",
    "Ledger",
    "keep_answer",
    "keep_request",
    "meant_by",
    "misfit",
    "take_answer",
    "unknown_request",
    "use_answer",
]

T = TypeVar("T")

EVERYBODY = "*"
"""The principal of a standing grant that serves all of them."""


@dataclass(frozen=True, slots=True)
class ApprovalEntry:
    """A request, its answer, and whether a call has used that.

    Attributes:
        answer: The grant or denial; None without one.
        used_at: When a call used the answer. From then on the request is closed.
    """

    request: ApprovalRequest
    answer: Grant | Denial | None = None
    used_at: datetime | None = None

    @property
    def state(self) -> Literal["pending", "answered", "used"]:
        """The state of the request; a grant that expired before a call used it leaves it pending."""
        if self.used_at is not None:
            return "used"
        until = self.answer.expires_at if isinstance(self.answer, Grant) else None
        return "pending" if self.answer is None or (until is not None and until <= now()) else "answered"


class Ledger(Protocol):
    """Entries and standing grants inside one transaction, which is the only writer."""

    def entry(self, request_id: str) -> ApprovalEntry | None:
        """Return the entry of a request."""
        ...

    def entries_of(self, call_id: str) -> Iterable[ApprovalEntry]:
        """Return the entries of a call, oldest first."""
        ...

    def write(self, entry: ApprovalEntry) -> None:
        """Keep an entry, in place of the one that its request has."""
        ...

    def entries(self, *, unused: bool) -> Iterable[ApprovalEntry]:
        """Return all entries, oldest first; `unused` ones may be all that no call has used."""
        ...

    def answered(self) -> Iterable[ApprovalEntry]:
        """Return the entries with an answer that no call has used, oldest first."""
        ...

    def unanswered(self) -> tuple[int, int]:
        """Return how many requests have no answer, and how many of these are about calls in doubt."""
        ...

    def standing(self, tool: str | None) -> Iterable[Grant]:
        """Return the standing grants for a tool or all of them, oldest first."""
        ...

    def stand(self, grant: Grant) -> None:
        """Keep a standing grant."""
        ...

    def revoke(self, grant: Grant) -> bool:
        """Remove a standing grant; return whether there was one."""
        ...


def misfit(grant: Grant, request: ApprovalRequest, at: datetime | None = None) -> str:
    """Return why a grant does not fit a request, in words for a person; empty when it fits."""
    if grant.tool != request.tool:
        return f"it was given for `{grant.tool}`"
    if grant.expires_at is not None and grant.expires_at <= (at or now()):
        return f"it expired at {grant.expires_at.isoformat(timespec='seconds')}; ask again"
    if not _serves(grant, request.principal):
        given, asked = (principal or "no principal" for principal in (grant.principal, request.principal))
        return f"it was given on behalf of {given}, and this call is of {asked}"
    if grant.definition is not None and grant.definition != request.definition:
        return _other_definition(grant.definition, request.definition or "")
    if request.consent is not None and (grant.standing or grant.override_args is not None):
        return "the principal's consent is needed, which is for one call as it is"
    if request.in_doubt and grant.standing:
        return "it was not given for a call in doubt, which may have been done; answer its own request"
    if grant.scope == "values" and grant.request_id != request.id and (why := _other_values(grant, request)):
        return why
    if request.origins and grant.scope == "tool" and grant.request_id != request.id:
        return "it was given for the tool, and not for values that others wrote; answer the call's own request"
    if grant.done is not None and not request.in_doubt:
        return "it says what the call came to, and the call is not in doubt: it was not executed"
    if grant.done is None and len(_people(grant.approver, *grant.also)) < request.approvers:
        return f"it needs {request.approvers} approvers, each of whom approves it as it is"
    if grant.scope == "once" and grant.call_id != request.call_id:
        return f"it was given for the call {grant.call_id}, and this is the call {request.call_id}"
    is_bound = grant.scope in ("once", "arguments")
    if is_bound and grant.override_args is None and grant.digest != request.digest:
        shown = ", ".join(f"{name}={value!r}" for name, value in request.arguments.items())
        return f"the arguments changed after it was given; they are now {shown or 'none'}. Ask again"
    return ""


def _other_definition(given: str, now: str) -> str:
    """Return why a grant for one definition does not fit another; the server's identity follows the tool's."""
    if given.partition("@")[2] != now.partition("@")[2]:
        return "the server or object behind the tool is another one than that it was given for. Ask again"
    return "the tool has changed after it was given: what it takes, or says that it does, is something else. Ask again"


def _other_values(grant: Grant, request: ApprovalRequest) -> str:
    """Return why a grant for values does not answer a later request."""
    if not request.values_alone:
        return "it was given for values of others, and the call needs approval for more than these"
    if not all(each.get("mark") and each["mark"] in grant.values for each in request.origins):
        return "it was given for other values, or for values that come from elsewhere"
    return ""


def is_answer_to(answer: Grant | Denial, request: ApprovalRequest) -> bool:
    """Return whether an answer is meant for a request: it names the request or its call, or names neither and fits."""
    if answer.request_id is not None:
        return answer.request_id == request.id
    if answer.call_id is not None:
        return answer.call_id == request.call_id
    if isinstance(answer, Grant):
        return answer.standing and not misfit(answer, request)
    return answer.tool == request.tool


def meant_by(answer: Grant | Denial, asked: Iterable[tuple[T, ApprovalRequest]]) -> list[T]:
    """Return what an answer is meant for, of what is asked, each with its request.

    Raises:
        ApprovalError: It is meant for nothing of it.
    """
    found = [one for one, request in asked if is_answer_to(answer, request)]
    if not found:
        raise ApprovalError(answer.tool, f"no call that waits is meant by it ({answer.request_id or answer.call_id})")
    return found


def _serves(grant: Grant, principal: str | None) -> bool:
    """Return whether a grant is for a principal; one for a single call is bound to that call in any case."""
    return grant.principal in (principal, EVERYBODY) or (grant.principal is None and not grant.standing)


def keep_request(ledger: Ledger, request: ApprovalRequest) -> None:
    """Store a request until it is answered; one whose grant expired unused is asked again.

    One about the same call of which the tool has changed is closed: no answer to it would be taken, or is.
    """
    known = ledger.entry(request.id)
    if known is None:
        _close_outdated(ledger, request, f"the tool has changed; the request {request.id} asks about this call now")
    if known is None or (known.answer is not None and known.state == "pending"):
        ledger.write(ApprovalEntry(request))


def _close_outdated(ledger: Ledger, request: ApprovalRequest, why: str) -> None:
    for older in ledger.entries_of(request.call_id):
        if older.used_at is None and _is_outdated(older.request, request):
            answer = older.answer if older.state == "answered" else older.request.deny(why, "a newer request")
            ledger.write(replace(older, answer=answer, used_at=now()))


def _is_outdated(older: ApprovalRequest, newer: ApprovalRequest) -> bool:
    has_gained = older.arguments.items() < newer.arguments.items()  # a parameter with a default, in the tool
    same = ("tool", "principal") if older.id == newer.replaces or has_gained else ("tool", "principal", "digest")
    return older.definition != newer.definition and all(getattr(older, n) == getattr(newer, n) for n in same)


def keep_answer(ledger: Ledger, answer: Grant | Denial) -> None:
    """Store an answer until its call uses it, and a standing grant for good.

    Raises:
        ApprovalError: It names no request, or an unknown or answered one, or does not fit.
    """
    if answer.request_id is None:
        if not isinstance(answer, Grant) or not answer.standing:
            raise ApprovalError(answer.tool, "it names no request; make it with `request.grant()` or `request.deny()`")
        ledger.stand(answer)
        return
    entry = ledger.entry(answer.request_id)
    if entry is None:
        raise unknown_request(answer.request_id, answer.tool)
    if entry.state != "pending":
        raise _answered(entry)
    if isinstance(answer, Grant) and answer.done is None and not answer.standing:
        answer = _with_others(answer, entry.request)
        if len(_people(answer.approver, *answer.also)) < entry.request.approvers:
            so_far = (*answer.also, answer.approver)
            ledger.write(ApprovalEntry(replace(entry.request, approved_by=so_far)))
            return
    if isinstance(answer, Grant) and (why := misfit(answer, entry.request)):
        raise ApprovalError(answer.tool, why)
    ledger.write(replace(entry, answer=answer))
    if isinstance(answer, Grant) and answer.standing:
        ledger.stand(answer)


def _with_others(grant: Grant, request: ApprovalRequest) -> Grant:
    """Return a grant together with who approved the same request before.

    Raises:
        ApprovalError: It does not fit, it is of someone who approved it before, or it approves something else.
    """
    if request.approvers == 1:
        return grant
    if grant.override_args is not None or grant.user_input is not None:
        raise ApprovalError(grant.tool, f"it needs {request.approvers} approvers, each of whom approves it as it is")
    if why := misfit(grant, replace(request, approvers=1)):
        raise ApprovalError(grant.tool, why)
    if not _people(grant.approver, *grant.also) - _people(*request.approved_by):
        raise ApprovalError(grant.tool, f"{grant.approver} approved it before; it needs another approver")
    return replace(grant, also=tuple(dict.fromkeys((*request.approved_by, *grant.also))))


def _people(*approvers: str) -> set[str]:
    """Return the people behind approvers' names, which may say in brackets by what way an answer came."""
    return {(name.rpartition(" (")[0] or name).strip().casefold() for name in approvers}


def take_answer(ledger: Ledger, request: ApprovalRequest) -> Grant | Denial | None:
    """Return the answer to a request, and use it up: its own, one to an earlier request of its call, a standing grant.

    Raises:
        ApprovalError: A call used the answer to this request already.
    """
    own = ledger.entry(request.id)
    if own is not None and own.used_at is not None:
        raise _used(own)
    found = _answer_for(ledger, request)
    if found is not None:
        ledger.write(replace(found, used_at=now()))
    answer = found.answer if found is not None else _standing_for(ledger, request)
    if answer is not None and own is not None and own is not found:
        ledger.write(replace(own, answer=answer, used_at=now()))  # no second call may use the same request
    return answer


def use_answer(ledger: Ledger, request: ApprovalRequest, answer: Grant | Denial) -> None:
    """Store an answer that came with the call, and use it up.

    Raises:
        ApprovalError: It was used before, or the request was answered otherwise.
    """
    standing = isinstance(answer, Grant) and answer.standing
    key = request.id if standing or answer.request_id is None else answer.request_id
    entry = ledger.entry(key) or ApprovalEntry(replace(request, id=key))
    if entry.used_at is not None:
        raise _used(entry)
    if entry.state == "answered" and not _same(entry.answer, answer):
        raise _answered(entry)
    if not standing:
        for other in ledger.entries_of(request.call_id):
            if other.used_at is not None and _same(other.answer, answer):
                raise _used(other)
    _close_outdated(ledger, request, f"the tool has changed, and the call went on by the request {key}")
    ledger.write(replace(entry, answer=answer, used_at=now()))
    if isinstance(answer, Grant) and standing and not any(_same(answer, kept) for kept in ledger.standing(answer.tool)):
        ledger.stand(answer)


def unknown_request(request_id: str, tool: str = "") -> ApprovalError:
    """Return the error for an unknown request."""
    return ApprovalError(tool, f"there is no request {request_id}")


def _answer_for(ledger: Ledger, request: ApprovalRequest) -> ApprovalEntry | None:
    """Return the entry with an answer that this request may use up, its own first."""
    entries = sorted(ledger.entries_of(request.call_id), key=lambda entry: entry.request.id != request.id)
    for entry in entries:
        asked, answer = entry.request, entry.answer
        if entry.state != "answered" or (asked.tool, asked.principal) != (request.tool, request.principal):
            continue
        if isinstance(answer, Denial) or (isinstance(answer, Grant) and not misfit(answer, request)):
            return entry
    return None


def _standing_for(ledger: Ledger, request: ApprovalRequest) -> Grant | None:
    return next((grant for grant in ledger.standing(request.tool) if not misfit(grant, request)), None)


def _same(one: Grant | Denial | None, other: Grant | Denial) -> bool:
    return one is not None and _text(one) == _text(other)


def _text(answer: Grant | Denial) -> str:
    return json.dumps(answer.to_dict(), sort_keys=True, default=str)


def _answered(entry: ApprovalEntry) -> ApprovalError:
    by = f" by {entry.answer.approver}" if entry.answer is not None else ""
    return ApprovalError(entry.request.tool, f"the request {entry.request.id} was answered before{by}")


def _used(entry: ApprovalEntry) -> ApprovalError:
    word = "denied" if isinstance(entry.answer, Denial) else "used"
    return ApprovalError(entry.request.tool, f"it was {word} before; ask again")
