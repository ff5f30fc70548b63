"""Questions during a call: to its client, an approver, a model. Clocks stand meanwhile, and the record has each."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from secrets import token_hex
from typing import Any, Final, Literal, TypeAlias

from toolcrib import approvals
from toolcrib._json_writer import RepeatedKeyError
from toolcrib.calls import ApprovalRequest, Denial, Grant
from toolcrib.errors import PendingLimitReached
from toolcrib.schema import ClientFeature, ElicitRequest, RunContext
from toolcrib.tools._deadline import Deadline, stopped_clocks

AskedKind: TypeAlias = ClientFeature | Literal["ask"]
"""The kind of a question: what a client may be asked for, or `ask`, an answer of an approver."""

_log = logging.getLogger("toolcrib.tools")
_TRIES: Final = 2  # times that a person is asked who says yes and leaves out what is required
_REPORT_SECONDS: Final = 5.0  # between two reports that the question waits


# --- what every question has


@dataclass(slots=True)
class QuestionOutcome:
    """The outcome of a question, filled in by the code that asks.

    Attributes:
        outcome: `accept`, `decline` or `cancel` of a person; else `answered`.
        by: Who answered, where that is known.
    """

    outcome: str = "answered"
    by: str = ""


@contextmanager
def asking(
    ctx: RunContext[Any],
    kind: AskedKind,
    of: str,
    about: Mapping[str, Any] | None = None,
    clocks: Deadline | None = None,
) -> Generator[QuestionOutcome]:
    """Pause the deadlines around the call for the body, which asks, and record the question and its answer.

    Args:
        ctx: The call.
        kind: The kind of the question.
        of: Whom: `client`, `approver`, `store`, `host`.
        about: The part of the question that sinks are given; never the answer.
        clocks: The innermost deadline of the call, for code that answers in a task of its own.
    """
    asked, trace, began = QuestionOutcome(), ctx.trace, time.perf_counter()
    number = None if trace is None else trace.asked({"what": kind, "of": of, **(about or {})})
    answer: dict[str, Any] = {}
    try:
        with stopped_clocks(clocks):
            yield asked
        answer = {"outcome": asked.outcome, "by": asked.by}
    except BaseException as error:
        answer = {"outcome": "failed" if isinstance(error, Exception) else "cancelled", "error": type(error).__name__}
        raise
    finally:
        if trace is not None and number is not None:
            trace.was_answered(number, answer, (time.perf_counter() - began) * 1000)


# --- a person, who is not at the client


@dataclass(frozen=True, slots=True)
class PersonAnswer:
    """A person's answer to a question.

    Attributes:
        action: As of `Elicited`.
        fields: The fields that they filled in, with the defaults that they left.
        problem: Why the fields are not an answer, where they said yes each time and filled in what does not fit.
        by: Who answered.
    """

    action: Literal["accept", "decline", "cancel"]
    fields: Mapping[str, Any]
    problem: str = ""
    by: str = ""


def can_ask_person(ctx: RunContext[Any]) -> bool:
    """Return whether a call has an approver, or a store in which a question can wait."""
    return _approver_of(ctx) is not None or _store_of(ctx) is not None


async def ask_person(
    asked: ElicitRequest,
    ctx: RunContext[Any],
    asked_by: str,
    problem_of: Callable[[Mapping[str, Any]], str],
    seconds: float,
    waiting: Callable[[], None] | None = None,
) -> PersonAnswer:
    """Return the answer of the approver of a call, or from its approval store; a wrong one is asked for once more.

    Args:
        asked: The question.
        ctx: The call.
        asked_by: The tool or server that asks.
        problem_of: Returns why fields are not an answer; empty where they are.
        seconds: How long the question waits in the store.
        waiting: Called now and then while it waits there.
    """
    problem, fields, by = "", dict[str, Any](), ""
    for _ in range(_TRIES):
        request = _request(asked, ctx, asked_by, problem)
        answer = await person_answer(request, ctx, seconds, waiting)
        if not isinstance(answer, Grant):
            action = "decline" if isinstance(answer, Denial) else "cancel"
            return PersonAnswer(action, {}, by=answer.by if isinstance(answer, Denial) else "")
        by = answer.by
        if asked.url is not None:
            return PersonAnswer("accept", {}, by=by)
        try:
            fields = approvals.answered_fields(request, answer)
        except RepeatedKeyError as error:
            problem = str(error)
        else:
            problem = problem_of(fields)
        if not problem:
            return PersonAnswer("accept", fields, by=by)
    return PersonAnswer("cancel", fields, problem, by)


async def person_answer(
    request: ApprovalRequest, ctx: RunContext[Any], seconds: float, waiting: Callable[[], None] | None = None
) -> Grant | Denial | None:
    """Return the answer to a request of the approver of a call, or from its approval store; None without one."""
    approver, store = _approver_of(ctx), _store_of(ctx)
    answer: Any = None if approver is None else await approvals.answer_of(approver, request)
    return await _from_store(request, store, seconds, waiting) if answer is None and store is not None else answer


async def ask_approver(request: ApprovalRequest, ctx: RunContext[Any], approver: approvals.Approver | None) -> Any:
    """Return an approver's answer to a question of a call, and record the question."""
    if approver is None:
        return None
    with asking(ctx, "ask", "approver", {"text": request.reason}) as asked:
        answer: Any = await approvals.answer_of(approver, request)
        asked.outcome = "accept" if isinstance(answer, Grant) else "cancel" if answer is None else "decline"
        asked.by = "" if answer is None else str(getattr(answer, "by", ""))
    return answer


