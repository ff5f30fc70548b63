"""Gates of people's answers: they reach the request that was looked at, and the program that it is of goes on, once."""

from __future__ import annotations

from tests.mutants.gate import Gate

__all__ = ["DURABLE_ANSWER_GATES"]

_PROGRAM = "adapters/dbos/_program.py"
_COMMAND = "cli/_approvals.py"

_OF_COMMAND = ("tests/cli/test_approvals.py",)

DURABLE_ANSWER_GATES: tuple[Gate, ...] = (
    Gate(
        "terminal or token of who approves",
        _COMMAND,
        "    if unproven:\n",
        "    if True:\n",
        _OF_COMMAND,
    ),
    Gate(
        "token of an approver",
        _COMMAND,
        "        if holder is None:\n",
        "        if False:\n",
        _OF_COMMAND,
    ),
    Gate(
        "holder of a token",
        _COMMAND,
        "        if name not in (None, holder):\n",
        "        if False:\n",
        _OF_COMMAND,
    ),
    Gate(
        "a program goes on when it is answered",
        "adapters/dbos/_program_journal.py",
        "query = _PAUSED.where(_requests.c.request.in_(ids[start : start + _BATCH]))",
        "query = _PAUSED",
        ("tests/adapters/dbos/test_program_answers.py",),
    ),
    Gate(
        "an answer on the command line is confirmed",
        _COMMAND,
        "            _confirm(entries, answers)\n",
        "            pass\n",
        _OF_COMMAND,
    ),
    Gate(
        "a request is answered by an id, and not by any beginning of one",
        _COMMAND,
        "    if not found and len(start) >= SHORT_ID:\n",
        "    if not found:\n",
        _OF_COMMAND,
    ),
)
