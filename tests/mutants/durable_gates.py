"""What keeps a durable turn from being made twice, from losing an answer, and from being taken by two."""

from __future__ import annotations

from tests.mutants.gate import Gate

__all__ = ["DURABLE_GATES"]

_RECORDED = "adapters/dbos/_recorded.py"
_WORK = "adapters/dbos/_turn_work.py"
_WORKERS = "adapters/dbos/_workers.py"
_CONTINUE = "adapters/dbos/_continue.py"
_ENGINE = "adapters/dbos/_engine.py"

_OF_RECOVERY = ("tests/adapters/dbos/test_recovery.py",)
_OF_WORKERS = ("tests/adapters/dbos/test_workers.py",)
_OF_AGENTS = ("tests/adapters/dbos/test_agent.py",)

DURABLE_GATES: tuple[Gate, ...] = (
    Gate(
        "a call in doubt asks",
        _RECORDED,
        "        if prepared.plan.tool.options.idempotent:\n            return prepared\n",
        "        if True:\n            return prepared\n",
        _OF_RECOVERY,
    ),
    Gate(
        "decisions are asked once",
        _RECORDED,
        "        if unit.state is not None:\n",
        "        if unit.state is None and False:\n",
        _OF_RECOVERY,
    ),
    Gate(
        "hooks are told once",
        _WORK,
        "                self._unit.state, door.taken_up = state, True\n",
        "                self._unit.state = state\n",
        _OF_RECOVERY,
    ),
    Gate(
        "an answer belongs to the work that used it up",
        _RECORDED,
        "            if waiting is None or waiting.request.id != request.id:\n",
        "            if False:\n",
        _OF_WORKERS,
    ),
    Gate(
        "a name belongs to one living worker",
        _WORKERS,
        "            if found is not None and _lives(found, at):\n",
        "            if False:\n",
        _OF_WORKERS,
    ),
    Gate(
        "a living worker is not handed over",
        _WORKERS,
        "        if not force and _lives(found, at):\n",
        "        if False:\n",
        _OF_WORKERS,
    ),
    Gate(
        "a worker that was given up has no lease",
        _WORKERS,
        'connection.execute(mine.values(token=uuid4().hex, state="recovered"))',
        'connection.execute(mine.values(state="recovered"))',
        _OF_WORKERS,
    ),
    Gate(
        "one engine per process",
        _ENGINE,
        "        if _current is not None:\n",
        "        if False:\n",
        _OF_AGENTS,
    ),
)