def _approver_of(ctx: RunContext[Any]) -> Any:
    return ctx.ask if ctx.run is None else ctx.run.approver  # `ctx.ask` would record the question once more


def _store_of(ctx: RunContext[Any]) -> approvals.ApprovalStore | None:
    store = None if ctx.run is None or ctx.run.channel.question_wait <= 0 else ctx.run.approvals
    waitable = getattr(store, "store", store)  # of one principal's: what is behind it can be waited for
    return store if isinstance(waitable, approvals.WaitableApprovalStore) else None


def _request(asked: ElicitRequest, ctx: RunContext[Any], asked_by: str, problem: str) -> ApprovalRequest:
    parts: Mapping[str, Any] = asked.schema.get("properties", {})
    metadata = {"url": asked.url} if asked.url else {"fields": ", ".join(_described(asked.schema))} if parts else {}
    run = ctx.run
    return ApprovalRequest(
        id=f"ask_{token_hex(8)}",
        call_id=ctx.call_id,
        tool=ctx.tool_name,
        arguments={name: part["default"] for name, part in parts.items() if "default" in part},
        digest="",
        reason=asked.message,
        metadata={"missing": problem, **metadata} if problem else metadata,
        run_id=ctx.run_id,
        principal=None if run is None else run.principal,
        agent=None if run is None else run.channel.agent,
        conversation_id=None if run is None else run.channel.conversation_id,
        parameters=asked.schema if parts else None,
        asked_by=asked_by,
    )


def _described(schema: Mapping[str, Any]) -> list[str]:
    """Return the fields with their types, the required ones with a mark."""
    required = schema.get("required", ())
    parts: Mapping[str, Any] = schema.get("properties", {})
    return [f"{name}{'*' if name in required else ''} ({part.get('type', 'any')})" for name, part in parts.items()]


async def _from_store(
    request: ApprovalRequest, store: approvals.ApprovalStore, seconds: float, waiting: Callable[[], None] | None
) -> Grant | Denial | None:
    """Put a question into the store, and wait for its answer; it is withdrawn when none comes."""
    waitable: Any = getattr(store, "store", store)
    try:
        await store.put(request)
    except PendingLimitReached as error:
        _log.warning("%s asks, and %s", request.asked_by, error)
        return None
    answer: Grant | Denial | None = None
    try:
        async with asyncio.timeout(seconds):
            while answer is None:
                if waiting is not None:
                    waiting()
                answer = await waitable.wait(request.id, _REPORT_SECONDS)
    except TimeoutError:
        pass
    finally:
        if answer is None:
            await asyncio.shield(_withdraw(store, request))
    return answer


async def _withdraw(store: approvals.ApprovalStore, request: ApprovalRequest) -> None:
    await store.answer(request.deny(message="the call that it belongs to has ended, or waits no longer", by="toolcrib"))
