"""Rules for requests and their answers, over a ledger of any kind."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import takewhile
from secrets import token_hex
from typing import Any

from toolcrib._numbers import count_text
from toolcrib.approvals._answers import require_fit
from toolcrib.approvals._entry import ApprovalEntry
from toolcrib.approvals._executions import Execution
from toolcrib.approvals._fit import misfit, people_behind
from toolcrib.approvals._ledger import Ledger
from toolcrib.approvals._people import people_of
from toolcrib.approvals._required import approvers_lacking, count_people, identities_in, is_of_use, who_counts_not
from toolcrib.calls import ApprovalRequest, Denial, Grant, GrantUse, now
from toolcrib.errors import ApprovalError


def kept_digest_key(ledger: Ledger) -> str:
    """Return the key of the digests of secret arguments, in hex; a new one where there is none."""
    known = ledger.digest_key()
    if known is None:
        ledger.write_digest_key(known := token_hex(32))
    return known


def keep_request(ledger: Ledger, request: ApprovalRequest) -> None:
    """Store a request until it is answered; one whose grant expired unused is asked again.

    One about the same call of which the tool has changed is closed: no answer to it would be taken, or is.
    """
    known = ledger.entry(request.id)
    if known is None:
        _close_outdated(ledger, request, f"the tool has changed; the request {request.id} asks about this call now")
    if known is None or (known.answer is not None and known.state == "pending") or _is_overruled(known, request):
        ledger.write(ApprovalEntry(request))
    elif known.state == "pending":
        says_more = _says_nothing(known.request) or request.reason.startswith(f"{known.request.reason}; ")
        words = {"reason": request.reason, "metadata": request.metadata} if says_more else {}
        rules: dict[str, Any] = {
            name: getattr(request, name) for name in ("required", "required_if_edited", "approvals_needed")
        }
        if (now_asked := replace(known.request, **words, **rules)) != known.request:
            ledger.write(replace(known, request=now_asked))


def _is_overruled(known: ApprovalEntry, request: ApprovalRequest) -> bool:
    """Return whether a grant is kept, and those who gave it may not approve the request any more."""
    if known.state != "answered" or not isinstance(known.answer, Grant):
        return False
    return bool(request.required or request.required_if_edited) and bool(misfit(known.answer, request))


def _says_nothing(request: ApprovalRequest) -> bool:
    """Return whether a request says no more than what is asked about, as one whose call was noted before it asked."""
    return not (request.reason or request.metadata or request.approved_by)


def _close_outdated(ledger: Ledger, request: ApprovalRequest, why: str) -> None:
    for older in ledger.entries_of(request.call_id):
        is_same = _is_same_call(older.request, request)
        if older.used_at is None and is_same and _is_outdated(older.request, request):
            answer = (
                older.answer if older.state == "answered" else older.request.deny(message=why, by="a newer request")
            )
            ledger.write(replace(older, answer=answer, used_at=now()))


def _is_outdated(older: ApprovalRequest, newer: ApprovalRequest) -> bool:
    has_gained = older.arguments.items() < newer.arguments.items()  # a parameter with a default, in the tool
    same = ("tool", "principal") if older.id == newer.replaces or has_gained else ("tool", "principal", "digest")
    return older.definition != newer.definition and all(getattr(older, n) == getattr(newer, n) for n in same)


def deny_expired(ledger: Ledger, at: datetime) -> None:
    """Deny the requests that expire by a time, each by its rule; their calls get this answer when they are resumed."""
    for entry in list(ledger.due(at)):
        ledger.write(replace(entry, answer=entry.expired))


def keep_answer(ledger: Ledger, answer: Grant | Denial, at: datetime) -> None:
    """Store an answer of a time until its call uses it, and a standing grant for good.

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
        raise unknown_request(ledger, answer.request_id, answer.tool)
    if entry.state != "pending":
        raise _answered(entry)
    request = entry.request
    if isinstance(answer, Grant):
        require_fit(request, answer)
    if isinstance(answer, Grant) and answer.identity is not None and (request.required or request.required_if_edited):
        answer = replace(answer, identity=replace(answer.identity, at=at))
    if isinstance(answer, Grant) and answer.done is None and not answer.standing:
        answer = _with_others(answer, entry.request)
        if _lacks_approvers(answer, entry.request):
            so_far, identities = (*answer.also, answer.by), identities_in(answer)
            ledger.write(ApprovalEntry(replace(entry.request, approved_by=so_far, approved_as=identities)))
            return
    if isinstance(answer, Grant) and (why := misfit(answer, entry.request)):
        raise ApprovalError(answer.tool, why)
    ledger.write(replace(entry, answer=answer))
    if isinstance(answer, Grant) and answer.standing:
        ledger.stand(answer)


