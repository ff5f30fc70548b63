"""What keeps a worker's name its own, and work from going on by itself that nobody let go on."""

from __future__ import annotations

from tests.mutants.gate import Gate

__all__ = ["DURABLE_WORKER_GATES"]

_WORKERS = "adapters/dbos/_workers.py"
_ENGINE = "adapters/dbos/_engine.py"

_OF_WORKERS = ("tests/adapters/dbos/test_workers.py",)

DURABLE_WORKER_GATES: tuple[Gate, ...] = (
    # --- who holds a name
    Gate(
        "a lease that was lost is not renewed",
        _WORKERS,
        "_workers.c.token == self.token)\n            return",
        "_workers.c.token != '')\n            return",
        _OF_WORKERS,
    ),
    Gate(
        "a lease that was lost is not given back",
        _WORKERS,
        "_workers.c.token == self.token)\n            connection",
        "_workers.c.token != '')\n            connection",
        _OF_WORKERS,
    ),
    Gate(
        "a worker that says nothing is lost",
        _WORKERS,
        " or at - row.seen_at > LEASE_SECONDS:",
        ":",
        _OF_WORKERS,
    ),
    Gate(
        "processes of other hosts",
        _WORKERS,
        "if row.host != socket.gethostname():",
        "if False:",
        _OF_WORKERS,
    ),
    Gate(
        "a worker whose process is gone",
        _WORKERS,
        "except ProcessLookupError:\n        return False",
        "except ProcessLookupError:\n        return True",
        _OF_WORKERS,
    ),
    Gate(
        "no engine in a fork",
        _ENGINE,
        "if _current is not None and os.getpid() != _process:",
        "if False:",
        _OF_WORKERS,
    ),
    # --- what goes on
    Gate(
        "what a standing grant was given for",
        "adapters/dbos/_continuation.py",
        "if any(not misfit(grant, entry.request) for grant in standing)]",
        "if standing]",
        ("tests/adapters/dbos/test_continue.py",),
    ),
    Gate(
        "work that has ended by itself",
        "adapters/dbos/_admin.py",
        'if status.status in ("SUCCESS", "ERROR"):',
        "if False:",
        ("tests/adapters/dbos/test_admin.py",),
    ),
)
