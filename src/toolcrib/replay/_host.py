"""Decisions of a host about one call, as they were recorded: by its own hooks for this call, and by its policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcrib.calls import Ask, CallMetadata, Complete, Decision, Reject
from toolcrib.hooks import HookSet
from toolcrib.record import RecordedAttempt


def host_hooks(attempt: RecordedAttempt, *, with_policy: bool) -> HookSet | None:
    """Return decision hooks that say again what the host said; None where it said nothing.

    Args:
        attempt: The call, as it came.
        with_policy: Whether what a policy of provenance decided is said again, too.
    """
    attempts = [
        (str(note["hook"]), _decision(note, attempt.outcome or {}))
        for note in attempt.notes
        if note["decision"] != "run" and (note.get("given") or (with_policy and note["hook"] == "provenance"))
    ]
    if attempt.arrival.get("asks"):
        attempts.append(("host", Ask("")))
    if not attempts:
        return None
    hooks = HookSet()
    for name, decision in attempts:
        hooks.register(_saying(name, decision))
    return hooks


def _decision(note: Mapping[str, Any], outcome: Mapping[str, Any]) -> Decision:
    match note["decision"]:
        case "ask":
            return Ask(str(note["reason"]))
        case "reject":
            return Reject(str(note["reason"]))
        case _:
            return Complete(outcome.get("value"))


def _saying(name: str, decision: Decision) -> Any:
    async def say(call: CallMetadata, input: Any) -> Decision:
        return decision

    say.__name__ = name
    return say
