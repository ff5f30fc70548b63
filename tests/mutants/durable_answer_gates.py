"""What people's answers do to durable programs: the one that was asked about goes on, as it was answered, and once."""

from __future__ import annotations

from tests.mutants.gate import Gate

__all__ = ["DURABLE_ANSWER_GATES"]

_PROGRAM = "adapters/dbos/_program.py"
_TESTS = ("tests/adapters/dbos/test_program_answers.py",)

DURABLE_ANSWER_GATES: tuple[Gate, ...] = (
    Gate(
        "a program goes on when it is answered",
        _PROGRAM,
        'if any(asked["id"] in answered or',
        "if any(answered or",
        _TESTS,
    ),
    Gate(
        "standing answer to a program's call in doubt",
        _PROGRAM,
        '(asked["id"] in allowed and not doubt)',
        '(asked["id"] in allowed)',
        _TESTS,
    ),
    Gate(
        "grant of a call of a durable program",
        _PROGRAM,
        '"grants": [answer for answer in found if isinstance(answer, Grant)],',
        "",
        ("tests/adapters/dbos/test_program.py",),
    ),
    Gate(
        "denial of a call of a durable program",
        _PROGRAM,
        '"denials": [answer for answer in found if isinstance(answer, Denial)],',
        "",
        _TESTS,
    ),
)
