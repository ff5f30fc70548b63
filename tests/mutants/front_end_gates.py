"""The gates of front ends: who asks, what of a request counts, and that nothing runs twice."""

from __future__ import annotations

from tests.mutants.gate import Gate

__all__ = ["FRONT_END_GATES"]

_SESSIONS = ("tests/serving/test_front_end.py",)
_AG_UI = ("tests/adapters/ag_ui/test_app.py",)
_FURTHER = ("tests/adapters/test_further_calls.py",)
_VERCEL = ("tests/adapters/vercel_ai/test_app.py",)

FRONT_END_GATES: tuple[Gate, ...] = (
    Gate(
        "why an answer was not taken is shown",
        "serving/_front_end.py",
        '            self._problems[request.id] = f"Nothing was approved: {error}."\n\n',
        "\n",
        ("tests/adapters/test_further_calls.py",),
    ),
    Gate(
        "front end: a session is its principal's",
        "serving/_front_end.py",
        '"principal": principal, "id"',
        '"principal": "", "id"',
        _SESSIONS,
    ),
    Gate(
        "front end: one exchange at a time",
        "serving/_front_end.py",
        "if key in self._active:",
        "if False:",
        _SESSIONS,
    ),
    Gate(
        "front end: how many exchanges at a time",
        "serving/_front_end.py",
        "if len(self._active) >= self.limits.exchanges:",
        "if False:",
        _SESSIONS,
    ),
    Gate(
        "front end: a conversation that another process answers",
        "serving/_front_end.py",
        'if stored is not None and state["claimed"] and not is_gone and now() - stored.since < _CLAIMED_FOR:',
        "if False:",
        _SESSIONS,
    ),
    Gate(
        "front end: of two processes one goes on",
        "serving/_front_end.py",
        "if not await self.kept.replace(claim, stored):",
        "if False:",
        _SESSIONS,
    ),
    Gate(
        "front end: the length of a message",
        "serving/_front_end.py",
        "if len(request.text) > self.limits.message_chars:",
        "if False:",
        _SESSIONS,
    ),
    Gate(
        "front end: a message that was answered",
        "serving/_front_end.py",
        'if state["answered"]:',
        "if False:",
        _SESSIONS,
    ),
    Gate(
        "front end: every request is answered before anything runs",
        "serving/_front_end.py",
        "if not any(waiting.request.id in pending for waiting in plan.suspended):",
        "if True:",
        _SESSIONS,
    ),
    Gate(
        "front end: an answer is for a request of the conversation",
        "serving/_front_end.py",
        "answer = self.request.answers.get(suspended.request.id)",
        "answer = next(iter(self.request.answers.values()), None)",
        _SESSIONS,
    ),
    Gate(
        "front end: a call that begins is kept",
        "serving/_front_end.py",
        "recorder=exchange if run.durability.recorder is None else run.durability.recorder,",
        "recorder=run.durability.recorder,",
        _SESSIONS,
    ),
    Gate(
        "front end: the principal of a request",
        "serving/http/_front_end_app.py",
        "if not principal:",
        "if False:",
        _SESSIONS,
    ),
    Gate(
        "front end: a page of another site",
        "serving/http/_front_end_app.py",
        'if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":',
        "if False:",
        _SESSIONS,
    ),
    Gate(
        "front end: the size of a request",
        "serving/http/_front_end_app.py",
        "if len(received) > most:",
        "if False:",
        _SESSIONS,
    ),
    Gate(
        "AG-UI: a yes is true and nothing like it",
        "adapters/ag_ui/_app.py",
        "approved: StrictBool",
        "approved: Any",
        _AG_UI,
    ),
    Gate(
        "AG-UI: an answer that is cancelled",
        "adapters/ag_ui/_app.py",
        'if entry.status == "cancelled":',
        "if False:",
        _AG_UI,
    ),
    Gate(
        "Vercel AI: a yes is true and nothing like it",
        "adapters/vercel_ai/_app.py",
        "approved: StrictBool | None = None",
        "approved: Any = None",
        _VERCEL,
    ),
    Gate(
        "Vercel AI: a part that is an answer",
        "adapters/vercel_ai/_app.py",
        'if part.state == "approval-responded" and',
        "if",
        _VERCEL,
    ),
    Gate(
        "front end: the words of a yes for further calls",
        "serving/_front_end.py",
        "if shown is None or answer.words != shown.text():",
        "if shown is None:",
        _FURTHER,
    ),
    Gate(
        "front end: the words that were shown last",
        "serving/_front_end.py",
        "exchange.shown = {id: Grant.from_dict(grant)",
        "exchange.shown = {} and {id: Grant.from_dict(grant)",
        _FURTHER,
    ),
    Gate(
        "front end: further calls where the host allows them",
        "serving/_front_end.py",
        "if longest is None or answer.arguments is not None:",
        "if answer.arguments is not None:",
        _FURTHER,
    ),
    Gate(
        "front end: the longest time for further calls",
        "serving/_front_end.py",
        "answer.reason, longest=longest)",
        "answer.reason, longest=None)",
        _FURTHER,
    ),
    Gate(
        "front end: a no is a no, whatever stands beside it",
        "serving/_front_end.py",
        "if answer.approved and (answer.further is not None or answer.words):",
        "if answer.approved and answer.further is not None or answer.words:",
        _FURTHER,
    ),
    Gate(
        "front end: a no with bounds is a no",
        "serving/_front_end.py",
        "if answer.approved and (answer.further is not None or answer.words):",
        "if answer.further is not None or answer.approved and answer.words:",
        _FURTHER,
    ),
)
