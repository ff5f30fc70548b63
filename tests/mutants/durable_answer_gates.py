"""What people's answers do to durable programs: the one that was asked about goes on, as it was answered, and once."""

from __future__ import annotations

from tests.mutants.gate import Gate

__all__ = ["DURABLE_ANSWER_GATES"]

_PROGRAM = "adapters/dbos/_program.py"

DURABLE_ANSWER_GATES: tuple[Gate, ...] = (
    Gate(
        "a program goes on when it is answered",
        _PROGRAM,
        'if any(asked["id"] in answered for',
        "if any(answered for",
        ("tests/adapters/dbos/test_program_answers.py",),
    ),
)