def revoke_grant(ledger: Ledger, grant: Grant) -> bool:
    """Remove a standing grant, and the answer that it is to a call which waits; return whether there was one."""
    for entry in list(ledger.answered()):
        if entry.answer is not None and _same(entry.answer, grant):
            ledger.write(replace(entry, answer=None))
    return ledger.revoke(grant)


def take_answer(ledger: Ledger, request: ApprovalRequest) -> Grant | Denial | ApprovalEntry | None:
    """Return the answer to a request: its own, one to an earlier request of its call, or a standing grant.

    A grant is used up when its call begins, and a denial by this; the same request gets the same denial again.

    Returns:
        The entry of the request where its call has begun; for a new request, the entry of an equal one about its call
        that is pending.
    """
    of_request = ledger.entry(request.id)
    if of_request is not None and of_request.execution is not None:
        return of_request
    if of_request is not None and of_request.used_at is not None:
        if isinstance(of_request.answer, Denial):
            return of_request.answer
        raise _used(of_request)
    found = _answer_for(ledger, request)
    answer = found.answer if found is not None else _standing_for(ledger, request)
    if isinstance(answer, Denial):
        for entry in _closed_with(found, of_request):
            ledger.write(replace(entry, answer=answer, used_at=now()))
        _close_earlier(ledger, request)
    return _pending_like(ledger, request) if answer is None and of_request is None else answer


def use_answer(ledger: Ledger, request: ApprovalRequest, answer: Grant | Denial) -> ApprovalEntry | None:
    """Store an answer that came with the call; a denial is used up by this, a grant when the call begins.

    Returns:
        The entry by which the call has begun, if it has.

    Raises:
        ApprovalError: It was used before, or the request was answered otherwise.
    """
    standing = isinstance(answer, Grant) and answer.standing
    entry = _entry_for(ledger, request, answer)
    if entry.execution is not None:
        _require_same_call(entry, request)
        return entry
    if entry.used_at is not None and not (isinstance(answer, Denial) and _same(entry.answer, answer)):
        raise _used(entry)
    if entry.state == "answered" and not _same(entry.answer, answer):
        raise _answered(entry)
    if not standing:
        for other in ledger.entries_of(request.call_id):
            if other.used_at is not None and _same(other.answer, answer):
                _require_same_call(other, request)
                if other.execution is not None:
                    return other
                if other.request.id != entry.request.id:
                    raise _used(other)
    _close_outdated(ledger, request, f"the tool has changed, and the call went on by the request {entry.request.id}")
    if isinstance(answer, Denial):
        ledger.write(replace(entry, answer=answer, used_at=now()))
        _close_earlier(ledger, request)
    else:
        ledger.write(replace(entry, answer=answer))
    if (
        isinstance(answer, Grant)
        and standing
        and not any(_same(answer, stored) for stored in ledger.standing(answer.tool))
    ):
        ledger.stand(answer)
    return None


# --- executions


