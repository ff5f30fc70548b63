"""What keeps durable work from being done twice, from losing an answer, and from being taken by two."""

from __future__ import annotations

from tests.mutants.gate import Gate

__all__ = ["DURABLE_GATES"]

_RECORDED = "durable/_turn_execution.py"
_WORK = "durable/_turn_workflow.py"
_WORKERS = "adapters/dbos/_workers.py"
_CONTINUE = "adapters/dbos/_continuation.py"
_ENGINE = "adapters/dbos/_engine.py"
_AGENT = "adapters/dbos/_agent.py"
_CONTEXT = "adapters/dbos/_context.py"
_PROGRAM = "adapters/dbos/_program.py"
_JOURNAL = "adapters/dbos/_program_journal.py"
_WORK_STORE = "durable/_work_store.py"

_OF_RECOVERY = ("tests/adapters/dbos/test_recovery.py",)
_OF_WORKERS = ("tests/adapters/dbos/test_workers.py",)
_OF_AGENTS = ("tests/adapters/dbos/test_agent.py",)
_OF_ONCE = ("tests/adapters/dbos/test_once.py",)
_OF_LOST = ("tests/adapters/dbos/test_program_lost.py",)
_OF_PARTITIONS = ("tests/adapters/dbos/test_partitions.py",)
_OF_PROGRAMS = ("tests/adapters/dbos/test_program.py",)

