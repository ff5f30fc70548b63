"""Policies, which decide when approval is needed, and approvers, which answer at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from inspect import CO_VARARGS, isawaitable
from typing import Any, TypeAlias

from toolcrib._numbers import require_seconds
from toolcrib.approvals._fit import misfit, require_agreement
from toolcrib.approvals._store import WaitableApprovalStore
from toolcrib.calls import ApprovalRequest, Denial, Grant
from toolcrib.errors import (
    ApprovalError,
    ClientUnavailable,
    HookError,
    explain_options,
    require_choice,
    require_result,
)

ApprovalPolicy: TypeAlias = bool | Callable[[dict[str, Any], Any], bool | str | Awaitable[bool | str]]
"""The rule by which a tool needs approval: a bool, or a function of the final arguments and the run context.

A text is a yes, and the reason that the person is shown.
"""

Answer: TypeAlias = Grant | Denial | None
Approver: TypeAlias = Callable[[ApprovalRequest], Answer | Awaitable[Answer]]
"""Answers a request during the call: returns a grant, a denial, or None to leave the call suspended.

A plain function blocks the event loop while it asks; an async one does not.
"""


def require_approver(who: str, approver: object) -> None:
    """Check that an approver is a function; raises TypeError for anything else, such as a name."""
    if approver is not None and not (callable(approver) and _takes_request(approver)):
        mend = "it must be a function of the request, as in `def ask(request): return request.grant(by='ann')`"
        raise TypeError(f"{who}: approver is not {approver!r:.80}; {mend}")
    if callable(approver):
        require_result("approver", approver)


def require_answer(what: str, answer: object) -> None:
    """Check that a value is an answer of a person; raises TypeError for anything else, such as True.

    Args:
        what: The place of the value, for the error.
    """
    if not isinstance(answer, Grant | Denial):
        raise TypeError(
            f"{what} is {answer!r:.80}; give one to its request, as in request.grant('ann') or request.deny(by='ann', "
            "message='why')"
        )


def require_request(request: object) -> None:
    """Check that a value is a request, or the id of one; raises TypeError for anything else, such as True."""
    if not isinstance(request, ApprovalRequest | str):
        raise TypeError(
            f"an answer is about one request, or its id, as in agent.approve(agent.requests[0], 'ann'), and not about "
            f"{request!r:.80}"
        )


def joined_answers(who: str, grants: Iterable[Grant], denials: Iterable[Denial]) -> tuple[Grant | Denial, ...]:
    """Return all answers of two options.

    Args:
        who: The function that has the options `grants` and `denials`.

    Raises:
        TypeError: One answer stands in the place of a list, or a value is of another kind.
        ApprovalError: One request has two answers that differ.
    """
    found = list[Grant | Denial]()
    for option, answers in {"grants": grants, "denials": denials}.items():
        if not isinstance(answers, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
            example = "request.grant('ann')" if option == "grants" else "request.deny(by='ann', message='why')"
            raise TypeError(
                f"`{option}` of {who} must be a list of answers, as in {option}=[{example}], and not {answers!r:.80}"
            )
        for answer in answers:
            require_answer(f"one of the `{option}` of {who}", answer)
            found.append(answer)
    first = dict[str, Grant | Denial]()
    for answer in found:
        if answer.request_id is not None:
            require_agreement(answer, [first.setdefault(answer.request_id, answer)])
    return tuple(found)


def _takes_request(approver: Callable[..., Any]) -> bool:
    """Return whether a function can be called with a request; each run asks, for which `signature` is slow."""
    code: Any = getattr(approver, "__code__", None)
    if code is None:
        return True
    parameters = 1 + (getattr(approver, "__self__", None) is not None)
    required = code.co_argcount - len(getattr(approver, "__defaults__", None) or ())
    return required <= parameters <= code.co_argcount or bool(required <= parameters and code.co_flags & CO_VARARGS)


async def answer_of(approver: Approver, request: ApprovalRequest) -> Any:
    """Return the answer of an approver, a plain function or an async one.

    Raises:
        ApprovalError, ClientUnavailable: It raised this, to say why nobody is asked.
        HookError: It raised another error, or returned what is neither an answer to this request nor None, as a bool,
            which does not say who approves.
    """
    try:
        reply: Any = approver(request)
        answer: Any = await reply if isawaitable(reply) else reply
        if answer is not None and not isinstance(answer, Grant | Denial):
            raise TypeError(
                f"it returned {answer!r:.40}; return request.grant(by=...), request.deny(by=..., message=...), or None "
                "where it has no answer"
            )
        if isinstance(answer, Grant) and request.consent is None and (why := misfit(answer, request)):
            raise ValueError(f"its grant does not fit the request: {why}")
    except (ApprovalError, ClientUnavailable):
        raise
    except BaseException as error:  # an approver is the host's code
        raise HookError.of(request.tool, "approver", approver, error)  # noqa: B904 -- it has it as its cause
    return answer


@explain_options()
@dataclass(slots=True)
class AgentContext:
    """A base for `deps` of your own that names the tools that need approval in this run.

    Attributes:
        need_user_approve_tools: Names of tools that need approval, besides those that declare it.
    """

    need_user_approve_tools: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        require_choice("AgentContext", "need_user_approve_tools", self.need_user_approve_tools)


async def approve_all(request: ApprovalRequest) -> Grant:
    """Approve every request; for scripts and tests."""
    return request.grant(by="approve_all")


async def deny_all(request: ApprovalRequest) -> Denial:
    """Deny every request."""
    return request.deny(message=f"`{request.tool}` needs approval, and this run denies all requests", by="deny_all")


@explain_options()
def stored_approver(store: WaitableApprovalStore, timeout: float | None = None) -> Approver:
    """Return an approver that stores each request, and waits until it is answered there.

    The call waits while a person looks at the console, or types `toolcrib approvals approve` on another machine. Give
    the run the store as well, so that an answer is used once: `Run(approvals=store, approver=stored_approver(store))`.

    Args:
        store: The store of requests and answers.
        timeout: Seconds to wait at most; then the call is suspended.
    """
    require_seconds("stored_approver", "timeout", timeout)

    async def approver(request: ApprovalRequest) -> Grant | Denial | None:
        await store.put(request)
        return await store.wait(request.id, timeout)

    return approver
