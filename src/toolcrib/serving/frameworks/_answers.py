"""Requests in what a framework asks its user, and answers as it hands back what a person said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar, cast

from toolcrib import schema
from toolcrib.approvals import meant_by, misfit, require_agreement, require_fit
from toolcrib.calls import ApprovalRequest, Denial, Grant
from toolcrib.errors import ApprovalError
from toolcrib.pipeline import Run

T = TypeVar("T")

Given: TypeAlias = Grant | Denial | ApprovalRequest
"""A host's reply to a call that waits: an answer, or the request itself where the approval store has its answer."""

_KEY = "toolcrib"
"""The entry of ours in what a framework carries for us: a payload, metadata, additional properties."""

_SAYS_MORE = frozenset({"edited_action", "args", "decisions"})
"""Keys that a decision which approves a call as it is cannot have."""


_OF_A_REJECT = frozenset({"type", "kind", "message", "name", "tool_call_id", "call_id", "request_id"})


def request_payload(request: ApprovalRequest) -> dict[str, Any]:
    """Return a request as an entry of what a framework carries to its user."""
    return {_KEY: request.to_dict()}


def request_in(payload: object) -> ApprovalRequest | None:
    """Return the request that a payload carries; None where it carries none of ours."""
    carried = cast("Mapping[str, Any]", payload).get(_KEY) if isinstance(payload, Mapping) else None
    return ApprovalRequest.from_dict(cast("Mapping[str, Any]", carried)) if isinstance(carried, Mapping) else None


def request_of_framework(
    id: str, call_id: str, tool: str, arguments: dict[str, Any], reason: str = ""
) -> ApprovalRequest:
    """Return the request that a framework itself makes, of which our gates know nothing."""
    return ApprovalRequest(id, call_id, tool, arguments, schema.digest(tool, arguments), reason=reason)


def require_plain(answer: Given, mend: str) -> None:
    """Raise ApprovalError for an answer to a framework's own request that is more than a yes or no to this call.

    Args:
        answer: The answer.
        mend: The option to leave out in the framework, so that a policy asks in its place.
    """
    if isinstance(answer, ApprovalRequest):
        raise ApprovalError(answer.tool, "the framework itself asks, and no store has an answer to it")
    if isinstance(answer, Grant) and (answer.standing or answer.override_args is not None):
        problem = "the framework itself asks, and takes a yes or no to this call alone; for another answer"
        raise ApprovalError(
            answer.tool, f"{problem} leave {mend} out and have a policy ask: GuardPolicy(approve=[...])"
        )


def require_stopped(what: str, stopped: object, *kinds: type) -> None:
    """Check what stopped, the first argument of `answers` and of `approval_requests`; raises TypeError."""
    if not isinstance(stopped, kinds):
        raise TypeError(f"{what}, which comes before the answers, and not a value of the type {type(stopped).__name__}")


def require_given(answer: object) -> None:
    """Check an answer that a host gives; raises TypeError."""
    if not isinstance(answer, Grant | Denial | ApprovalRequest):
        raise TypeError(
            f"an answer is `request.grant(...)`, `request.deny(...)`, or the request, and not {answer!r:.80}; "
            "several are given one by one: answers(..., *given)"
        )


def answered(asked: Iterable[tuple[T, ApprovalRequest]], answers: Iterable[Given]) -> Iterator[tuple[T, Given]]:
    """Yield each of what is asked that an answer is meant for, with the answer.

    Args:
        asked: The framework's questions, in its own shape, each with the request.
        answers: The answers of a person, and requests whose answers the store has.

    Raises:
        ApprovalError: An answer is for nothing that is asked, or one request has two answers that differ.
    """
    waiting, found = [*asked], list[tuple[T, Given]]()
    for answer in answers:
        require_given(answer)
        named = answer.deny() if isinstance(answer, ApprovalRequest) else answer  # a denial names the request
        for match in meant_by(named, waiting):
            if not isinstance(answer, ApprovalRequest):
                before = (other for of, other in found if of is match)
                require_agreement(answer, (other for other in before if not isinstance(other, ApprovalRequest)))
            if isinstance(answer, Grant):
                require_fit(next(request for asked_by, request in waiting if asked_by is match), answer)
            found.append((match, answer))
    yield from found


def answer_payload(answer: Given) -> dict[str, Any]:
    """Return an answer in the JSON shapes that `answer_of` reads."""
    return {"kind": "stored", "request_id": answer.id} if isinstance(answer, ApprovalRequest) else answer.to_dict()


def answer_of(request: ApprovalRequest, reply: object) -> Grant | Denial | None:
    """Return the answer to a request that a person's word is; None where it says that the approval store has it.

    Args:
        reply: The value of `answer_payload`, an answer, True or False, or a decision as front ends for agents give it:
            `{"type": "approve"}`, `{"type": "edit", "edited_action": {"args": {...}}}`, and `{"type": "reject"}` with a
            `message`. A list of one decision counts as that decision.

    Raises:
        ApprovalError: It is of another type or shape, it names another tool, call or request, or it is an edit that
            does not fit the tool.
    """
    match reply:
        case Grant() | Denial():
            answer = reply
        case bool():
            return request.grant() if reply else request.deny()
        case list() if len(cast("list[Any]", reply)) == 1:
            return answer_of(request, cast("list[Any]", reply)[0])
        case Mapping() if cast("Mapping[str, Any]", reply).get("kind") == "stored":
            return None
        case Mapping():
            answer = _decided(request, cast("Mapping[str, Any]", reply))
        case _:
            answer = None
    if isinstance(answer, Grant):
        require_fit(request, answer)
    if answer is None:
        forms = 'a grant or a denial, True, False, or {"type": "approve"}, "edit" or "reject"'
        raise ApprovalError(request.tool, f"{reply!r:.80} is not an answer; give {forms}")
    return answer


