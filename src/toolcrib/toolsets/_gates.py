"""Gates of an entry: consent, scopes, availability, approval policies, and those that its toolsets were given."""

from __future__ import annotations

from inspect import isawaitable
from typing import Any

from toolcrib import approvals, calls
from toolcrib.calls import Failed
from toolcrib.errors import InsufficientScope, NotAvailable
from toolcrib.hooks import ON_ARRIVAL, WITH_ARGUMENTS, GateStep, refused_by
from toolcrib.toolsets._consent import consent_step
from toolcrib.toolsets._entry import Availability, ToolEntry, label_of


def steps_of(entry: ToolEntry) -> tuple[GateStep, ...]:
    """Return the gates of an entry, but for its hooks, which the pipeline itself makes."""
    source = entry.tool.source
    consent = (consent_step(source),) if source is not None and source.may_need_consent else ()
    scopes = (GateStep("scopes", "resolve", _Scopes(entry.scopes), ON_ARRIVAL),) if entry.scopes else ()
    available = (
        GateStep(label_of(condition), "validate", _Availability(condition), ON_ARRIVAL, "availability check")
        for condition in entry.availability
    )
    approval = (
        GateStep(
            "always" if isinstance(policy, bool) else label_of(policy),
            "approve",
            _Approval(policy),
            WITH_ARGUMENTS,
            "approval policy",
        )
        for policy in entry.approvals
    )
    return (*consent, *scopes, *available, *entry.gates, *approval)


class _Scopes:
    def __init__(self, needed: frozenset[str]) -> None:
        self._needed = needed

    def __call__(self, call: Any) -> Failed | None:
        """Return the outcome for a call whose token lacks a scope that the tool needs."""
        access = call.run.channel.access
        missing = () if access is None else access.lacks(self._needed)
        return refused_by(call, InsufficientScope(call.name, missing)) if missing else None


class _Availability:
    def __init__(self, condition: Availability) -> None:
        self._condition = condition

    async def __call__(self, call: Any) -> Failed | None:
        """Return the outcome for a call whose tool is not available now."""
        answer = self._condition(call.ctx)
        answer = await answer if isawaitable(answer) else answer
        return None if answer else refused_by(call, NotAvailable(call.name))


class _Approval:
    def __init__(self, policy: approvals.ApprovalPolicy) -> None:
        self._policy = policy

    async def __call__(self, call: Any) -> calls.Ask | None:
        """Return the question that the policy has."""
        answer: Any = self._policy
        if callable(answer):
            answer = answer(dict(call.arguments), call.ctx)
            answer = await answer if isawaitable(answer) else answer
            if not isinstance(answer, bool | str):  # a function without `return` would let every call run
                raise TypeError(f"it returned {answer!r:.40}; return True or the reason to ask a person, else False")
        return calls.Ask(answer if isinstance(answer, str) else "") if answer else None
