"""Verdicts: the decision of the gates about a call, as recorded and as predicted, and how the two differ."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from toolcrib.calls import Completed, Failed, Outcome, Rejected, Suspended, equal_json
from toolcrib.record import RecordedCall

RUNS, APPROVED, WAITS = "runs", "runs once approved", "waits for approval"
SAID_DONE = "said to be done"
RETRIES = ("model_retry", "retries_exhausted")


@dataclass(frozen=True, slots=True)
class ReplayVerdict:
    """The verdict of the gates on a call.

    Attributes:
        kind: `runs`, `runs once approved`, `waits for approval`, `denied`, `rejected`, `said to be done`,
            `completed by a hook`, `not made`, or the code of an error, such as `invalid_arguments`.
        why: The reason: of the hook or the rule, of the error with its field, of the request.
        by: The hook that decided, where one did.
        arguments: The final arguments, secrets hidden, of a call that runs.
    """

    kind: str
    why: str = ""
    by: str = ""
    arguments: Mapping[str, Any] | None = field(default=None, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON shapes."""
        arguments = None if self.arguments is None else dict(self.arguments)
        return {"kind": self.kind, "why": self.why, "by": self.by, "arguments": arguments}


@dataclass(frozen=True, slots=True)
class Difference:
    """A call that would go another way, or of which the record does not say enough.

    Attributes:
        call: The call as it was recorded.
        was: Its recorded verdict.
        now: Its verdict in the replay; None where it is undecided.
        why: The difference, or the reason why it is undecided.
    """

    call: RecordedCall
    was: ReplayVerdict
    now: ReplayVerdict | None
    why: str

    @property
    def change(self) -> str:
        """The kinds of verdict before and after, in a line."""
        after = "undecided" if self.now is None else self.now.kind
        return f"{self.was.kind} -> {after}" if after != self.was.kind else f"{after}, with other arguments"

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON shapes."""
        call = self.call
        named = {
            "call_id": call.id,
            "tool": call.tool,
            "run_id": call.run_id,
            "principal": call.principal,
            "at": call.at,
        }
        now = None if self.now is None else self.now.to_dict()
        return {**named, "change": self.change, "was": self.was.to_dict(), "now": now, "why": self.why}


def recorded(call: RecordedCall) -> ReplayVerdict | None:
    """Return the verdict of a recorded call; None for one whose tool did not begin, and which no gate ended."""
    began = next((attempt for attempt in call.attempts if attempt.final is not None), None)
    last = call.attempts[-1]
    asked = False
    for part in call.attempts:
        asked = asked or bool(part.answers) or (part.request is not None and part.final is None)
        if part is began:
            break
    if began is not None:
        code = str((last.outcome or {}).get("code") or "")
        retry = code if code in RETRIES else ""
        if retry:
            return ReplayVerdict(retry, str((last.outcome or {}).get("message") or ""), arguments=began.final)
        return ReplayVerdict(APPROVED if asked else RUNS, arguments=began.final)
    if last.outcome is None:
        return None
    if any(answer.get("done") for answer in last.answers):
        return ReplayVerdict(SAID_DONE)
    by = next((str(note["hook"]) for note in reversed(last.notes) if note["decision"] != "run"), "")
    return _of(last.outcome, by, str((last.request or {}).get("reason") or ""))


def predicted(outcome: Outcome, by: str) -> ReplayVerdict:
    """Return the verdict of an outcome that a gate gave; `by` is the hook that decided, if one did."""
    match outcome:
        case Suspended():
            return ReplayVerdict(WAITS, outcome.request.reason, by)
        case Rejected():
            denied = outcome.source == "user"
            return ReplayVerdict("denied" if denied else "rejected", outcome.reason, "" if denied else by)
        case Failed():
            return ReplayVerdict(outcome.code, outcome.message)
        case _:
            return ReplayVerdict("completed by a hook", "", by)


def _of(outcome: Mapping[str, Any], by: str, reason: str) -> ReplayVerdict | None:
    match outcome["kind"]:
        case Suspended.kind:
            return ReplayVerdict(WAITS, reason, by)
        case Rejected.kind:
            denied = outcome["source"] == "user"
            return ReplayVerdict("denied" if denied else "rejected", str(outcome["reason"]), "" if denied else by)
        case Failed.kind:
            return ReplayVerdict(str(outcome["code"]), str(outcome["message"]))
        case Completed.kind:
            return ReplayVerdict("completed by a hook", "", by)
        case _:  # cancelled: which gates it had passed by then is not known
            return None


def differ(was: ReplayVerdict, now: ReplayVerdict) -> str:
    """Return the difference between two verdicts in words; empty for equal ones."""
    if was.kind != now.kind:
        by = f"{now.by}: " if now.by else ""
        before = f"{was.by}: " if was.by else ""
        return f"{by}{now.why}" if now.why or now.by else f"before: {before}{was.why}" if was.why or was.by else ""
    if was.arguments is None or now.arguments is None or equal_json(was.arguments, now.arguments):
        return ""
    before, after = was.arguments, now.arguments
    names = [name for name in {**before, **after} if not equal_json(before.get(name), after.get(name))]
    return ", ".join(f"{name}: {_shown(before, name)} -> {_shown(after, name)}" for name in names)


def _shown(arguments: Mapping[str, Any], name: str) -> str:
    text = json.dumps(arguments[name], ensure_ascii=False) if name in arguments else "nothing"
    return text if len(text) <= 80 else f"{text[:79]}…"