def _decided(request: ApprovalRequest, fields: Mapping[str, Any]) -> Grant | Denial | None:
    edited: Any = fields.get("edited_action")
    match fields.get("kind") or fields.get("type") or "":
        case "grant" | "denial" as kind:
            try:
                return (Grant if kind == "grant" else Denial).from_dict(fields)
            except ValueError as error:
                raise ApprovalError(request.tool, f"{fields!r:.80} is not an answer: {error}") from error
        case "" if "decisions" in fields:
            return answer_of(request, fields["decisions"])
        case "respond":
            problem = 'the decision "respond" gives a result in place of the call, and an answer gives none'
            mend = '"approve", "edit", or "reject", whose message the model reads'
            raise ApprovalError(request.tool, f"{problem}; give {mend}")
        case "approve" if _SAYS_MORE.isdisjoint(fields):
            _require_this_call(request, fields)
            return request.grant()
        case "edit" if isinstance(edited, Mapping):
            action = cast("Mapping[str, Any]", edited)
            _require_this_call(request, fields, action)
            arguments: Any = action.get("args")
            if not _is_object(arguments):
                raise _malformed_edit(request)
            return request.grant(override_args=arguments)
        case "edit":
            raise _malformed_edit(request)
        case "reject":
            _require_this_call(request, fields)
            others = [name for name, value in fields.items() if name not in _OF_A_REJECT and isinstance(value, str)]
            if others and "message" not in fields:
                problem = f'the decision "reject" has `{others[0]:.80}`, which the model would not read'
                raise ApprovalError(request.tool, f"{problem}; give its text as `message`")
            return request.deny(message=str(fields.get("message") or ""))
        case _:
            return None


def _malformed_edit(request: ApprovalRequest) -> ApprovalError:
    shape = {"type": "edit", "edited_action": {"name": request.tool, "args": dict(request.arguments)}}
    problem = "this is not an answer: an edit has all arguments of the call in `edited_action`"
    return ApprovalError(request.tool, f"{problem}, as in {shape!r:.300}")


def _is_object(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(key, str) for key in cast("dict[Any, Any]", value))


def _require_this_call(request: ApprovalRequest, *given: Mapping[str, Any]) -> None:
    """Raise ApprovalError for a decision that names another tool, call or request: it approves this call alone."""
    ours = {"name": request.tool, "tool_call_id": request.call_id, "call_id": request.call_id, "request_id": request.id}
    for name, value in ours.items():
        other: Any = next((fields[name] for fields in given if fields.get(name, value) != value), None)
        if other is not None:
            kind = {"name": "tool", "request_id": "request"}.get(name, "call")
            problem = f"the decision names another {kind}, {other!r:.80}, and an answer is for this one alone"
            raise ApprovalError(request.tool, f"{problem}; reject the call, with a message that names the other")


def plain_grant(request: ApprovalRequest, by: str = "host") -> Grant | None:
    """Return the grant that a framework's own yes is, which names no request.

    It answers neither a call in doubt nor a tool that has changed: it may be the yes by which the call began.
    """
    return None if request.in_doubt or request.replaces is not None else request.grant(by)


def is_to_earlier(earlier: Grant | Denial | ApprovalRequest, request: ApprovalRequest) -> bool:
    """Return whether it is, or answers, a request that this one replaces, or by which its call in doubt began."""
    id = earlier.id if isinstance(earlier, ApprovalRequest) else earlier.request_id
    return id is not None and id in (request.replaces, request.follows)


def unknown_call(tool: str, run: Run, request_id: str = "") -> ApprovalError:
    """Return the error for a call which waits, as the host says, and of which nothing is known here."""
    about = f" ({request_id})" if request_id else ""
    lacking = (
        "the approval store of its run is not that of the process which asked"
        if run.approvals
        else "its run has no approval store"
    )
    mend = 'give the run the same one in each process, as in Run(approvals=SqliteApprovalStore("approvals.db"))'
    return ApprovalError(
        tool, f"no call that waits is known here{about}; where another process asked, {lacking}: {mend}"
    )


def rebound(answer: Grant | Denial, request: ApprovalRequest, run: Run) -> Grant | Denial | None:
    """Return an answer to a question of another process as one to the request that is made anew of the same call.

    None for one to another call, or to other arguments; and where the run has an approval store, which would know of
    the question.
    """
    if answer.request_id not in (None, request.id):
        if run.approvals is not None or answer.call_id != request.call_id:
            return None
        answer = replace(answer, request_id=request.id)
    return None if isinstance(answer, Grant) and misfit(answer, request) else answer


def is_as_seen(request: ApprovalRequest) -> bool:
    """Return whether the arguments that a framework shows of a call are all that is asked about.

    An approval of the framework's own, of which no request is known, counts for nothing else.
    """
    return not (request.changes() or request.origins or request.in_doubt)