def begin_execution(
    ledger: Ledger, request: ApprovalRequest, grant: Grant | None, execution: Execution, *, again: bool = False
) -> ApprovalEntry | None:
    """Record that the call of a request begins, and use up its grant.

    Args:
        grant: The grant by which it begins; None for a call that needs no approval.
        again: Whether a call in doubt may begin once more, as its tool is idempotent.

    Returns:
        The entry by which the call, or another one with the same grant, has begun; then this one may not begin.

    Raises:
        ApprovalError: The request was denied, or is closed; or the grant has expired meanwhile.
    """
    answered = _entry_for(ledger, request, grant)
    of_request = ledger.entry(request.id) or ApprovalEntry(request)
    entries = [answered] if answered.request.id == of_request.request.id else [answered, of_request]
    for entry in entries:
        if entry.execution is not None:
            _require_same_call(entry, request)
            if not (again and entry.execution_state == "in doubt"):
                return entry
        elif entry.used_at is not None or isinstance(entry.answer, Denial):
            raise _used(entry)
    if all(entry.execution is None for entry in entries):
        if grant is not None and (why := grant.time_problem(execution.begun_at) or _revoked(ledger, grant)):
            raise ApprovalError(request.tool, why)
        _count_use(ledger, grant, request, execution.begun_at)
    for entry in entries:
        ledger.write(replace(entry, answer=grant, used_at=execution.begun_at, execution=execution))
    _close_earlier(ledger, request)
    return None


def end_execution(
    ledger: Ledger,
    request: ApprovalRequest,
    grant: Grant | None,
    *,
    execution_id: str | None = None,
    result: Mapping[str, Any] | None = None,
    broken_off: bool = False,
) -> None:
    """Record the result of a call that began here, or that it was broken off.

    Args:
        execution_id: The execution that it is about: where the call has begun again since, nothing is recorded. None
            for the latest.
        result: The result, as JSON shapes.
        broken_off: Its end is unknown, or it ended with an error and is to be made again: it is in doubt.
    """
    ids = {request.id, _entry_for(ledger, request, grant).request.id}
    for entry in filter(None, map(ledger.entry, ids)):
        execution = entry.execution
        if execution is None or execution_id not in (None, execution.id):
            continue
        if execution.ended_at is not None and not (broken_off and _has_failed(execution)):
            continue
        if broken_off:
            ended = replace(execution, process="", ended_at=None, result=None)
        else:
            ended = replace(execution, ended_at=now(), result=result)
        ledger.write(replace(entry, execution=ended))


def _has_failed(execution: Execution) -> bool:
    return execution.result is not None and "error" in execution.result


def undo_execution(ledger: Ledger, request: ApprovalRequest) -> None:
    """Forget the execution of a call without a grant, which asked for approval before it did anything."""
    entry = ledger.entry(request.id)
    if entry is not None and entry.execution is not None:
        ledger.write(replace(entry, used_at=None, execution=None))


def _entry_for(ledger: Ledger, request: ApprovalRequest, answer: Grant | Denial | None) -> ApprovalEntry:
    """Return the entry that an answer to a request is kept in."""
    standing = isinstance(answer, Grant) and answer.standing
    key = request.id if answer is None or standing or answer.request_id is None else answer.request_id
    return ledger.entry(key) or ApprovalEntry(replace(request, id=key))


def _closed_with(*entries: ApprovalEntry | None) -> list[ApprovalEntry]:
    """Return the entries that one answer closes, each once."""
    return list({entry.request.id: entry for entry in entries if entry is not None}.values())


def _close_earlier(ledger: Ledger, request: ApprovalRequest) -> None:
    """Close the earlier requests of a call in doubt, for which its approver gives a result or says no.

    The execution that it asks about has ended, in each entry that has it, and no answer to an earlier request is used
    any more: one that was cut off before it used its answer up left it behind.
    """
    if not request.in_doubt:
        return
    known = ledger.entry(request.id)
    begun = None if known is None else known.execution
    earlier = takewhile(lambda entry: entry.request.id != request.id, ledger.entries_of(request.call_id))
    of_call = [entry for entry in earlier if _is_same_call(entry.request, request)]
    for entry in _closed_with(None if request.follows is None else ledger.entry(request.follows), *of_call):
        execution = entry.execution
        if execution is not None and execution.ended_at is None and (begun is None or execution.id != begun.id):
            ledger.write(replace(entry, execution=replace(execution, ended_at=now(), process="")))
        elif entry.state == "answered":
            ledger.write(replace(entry, used_at=now()))


def unknown_request(ledger: Ledger, request_id: str, tool: str = "") -> ApprovalError:
    """Return the error for an unknown request, which a store of another path or process may have."""
    return ApprovalError(tool, f"there is no request {request_id} in {ledger.place()}")


