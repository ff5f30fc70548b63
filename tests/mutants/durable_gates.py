"""What keeps durable work from being done twice, from losing an answer, and from being taken by two."""

from __future__ import annotations

from tests.mutants.gate import Gate

__all__ = ["DURABLE_GATES"]

_RECORDED = "adapters/dbos/_recorded.py"
_WORK = "adapters/dbos/_turn_workflow.py"
_WORKERS = "adapters/dbos/_workers.py"
_CONTINUE = "adapters/dbos/_continuation.py"
_ENGINE = "adapters/dbos/_engine.py"
_AGENT = "adapters/dbos/_agent.py"
_CONTEXT = "adapters/dbos/_context.py"
_PROGRAM = "adapters/dbos/_program.py"
_JOURNAL = "adapters/dbos/_program_journal.py"
_RUN_STORE = "adapters/dbos/_run_store.py"

_OF_RECOVERY = ("tests/adapters/dbos/test_recovery.py",)
_OF_WORKERS = ("tests/adapters/dbos/test_workers.py",)
_OF_AGENTS = ("tests/adapters/dbos/test_agent.py",)
_OF_ONCE = ("tests/adapters/dbos/test_once.py",)
_OF_PROGRAMS = ("tests/adapters/dbos/test_program.py",)

DURABLE_GATES: tuple[Gate, ...] = (
    # --- a turn
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
        "                self._unit.state, binding.taken_up = state, True\n",
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
    # --- what is written down of a call
    Gate(
        "one question about a call in doubt",
        _RECORDED,
        "toolcrib:in-doubt:{unit.work_id}",
        "toolcrib:in-doubt:{id(unit)}",
        _OF_ONCE,
    ),
    Gate(
        "secrets in the question about a call in doubt",
        _RECORDED,
        "        arguments=plan.spec.dump(arguments, redact=True),\n",
        "        arguments=plan.spec.dump(arguments, redact=False),\n",
        _OF_ONCE,
    ),
    Gate("whose call is in doubt", _RECORDED, "principal=run.principal,", "", _OF_ONCE),
    Gate(
        "approved arguments of a turn that is taken up",
        _RECORDED,
        'prepared.approved = state["approved"]',
        "prepared.approved = None",
        _OF_ONCE,
    ),
    Gate(
        "refusal of a turn that is taken up",
        _RECORDED,
        'return outcome_from_dict(state["outcome"])',
        "return await super().prepare(ToolCall('place', {'amount': 5}), scope)",
        _OF_ONCE,
    ),
    Gate(
        "result that is typed for a call in doubt only",
        _RECORDED,
        "if asked is None or IN_DOUBT not in asked.request.metadata or",
        "if asked is None or",
        _OF_ONCE,
    ),
    Gate(
        "who answered for a turn",
        _RECORDED,
        "            self._unit.note(request, answer)\n",
        "            pass\n",
        _OF_ONCE,
    ),
    Gate("what a person typed in the record", _RECORDED, 'said.pop("user_input", None)', "pass", _OF_ONCE),
    Gate("arguments of a person in the record", _RECORDED, 'said.pop("override_args", None)', "pass", _OF_ONCE),
    Gate("tool in the name of a step", _RECORDED, "{kind} {turn.tool_name} {", "{kind} {", _OF_ONCE),
    Gate("arguments in the name of a step", _RECORDED, "data['kwargs'])[:16]", "{})[:16]", _OF_ONCE),
    # --- what goes on after a person
    Gate(
        "one continuation of an answer",
        _CONTINUE,
        "Placement(continuation_id(status.workflow_id, request_id), ",
        "Placement(f'{continuation_id(status.workflow_id, request_id)}-{id(result)}', ",
        _OF_ONCE,
    ),
    Gate(
        "a request that is asked again has another continuation",
        _CONTINUE,
        "    if workflow_id == request_id:\n",
        "    if False:\n",
        _OF_AGENTS,
    ),
    Gate("denial of a durable turn", _AGENT, "asked.deny(message, approver)", "asked.grant(approver)", _OF_AGENTS),
    Gate(
        "changes of the context once",
        _CONTEXT,
        "                connection.execute(sa.insert(_applied).values(work_id=work_id, agent=self._agent.name))\n",
        "",
        _OF_ONCE,
    ),
    # --- a program
    Gate("fence of a program's journal", _JOURNAL, "if self._owner is not None:", "if False:", _OF_PROGRAMS),
    Gate(
        "fence of a program that is taken up",
        _JOURNAL,
        "            self._fence(connection)\n            row =",
        "            row =",
        _OF_PROGRAMS,
    ),
    Gate(
        "fence of a program's line",
        _JOURNAL,
        "                self._fence(connection)\n                connection",
        "                connection",
        _OF_PROGRAMS,
    ),
    Gate(
        "fence of a program's end",
        _JOURNAL,
        "            self._fence(connection)\n            values",
        "            values",
        _OF_PROGRAMS,
    ),
    Gate("one line of each number", _JOURNAL, '"number": self._kept + n,', '"number": id(line) % 10**9,', _OF_PROGRAMS),
    Gate(
        "lines after one that was lost",
        _JOURNAL,
        "if self._error is None:\n            self._kept",
        "if True:\n            self._kept",
        _OF_PROGRAMS,
    ),
    Gate(
        "a line that is not written yet",
        _JOURNAL,
        "await asyncio.wait([self._writing])  # which goes on when this is cancelled",
        "return",
        _OF_PROGRAMS,
    ),
    Gate(
        "a program that is over",
        _JOURNAL,
        'or (row.generation == generation and row.state != "running")',
        "",
        _OF_PROGRAMS,
    ),
    Gate(
        "a program that went on",
        _JOURNAL,
        "if row.generation > generation or",
        "if",
        _OF_PROGRAMS,
    ),
    Gate("a program that was cancelled", _JOURNAL, 'if row.state == "cancelled":', "if False:", _OF_PROGRAMS),
    Gate(
        "a program that is cancelled by its workflow",
        "adapters/dbos/_admin.py",
        '        cancel_run(client, str(_input(status).get("run", work_id)))\n',
        "        pass\n",
        _OF_PROGRAMS,
    ),
    Gate(
        "standing answer to a turn in doubt",
        _CONTINUE,
        " if IN_DOUBT not in entry.request.metadata]",
        "]",
        ("tests/adapters/dbos/test_console.py",),
    ),
    Gate(
        "a program under its workflow's id",
        _PROGRAM,
        "approvals=store, program_id=run)",
        "approvals=store)",
        ("tests/adapters/dbos/test_console.py",),
    ),
    Gate(
        "what a stopped worker leaves",
        "adapters/dbos/_worker_sink.py",
        'if self.leaving and event.kind == "closed"',
        'if False and event.kind == "closed"',
        ("tests/adapters/dbos/test_console.py",),
    ),
    Gate(
        "the end that a killed worker did not tell",
        "adapters/dbos/_lost_work.py",
        "if now() - datetime.fromisoformat(told) < quiet:",
        "if False:",
        ("tests/adapters/dbos/test_console.py",),
    ),
    Gate(
        "principal of a durable program",
        _PROGRAM,
        "principal=principal or given.principal",
        "principal=given.principal",
        _OF_PROGRAMS,
    ),
    Gate(
        "an answer that a run used up",
        _RUN_STORE,
        "await self._store.take(request) if used is None else used",
        "await self._store.take(request)",
        _OF_ONCE,
    ),
    Gate(
        "an answer that a run used up and was given",
        _RUN_STORE,
        "if await self._used(request.id) != answer:",
        "if True:",
        _OF_ONCE,
    ),
    # --- the store on Postgres
    Gate(
        "one writer of approvals at a time",
        "adapters/dbos/_postgres_store.py",
        "_LOCK if write else None",
        "None",
        ("tests/adapters/dbos/test_approvals.py",),
    ),
)
