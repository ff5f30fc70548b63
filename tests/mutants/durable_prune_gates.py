"""What keeps the removal of old work from taking what waits, runs, is in doubt, or may go on."""

from __future__ import annotations

from tests.mutants.gate import Gate

__all__ = ["DURABLE_PRUNE_GATES"]

_PRUNE = "adapters/dbos/_prune.py"
_EVENTS = "record/_event_log.py"

_OF_PRUNE = ("tests/adapters/dbos/test_prune.py",)
_OF_EVENTS = ("tests/record/test_prune.py",)

DURABLE_PRUNE_GATES: tuple[Gate, ...] = (
    # --- turns
    Gate("a turn that waits for an answer stays", _PRUNE, "return []  # it waits", "return ids  # it waits", _OF_PRUNE),
    Gate(
        "a turn that goes on stays",
        _PRUNE,
        "        if not _is_old(status, limit):\n            return []\n",
        "",
        _OF_PRUNE,
    ),
    Gate(
        "a turn that would be put again stays", _PRUNE, "if status.workflow_id in unfinished:", "if False:", _OF_PRUNE
    ),
    Gate("a turn that a left one would put again stays", _PRUNE, '"ENQUEUED", "DELAYED",', '"ENQUEUED",', _OF_PRUNE),
    Gate(
        "a turn that one that was given up would put again stays",
        _PRUNE,
        '"MAX_RECOVERY_ATTEMPTS_EXCEEDED", "CANCELLED")',
        '"CANCELLED")',
        _OF_PRUNE,
    ),
    Gate(
        "a turn that a resumed one would put again stays",
        _PRUNE,
        '"MAX_RECOVERY_ATTEMPTS_EXCEEDED", "CANCELLED")',
        '"MAX_RECOVERY_ATTEMPTS_EXCEEDED")',
        _OF_PRUNE,
    ),
    Gate("work that has not ended stays", _PRUNE, "status.status in _ENDED and ended", "ended", _OF_PRUNE),
    Gate("work that ended later stays", _PRUNE, "is not None and ended < limit", "is not None", _OF_PRUNE),
    # --- programs
    Gate("a program that waits stays", _PRUNE, 'program.state == "paused":', "False:", _OF_PRUNE),
    Gate("a program that goes on stays", _PRUNE, "if all(_is_old(row, limit) for row in there)", "if True", _OF_PRUNE),
    # --- workers
    Gate("a worker that lives stays", _PRUNE, '("stopped", "recovered")', '("running", "stopped")', _OF_PRUNE),
    Gate("a worker that stopped later stays", _PRUNE, "seen_at < before.timestamp()", "seen_at > 0", _OF_PRUNE),
    Gate("a worker that holds work stays", _PRUNE, "        _workers.c.id.not_in(holders),\n", "", _OF_PRUNE),
    # --- what is kept beside them
    Gate("a dry run removes no work", _PRUNE, "            if not dry_run:\n", "            if True:\n", _OF_PRUNE),
    Gate(
        "a request that no call has used stays",
        "approvals/_sql_store.py",
        'requests WHERE used_at < ? AND unended = 0 AND number > ?"',
        "requests WHERE COALESCE(used_at, '') < ? AND unended = 0 AND number > ?\"",
        _OF_PRUNE,
    ),
    Gate(
        "events of a call that has not ended stay",
        _EVENTS,
        "a.ended_at < ?",
        "COALESCE(a.ended_at, '') < ?",
        _OF_EVENTS,
    ),
    Gate(
        "events of what holds a call that has not ended stay",
        _EVENTS,
        "(c.ended_at IS NULL OR c.ended_at >= ?)",
        "c.ended_at >= ?",
        _OF_EVENTS,
    ),
    Gate(
        "the latest event stays",
        _EVENTS,
        "\n    AND position < (SELECT MAX(position) FROM toolcrib_events)",
        "",
        _OF_EVENTS,
    ),
)