def _answer_for(ledger: Ledger, request: ApprovalRequest) -> ApprovalEntry | None:
    """Return the entry with an answer that this request may use up, its own first."""
    entries = sorted(ledger.entries_of(request.call_id), key=lambda entry: entry.request.id != request.id)
    for entry in entries:
        asked, answer = entry.request, entry.answer
        if entry.state != "answered" or not _is_same_call(asked, request):
            continue
        if isinstance(answer, Denial) or (isinstance(answer, Grant) and not misfit(answer, request)):
            return entry
    return None


def _pending_like(ledger: Ledger, request: ApprovalRequest) -> ApprovalEntry | None:
    """Return the entry of a pending request that asks the same about the same call, or None."""
    return next(
        (
            entry
            for entry in ledger.entries_of(request.call_id)
            if entry.state == "pending" and _is_same_call(entry.request, request) and _asks_same(entry.request, request)
        ),
        None,
    )


def _asks_same(request: ApprovalRequest, other: ApprovalRequest) -> bool:
    names = ("digest", "definition", "in_doubt", "approvals_needed", "origins", "asked_by", "consent")
    return all(getattr(request, name) == getattr(other, name) for name in names)


def _is_same_call(asked: ApprovalRequest, request: ApprovalRequest) -> bool:
    """Return whether two requests with one call id are of the same call: an id is unique in a run or conversation."""
    if asked.id in (request.id, request.replaces, request.follows):
        return True
    if (asked.tool, asked.principal) != (request.tool, request.principal):
        return False
    in_conversation = asked.conversation_id is not None and asked.conversation_id == request.conversation_id
    return asked.run_id == request.run_id or in_conversation


def _require_same_call(entry: ApprovalEntry, request: ApprovalRequest) -> None:
    """Check that an entry is of the call of a request: another call of the same id does not get its result.

    Raises:
        ApprovalError: It is of another one.
    """
    if not _is_same_call(entry.request, request):
        raise ApprovalError(request.tool, f"it was used by the call of the request {entry.request.id}; ask again")


def _standing_for(ledger: Ledger, request: ApprovalRequest) -> Grant | None:
    fitting = (grant for grant in ledger.standing(request.tool) if not misfit(grant, request))
    return next((grant for grant in fitting if not _used_up(ledger, grant, request)), None)


def _used_up(ledger: Ledger, grant: Grant, request: ApprovalRequest) -> str:
    """Return why a standing grant that counts its calls covers no more of them; empty where it does."""
    return grant.limit_reached(request, use_of(ledger, grant)) if grant.is_limited else ""


def use_of(ledger: Ledger, grant: Grant) -> GrantUse:
    """Return the use of a standing grant."""
    return uses_of(ledger, [grant])[0]


def uses_of(ledger: Ledger, grants: Iterable[Grant]) -> tuple[GrantUse, ...]:
    """Return the use of each standing grant, in their order."""
    keys = [_use_key(grant) for grant in grants]
    found = ledger.grant_uses(keys)
    return tuple(found.get(key, GrantUse()) for key in keys)


def _use_key(grant: Grant) -> str:
    """Return the key of the use of a standing grant: its request, or the grant itself where the host gave it."""
    return grant.request_id or _text(grant)


def _count_use(ledger: Ledger, grant: Grant | None, request: ApprovalRequest, at: datetime) -> None:
    """Count a call that begins by a standing grant; raises ApprovalError where that covers no more of them."""
    if grant is None or not grant.standing:
        return
    use = use_of(ledger, grant)
    if grant.is_limited and (why := grant.limit_reached(request, use)):
        raise ApprovalError(request.tool, f"{why}. Ask again")
    ledger.write_grant_use(_use_key(grant), grant.used_by(request, use, at))


def _revoked(ledger: Ledger, grant: Grant) -> str:
    """Return that a standing grant was taken back, since it was found; empty where it was not, or is for one call."""
    if not grant.standing or any(_same(stored, grant) for stored in ledger.standing(grant.tool)):
        return ""
    return "it was taken back; ask again"


