"""Gates of an entry: consent, scopes, availability, approvals, and its toolsets' own; the shortener of its results."""

from __future__ import annotations

from collections.abc import Iterable
from inspect import isawaitable
from typing import Any

from toolcrib import approvals, calls, results
from toolcrib import hooks as _hooks
from toolcrib.calls import Failed, KeptResult
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


def shortener_of(entry: ToolEntry, toolset: Iterable[ToolEntry]) -> _hooks.Shortener | None:
    """Return the shortener of a tool's results; None where they are cut.

    Args:
        entry: The tool.
        toolset: The tools among which one reads what was kept.
    """
    store, limit = entry.results, entry.max_result_chars
    if store is None or limit is None:
        return None
    reader = next((candidate for candidate in toolset if candidate.tool is store.reader), None)
    return None if reader is None else _StoredResults(store, reader, limit)


class _StoredResults:
    name = "result store"

    def __init__(self, store: results.ResultStore, reader: ToolEntry, limit: int) -> None:
        self._store, self._reader, self._limit = store, reader, limit

    async def shorten(self, call: Any, value: Any) -> KeptResult | None:
        """Keep a result that is too long; None for any other, and where the run does not offer to read it."""
        run, reader = call.run, self._reader
        if not run.offers(reader):
            return None
        owner = results.Owner(run.principal, call.name, call.id)
        return await results.keep_result(self._store, value, owner, run.channel.reader, self._limit, reader.name)
