"""What keeps a worker's name its own, and work from going on by itself that nobody let go on."""

from __future__ import annotations

from tests.mutants.gate import Gate

__all__ = ["DURABLE_WORKER_GATES"]

_WORKERS = "adapters/dbos/_workers.py"
_ENGINE = "adapters/dbos/_engine.py"
_EXECUTIONS = "adapters/dbos/_executions.py"
_RESTATE = "adapters/restate/_host.py"

_OF_OUTAGES = ("tests/adapters/dbos/test_outage.py",)
_OF_WORKERS = ("tests/adapters/dbos/test_workers.py",)
_OF_CANCELLING = ("tests/adapters/dbos/test_cancel.py",)
_OF_RESTATE = ("tests/adapters/restate/test_restate.py",)

DURABLE_WORKER_GATES: tuple[Gate, ...] = (
    # --- outages
    Gate(
        "a tool begins when its beginning is kept",
        _ENGINE,
        "            await self.sink.sink.written()\n",
        "            pass\n",
        ("tests/adapters/dbos/test_console.py",),
    ),
    Gate(
        "time in which a program waits for its journal",
        "code/_journal.py",
        "        with self.waits.counted():\n",
        "        if True:\n",
        _OF_OUTAGES,
    ),
    Gate(
        "time in which a program waits for the approval store",
        "durable/_work_store.py",
        "nullcontext() if self._waits is None else self._waits.counted()",
        "nullcontext()",
        _OF_OUTAGES,
    ),
    Gate(
        "time in which the host waits is not counted",
        "sandbox/_stopwatch.py",
        "- self._since - waited)",
        "- self._since)",
        ("tests/sandbox/test_stopwatch.py",),
    ),
    Gate(
        "DBOS waits five seconds at most between two tries",
        "adapters/dbos/_client.py",
        "    time.sleep(min(seconds, _LONGEST_PAUSE))\n",
        "    time.sleep(seconds)\n",
        _OF_OUTAGES,
    ),
    Gate(
        "a file that is only read again is not back",
        "database/_outage.py",
        '    if connection.dialect.name != "sqlite" or _wrote(connection):\n',
        "    if True:\n",
        _OF_OUTAGES,
    ),
    Gate(
        "a worker that stops takes no work, however late its threads come back",
        _WORKERS,
        "                if not takes_work():\n",
        "                if False:\n",
        _OF_WORKERS,
    ),
    # --- whose work it is
    Gate(
        "work of another application is left alone",
        "adapters/dbos/_client.py",
        "workflow_ids=[workflow_id], application_name=self.database.application)",
        "workflow_ids=[workflow_id])",
        ("tests/adapters/dbos/test_applications.py",),
    ),
    # --- who holds a name
    Gate(
        "a lease that was lost is not renewed",
        _WORKERS,
        "_workers.c.token == self.token)\n            renewed",
        "_workers.c.token != '')\n            renewed",
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
        " or _has_lapsed(row, at):",
        ":",
        _OF_WORKERS,
    ),
    Gate(
        "processes of other hosts",
        _WORKERS,
        "return not _is_here(row) or _born",
        "return _born",
        _OF_WORKERS,
    ),
    Gate(
        "a worker whose process is gone",
        _WORKERS,
        'or _born(row.pid) == row.token.rpartition("@")[2]',
        "or True",
        _OF_WORKERS,
    ),
    Gate(
        "no engine in a fork",
        _ENGINE,
        "if _current is not None and os.getpid() != _process:",
        "if False:",
        _OF_WORKERS,
    ),
    Gate(
        "work is taken under a lease alone",
        _WORKERS,
        "self.check(connection)  #",
        "pass  #",
        _OF_WORKERS,
    ),
    Gate(
        "work of an engine that is left goes back",
        _ENGINE,
        "await _tried(partial(last_seen if self.lost.is_set() else hand_back, client, self.worker_id))",
        "True",
        _OF_WORKERS,
    ),
    Gate(
        "an outage is no answer",
        "durable/_outage.py",
        "if not is_outage(error):",
        "if True:",
        ("tests/adapters/dbos/test_outage.py",),
    ),
    Gate(
        "a paused turn that is cancelled",
        "adapters/dbos/_continuation.py",
        "await _continue(client, status, request_id, never=True)",
        "break",
        ("tests/adapters/dbos/test_admin.py",),
    ),
    Gate(
        "a program that its sandbox had not begun",
        "code/_runner.py",
        "begins = not paused.state and (paused.replays or paused.question is not None)",
        "begins = not paused.state and paused.question is not None",
        ("tests/code/test_journal.py",),
    ),
    # --- what goes on
    Gate(
        "what a standing grant was given for",
        "durable/_answered.py",
        "if any(not misfit(grant, entry.request) for grant in standing)]",
        "if standing]",
        ("tests/adapters/dbos/test_continue.py",),
    ),
    Gate(
        "work that has ended by itself",
        "adapters/dbos/_admin.py",
        'if work.state not in ("cancelled", "given up"):',
        "if False:",
        ("tests/adapters/dbos/test_admin.py",),
    ),
    # --- what was cancelled, and has gone on since
    Gate(
        "a call of an execution that has lost its workflow",
        _EXECUTIONS,
        "if lost := [key for key in running if key not in holders]:",
        "if lost := [key for key in running if key[0] not in dict(holders)]:",
        _OF_CANCELLING,
    ),
    Gate(
        "work is held where its request is kept in another database",
        "adapters/dbos/_workflow.py",
        "            if write:\n                self._check()\n",
        "",
        _OF_CANCELLING,
    ),
    Gate(
        "a turn goes on when its earlier call has been stopped",
        "adapters/dbos/_host.py",
        "        await self._engine.executions.stop_earlier(self._work_id)\n",
        "        pass\n",
        _OF_CANCELLING,
    ),
    Gate(
        "a program goes on when its earlier calls have been stopped",
        "adapters/dbos/_program.py",
        "    await engine.executions.stop_earlier(workflow_id)\n",
        "    pass\n",
        _OF_CANCELLING,
    ),
    Gate(
        "a stream goes on when its earlier call has been stopped",
        "durable/_turn_workflow.py",
        "            if not task.done():\n                task.cancel()\n",
        "            if False:\n                task.cancel()\n",
        _OF_CANCELLING,
    ),
    Gate(
        "a request of a cancelled program that is not in its journal",
        "adapters/dbos/_program.py",
        "if request.call_id in calls and request.id not in asked",
        "if request.run_id == program_id and request.id not in asked",
        _OF_CANCELLING,
    ),
    Gate(
        "the end of an execution is not that of a later one",
        "approvals/_ledger_rules.py",
        "if execution is None or execution_id not in (None, execution.id):",
        "if execution is None:",
        ("tests/approvals/test_sqlite.py",),
    ),
    # --- attempts of Restate
    Gate(
        "an attempt that heard late begins no call of a turn that another has",
        _RESTATE,
        'if await self._answer("taken"):',
        "if False:",
        _OF_RESTATE,
    ),
    Gate(
        "an attempt counts for some seconds after Restate has said so",
        _RESTATE,
        "self._clock.monotonic() - self._counted_at > _COUNTS_SECONDS",
        "False",
        _OF_RESTATE,
    ),
    Gate(
        "the next attempt says that it has the turn",
        _RESTATE,
        '        await self._answer("take")\n',
        "",
        _OF_RESTATE,
    ),
    Gate(
        "the next attempt waits until those before can begin nothing",
        _RESTATE,
        "        await self._clock.sleep(_COUNTS_SECONDS)\n",
        "",
        _OF_RESTATE,
    ),
    # --- migrations
    Gate(
        "events are written while an index is made",
        "database/_tables.py",
        "is_of_indexes = all(map(_INDEX.match, step))",
        "is_of_indexes = False",
        ("tests/database/test_migration.py",),
    ),
    Gate(
        "one process migrates at a time",
        "database/_database.py",
        "        while not execute(",
        "        while False and not execute(",
        ("tests/database/test_migration.py",),
    ),
)