DURABLE_GATES: tuple[Gate, ...] = (
    # --- a turn
    Gate(
        "decisions are asked once",
        "durable/_turn_workflow.py",
        '                binding.stored, binding.taken_up = state["call"], True\n',
        "                binding.taken_up = True\n",
        ("tests/adapters/dbos/test_recovery.py",),
    ),
    Gate(
        "hooks are told once",
        "durable/_turn_workflow.py",
        '                binding.stored, binding.taken_up = state["call"], True\n',
        '                binding.stored = state["call"]\n',
        ("tests/adapters/dbos/test_recovery.py",),
    ),
    Gate(
        "a request is closed for another about the same call alone",
        "approvals/_ledger_rules.py",
        "older.definition != newer.definition and all(getattr(older, n) == getattr(newer, n) for n in same)",
        "older.definition != newer.definition",
        ("tests/approvals/test_stores.py",),
    ),
    Gate(
        "a name belongs to one living worker",
        _WORKERS,
        "            if found is not None and _lives(found, at):\n",
        "            if False:\n",
        _OF_WORKERS,
    ),
    Gate(
        "a worker whose lease may have run out renews it before it begins",
        _WORKERS,
        "        while self._clock() - self._renewed > LEASE_SECONDS:\n",
        "        while False:\n",
        _OF_WORKERS,
    ),
    Gate(
        "a worker that was given up begins nothing",
        _ENGINE,
        "        if lease is not None and not self.lost.is_set() and await lease.hold():\n",
        "        if True:\n",
        _OF_WORKERS,
    ),
    Gate(
        "a worker that was given up begins no call of a program",
        _PROGRAM,
        "            fence=fence,\n",
        "",
        _OF_PROGRAMS,
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
        "an answer is left to the worker that has the work",
        "durable/_work_store.py",
        "await self._fence()  # one that was handed over would use the answer up, and begin nothing",
        "pass",
        ("tests/durable/test_work_store.py",),
    ),
    Gate(
        "one question about a call in doubt",
        "pipeline/_approve.py",
        'uuid5(NAMESPACE_URL, f"toolcrib:in-doubt:{key}")',
        "uuid4()",
        ("tests/pipeline/test_recover.py", "tests/adapters/dbos/test_once.py"),
    ),
    Gate(
        "secrets in the question about a call in doubt",
        "pipeline/_live_call.py",
        '            "arguments": self.args.for_approval,\n',
        '            "arguments": self.args.canonical.values,\n',
    ),
    Gate(
        "whose call is in doubt",
        "pipeline/_live_call.py",
        '            "principal": run.principal,\n',
        "",
        ("tests/pipeline/test_recover.py",),
    ),
    Gate(
        "approved arguments of a turn that is taken up",
        "pipeline/_admit.py",
        '    return await approve(call, attached, occasion="recovered")\n\n\nasync def _resume',
        "    return None\n\n\nasync def _resume",
        ("tests/pipeline/test_recover.py", "tests/rounds"),
    ),
    Gate(
        "result that is typed for a call in doubt only",
        "approvals/_fit.py",
        "if grant.done is not None and not request.in_doubt:",
        "if False:",
        ("tests/pipeline/test_recover.py",),
    ),
    Gate(
        "who answered for a turn",
        _WORK_STORE,
        "        if isinstance(answer, Grant | Denial):\n            self._note(request, answer)\n",
        "",
        ("tests/adapters/dbos/test_once.py",),
    ),
    Gate(
        "what a person typed in the record",
        "durable/_turn_execution.py",
        'for secret in ("user_input", "override_args", "done"):',
        'for secret in ("override_args", "done"):',
        ("tests/adapters/dbos/test_once.py",),
    ),
    Gate(
        "arguments of a person in the record",
        "durable/_turn_execution.py",
        'for secret in ("user_input", "override_args", "done"):',
        'for secret in ("user_input", "done"):',
        ("tests/adapters/dbos/test_once.py",),
    ),
    Gate("tool in the name of a step", _RECORDED, "{kind} {turn.tool_name} {", "{kind} {", _OF_ONCE),
    Gate(
        "arguments in the name of a step",
        _RECORDED,
        "arguments_in_names(turn, data['kwargs']))[:16]",
        "{})[:16]",
        _OF_ONCE,
    ),
    # --- what goes on after a person
    Gate(
        "one continuation of an answer",
        _CONTINUE,
        "work_id, partition = continuation_id(status.workflow_id, request_id), ",
        "work_id, partition = f'{continuation_id(status.workflow_id, request_id)}-{id(result)}', ",
        _OF_ONCE,
    ),
    Gate(
        "a request that is asked again has another continuation",
        _CONTINUE,
        "    if workflow_id == request_id:\n",
        "    if False:\n",
        _OF_AGENTS,
    ),
    Gate(
        "denial of a durable turn",
        "durable/_answers.py",
        "asked.deny(*unnamed, by=by, message=message, **unknown)",
        "asked.grant(by)",
        _OF_AGENTS,
    ),
    Gate(
        "newer form of durable work",
        "adapters/dbos/_workflow.py",
        "    except (UnknownHereError, NewerForm) as error:\n",
        "    except UnknownHereError as error:\n",
        ("tests/adapters/dbos/test_stored_forms.py",),
    ),
    Gate(
        "newer form in a gate or a body of durable work",
        "errors/_calls.py",
        "        if signal is not None and isinstance(error, NewerForm):\n",
        "        if False:\n",
        ("tests/adapters/dbos/test_stored_forms.py",),
    ),
    Gate(
        "version of a stored form",
        "calls/_stored.py",
        "        if version > FORM_VERSIONS[form]:\n",
        "        if False:\n",
        ("tests/stored/test_forms.py",),
    ),
    Gate(
        "a turn that this worker does not know is left to others",
        _AGENT,
        '        raise UnknownHereError(f"the agent `{error.name}`") from error\n',
        "        raise\n",
        _OF_WORKERS,
    ),
    Gate(
        "a program that this worker does not know is left to others",
        _PROGRAM,
        '        raise UnknownHereError(f"the toolkit `{error.name}`") from error\n',
        "        raise\n",
        _OF_WORKERS,
    ),
    Gate(
        "a program of which one tool is gone waits",
        _PROGRAM,
        '    toolkit.require(data.get("tools", ()))',
        "    pass",
        _OF_WORKERS,
    ),
    Gate(
        "a paused program of which one tool is gone waits",
        _PROGRAM,
        "            toolkit.require(paused.functions)\n",
        "            pass\n",
        _OF_WORKERS,
    ),
    Gate(
        "a retried turn asks before it does its call again",
        "adapters/dbos/_retry.py",
        "keep=1 if begun else 0",
        "keep=0",
        ("tests/adapters/dbos/test_admin.py",),
    ),
    Gate(
        "a retried program asks before it does its call again",
        "code/_program_calls.py",
        "                self.reply, self.in_doubt = None, True\n",
        "                self.begun = 0\n",
        ("tests/adapters/dbos/test_admin.py",),
    ),
    Gate(
        "work that has not failed is not retried",
        "adapters/dbos/_admin.py",
        '    if work.state != "failed":\n',
        "    if False:\n",
        ("tests/adapters/dbos/test_admin.py",),
    ),
    Gate(
        "changes of the context once",
        _CONTEXT,
        "                connection.execute(sa.insert(_applied).values(work_id=work_id, agent=self._key(client)))\n",
        "",
        _OF_ONCE,
    ),
    # --- a program
    Gate("an end that is no doing of a program", "code/_journal_host.py", "in _RUN_AGAIN:", "in ():", _OF_LOST),
    Gate("the tries of a program", _WORKERS, "        if tries < retry.attempts:\n", "        if True:\n", _OF_LOST),
    Gate(
        "an approved call that is retried is made again",
        _WORK_STORE,
        "is_retried = entry.request.call_id in self._retried",
        "is_retried = False",
        ("tests/adapters/dbos/test_retries.py",),
    ),
    Gate(
        "a fork is given only results that are there",
        "adapters/dbos/_fork.py",
        "        if call.is_open:\n",
        "        if False:\n",
        ("tests/adapters/dbos/test_fork.py",),
    ),
    Gate(
        "tries that a person asks for",
        "adapters/dbos/_retry.py",
        '    values["attributes"] = attributes\n',
        "",
        _OF_LOST,
    ),
    Gate(
        "fence of a program's journal", "adapters/dbos/_workflow.py", "if owner is not None:", "if False:", _OF_PROGRAMS
    ),
    Gate(
        "fence of a turn that looks cut off",
        "durable/_turn_workflow.py",
        "await host.hold()",
        "pass",
        _OF_RECOVERY,
    ),
    Gate(
        "fence of a program that is taken up",
        _JOURNAL,
        "with self._holding() as connection:\n            row =",
        "with self._client.engine.begin() as connection:\n            row =",
        _OF_PROGRAMS,
    ),
    Gate(
        "fence of a program's line",
        _JOURNAL,
        "with self.holding() as connection:",
        "with self.holding.args[0].engine.begin() as connection:",
        _OF_PROGRAMS,
    ),
    Gate(
        "fence of a program's end",
        _JOURNAL,
        "with self._holding() as connection:\n            values",
        "with self._client.engine.begin() as connection:\n            values",
        _OF_PROGRAMS,
    ),
    Gate(
        "one line of each number",
        "code/_journal.py",
        "self._table.append(execute, self._name, lines, number)",
        "self._table.append(execute, self._name, lines)",
        _OF_PROGRAMS,
    ),
    Gate(
        "lines after one that was lost",
        "code/_journal.py",
        "if self._error is None:\n            self._stored",
        "if True:\n            self._stored",
        _OF_PROGRAMS,
    ),
    Gate(
        "a line that is not written yet",
        "code/_journal.py",
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
        _PROGRAM,
        "    await asyncio.to_thread(cancel_run, client, program_id)  #",
        "    #",
        ("tests/adapters/dbos/test_cancel.py",),
    ),
    Gate(
        "the part of a cancelled program that runs",
        _PROGRAM,
        "    generation = 1 if run is None else run.generation\n    after",
        "    generation = 1\n    after",
        ("tests/adapters/dbos/test_cancel.py",),
    ),
    Gate(
        "a cancelled program's part that waits in its queue",
        _PROGRAM,
        " if await client.status(after) is None else after\n",
        "\n",
        ("tests/adapters/dbos/test_cancel.py",),
    ),
    Gate(
        "the requests of a cancelled program",
        _PROGRAM,
        '        await deny_cancelled(client.approvals, request_id, "program")\n',
        "        pass\n",
        ("tests/adapters/dbos/test_cancel.py",),
    ),
    Gate(
        "a program that was cancelled while it ended",
        _JOURNAL,
        '_runs.c.run == self._run, _runs.c.state != "cancelled")',
        "_runs.c.run == self._run)",
        _OF_PROGRAMS,
    ),
    Gate(
        "a running call of a cancelled program",
        _PROGRAM,
        "        await unless_cancelled(running, workflow_id)\n",
        "        await running\n",
        ("tests/adapters/dbos/test_cancel.py",),
    ),
    # --- the time and the key of work
    Gate(
        "the time of work",
        "adapters/dbos/_workflow.py",
        "_deadline(arguments[-1].get(TIMEOUT))",
        "_deadline(None)",
        ("tests/adapters/dbos/test_limits.py",),
    ),
    Gate(
        "the key of a turn after an answer",
        _CONTINUE,
        "status.priority or 0, goes_on.get(KEY), ",
        "status.priority or 0, ",
        ("tests/adapters/dbos/test_limits.py",),
    ),
    Gate(
        "the key of a program after an answer",
        _PROGRAM,
        "priority, data.get(KEY), ",
        "priority, ",
        ("tests/adapters/dbos/test_limits.py",),
    ),
    Gate(
        "the partition of a turn after an answer",
        _CONTINUE,
        "goes_on.get(KEY), partition=partition)",
        "goes_on.get(KEY))",
        _OF_PARTITIONS,
    ),
    Gate(
        "the partition of a program after an answer",
        _PROGRAM,
        "data.get(KEY), partition=partition)",
        "data.get(KEY))",
        _OF_PARTITIONS,
    ),
    Gate(
        "the lease in claims of one at a time for each partition",
        "adapters/dbos/_engine.py",
        "kind.start_queued_partitioned_workflows, claiming)",
        "kind.start_queued_partitioned_workflows, database)",
        _OF_PARTITIONS,
    ),
    Gate(
        "a partition that a queue needs",
        "adapters/dbos/_placement.py",
        "if self.is_partitioned and partition is None:",
        "if False:",
        _OF_PARTITIONS,
    ),
    Gate(
        "only what may be repeated is tried again",
        "adapters/dbos/_agent.py",
        "may_repeat = turn.tool.options.idempotent",
        "may_repeat = True",
        ("tests/adapters/dbos/test_retries.py",),
    ),
    Gate(
        "a paused schedule enqueues nothing",
        "adapters/dbos/_schedules.py",
        'if found is None or found["status"] == _PAUSED:',
        "if found is None:",
        ("tests/adapters/dbos/test_schedules.py",),
    ),
    Gate(
        "a schedule makes up from the last tick that is there",
        "adapters/dbos/_schedules.py",
        "datetime.fromtimestamp(mark, UTC), now)",
        'datetime.fromisoformat(str(before["last_fired_at"])), now)',
        ("tests/adapters/dbos/test_schedules.py",),
    ),
    Gate(
        "the key of work that is retried",
        "adapters/dbos/_retry.py",
        '"deduplication_id": key}',
        '"deduplication_id": None}',
        ("tests/adapters/dbos/test_limits.py",),
    ),
    Gate(
        "cancelled work whose request is denied",
        "adapters/dbos/_admin.py",
        'if status.status == "SUCCESS" or data.get(CLOSED):',
        "if False:",
        ("tests/adapters/dbos/test_cancel.py",),
    ),
    Gate(
        "standing answer to a turn in doubt",
        "approvals/_fit.py",
        "    if request.in_doubt and grant.standing:\n",
        "    if False:\n",
        ("tests/pipeline/test_recover.py", "tests/adapters/dbos/test_console.py"),
    ),
    Gate(
        "a program under its workflow's id",
        _PROGRAM,
        "            program_id=run,\n",
        "",
        ("tests/adapters/dbos/test_console.py",),
    ),
    Gate(
        "what a stopped worker leaves",
        "adapters/dbos/_sinks.py",
        '(self.leaving and event.data["outcome"] == "cancelled")',
        "False",
        ("tests/adapters/dbos/test_console.py",),
    ),
    Gate(
        "the end that a killed worker did not tell",
        "adapters/dbos/_lost_work.py",
        "if await asyncio.to_thread(log.quiet_since, activity, quiet) is None:",
        "if False:",
        ("tests/adapters/dbos/test_console.py",),
    ),
    Gate(
        "principal of a durable program",
        _PROGRAM,
        'principal=data["principal"] or arguments.principal',
        "principal=arguments.principal",
        _OF_PROGRAMS,
    ),
    Gate(
        "a turn whose worker was given up asks about nothing",
        _WORK_STORE,
        "approvals=WorkStore(approvals, execution, tools, fence=may_begin, held=held),",
        "approvals=WorkStore(approvals, execution, tools, held=held),",
        _OF_WORKERS,
    ),
    Gate(
        "a program whose worker was given up asks about nothing",
        _PROGRAM,
        "waits=journal.waits, fence=engine.may_begin, work_id=run, retried=retried)",
        "waits=journal.waits, work_id=run, retried=retried)",
        _OF_PROGRAMS,
    ),
    Gate(
        "an execution whose work was handed over asks about nothing",
        _WORK_STORE,
        "await self._fence()  # asked at each try",
        "pass  # asked at each try",
        _OF_WORKERS,
    ),
    # --- the store on Postgres
    Gate(
        "one writer of approvals at a time",
        "database/_database.py",
        "self._lock if write else None",
        "None",
        ("tests/adapters/dbos/test_approvals.py",),
    ),
)