def _same(answer: Grant | Denial | None, other: Grant | Denial) -> bool:
    return answer is not None and _text(answer) == _text(other)


def _text(answer: Grant | Denial) -> str:
    if isinstance(answer, Grant) and answer.identity is not None:  # which the store gave a time
        answer = replace(answer, identity=replace(answer.identity, at=None))
    return json.dumps(answer.to_dict(), sort_keys=True, default=str)


def _answered(entry: ApprovalEntry) -> ApprovalError:
    if entry.has_expired:
        return _expired(entry)
    by = f" by {entry.answer.by}" if entry.answer is not None else ""
    return ApprovalError(entry.request.tool, f"the request {entry.request.id} was answered before{by}")


def _used(entry: ApprovalEntry) -> ApprovalError:
    if entry.has_expired:
        return _expired(entry)
    word = "denied" if isinstance(entry.answer, Denial) else "used"
    return ApprovalError(entry.request.tool, f"it was {word} before; ask again")


def _expired(entry: ApprovalEntry) -> ApprovalError:
    rule, at = entry.request.expires_by, entry.request.expires_at
    by = (
        f" at {at.isoformat(timespec='seconds')} by the rule {rule.rule}" if at is not None and rule is not None else ""
    )
    return ApprovalError(entry.request.tool, f"the request {entry.request.id} expired{by}; make the call again")


# --- several approvers of one request


def _with_others(grant: Grant, request: ApprovalRequest) -> Grant:
    """Return a grant together with who approved the same request before.

    Raises:
        ApprovalError: It does not fit, it is of someone who approved it before, or it approves something else.
    """
    if _is_single(request):
        return grant
    if grant.override_args is not None or grant.user_input is not None:
        raise ApprovalError(
            grant.tool,
            f"it needs {count_text(request.approvals_needed, 'approver')}, each of whom approves it as it is",
        )
    if why := misfit(grant, replace(request, approvals_needed=1, required=())):
        raise ApprovalError(grant.tool, why)
    also = tuple(dict.fromkeys((*request.approved_by, *grant.also)))
    together = replace(grant, also=also, identities=(*request.approved_as, *grant.identities))
    if why := _of_no_use(grant, request):
        raise ApprovalError(grant.tool, why)
    before = count_people(request.approved_by, request.approved_as, request)
    if people_behind(together, request) <= (before if request.approved_as or not identities_in(grant) else 0):
        raise ApprovalError(grant.tool, f"{_why_not_another(grant, request)}; it needs another approver")
    return together


def _why_not_another(grant: Grant, request: ApprovalRequest) -> str:
    """Return why who gives a grant does not count beside the approvers before."""
    if people_behind(grant, request) == 0:
        is_model = any(identity.is_model for identity in identities_in(grant))
        return f"{grant.by} {'is a model, which counts for no person' if is_model else 'asked for it'}"
    if request.approved_as and not identities_in(grant):
        return f"{grant.by} is a name by which nobody has logged in, as the approvers before have"
    is_same = people_of(grant.by) <= people_of(*request.approved_by)
    return f"{grant.by} {'approved it before' if is_same else 'counts as one person with an approver before'}"


def _of_no_use(grant: Grant, request: ApprovalRequest) -> str:
    """Return the rule that a further approver brings no nearer to be met; empty where they do, for one at least."""
    added, so_far = identities_in(grant), request.approved_as
    unmet = [rule for rule in request.required if approvers_lacking(rule, so_far, request.created_at)]
    if not unmet or any(is_of_use(rule, added, so_far, request.created_at) for rule in unmet):
        return ""
    return f"{who_counts_not(grant)} {unmet[0].text()}"


def _lacks_approvers(grant: Grant, request: ApprovalRequest) -> bool:
    """Return whether others have to approve a request, too."""
    if people_behind(grant, request) < request.approvals_needed:
        return True
    identities, rules = identities_in(grant), request.required
    return any(approvers_lacking(rule, identities, request.created_at) for rule in rules) and not _is_single(request)


def _is_single(request: ApprovalRequest) -> bool:
    return request.approvals_needed == 1 and len(request.required) < 2
