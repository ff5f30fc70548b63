"""The gates of one state: a call that is executed once, its way back, the run and its views."""

from __future__ import annotations

from tests.mutants.gate import Gate

__all__ = ["RECOVERY_GATES"]

_RECOVER = "pipeline/_recover.py"
_PIPELINE = "pipeline/_pipeline.py"
_APPROVE = "pipeline/_approve.py"
_EXECUTE = "pipeline/_execute.py"
_BODY = "tools/_body.py"
_CALL = "pipeline/_live_call.py"
_RUN = "pipeline/_run.py"
_LEDGER = "approvals/_ledger.py"

_OF_RECOVERY = ("tests/pipeline/test_recover.py",)
_OF_BEGINNINGS = ("tests/pipeline/test_begin.py",)
_OF_RESUMING = ("tests/pipeline/test_resume.py", "tests/test_ways.py")
_OF_APPROVALS = ("tests/pipeline/test_approve.py", "tests/pipeline/test_recover.py", "tests/test_ways.py")
_OF_RUNS = ("tests/pipeline/test_run.py",)
_OF_RENDERING = ("tests/calls/test_render.py", "tests/test_ways.py")
_OF_STREAMS = ("tests/pipeline/test_stream.py", "tests/test_ways.py")

RECOVERY_GATES: tuple[Gate, ...] = (
    # --- the way back
    Gate(
        "availability on recovery",
        _RECOVER,
        "        refused = await available(call)\n",
        "        refused = None\n",
        _OF_RECOVERY,
    ),
    Gate(
        "a call in doubt that its tool does not take any more",
        _RECOVER,
        "if begun and not call.tool.options.idempotent:",
        "if False:",
        _OF_RECOVERY,
    ),
    Gate(
        "arguments that a tool does not take any more",
        _RECOVER,
        'if refused is None and call.state != "executed" and not edited:',
        "if False:",
        _OF_RECOVERY,
    ),
    Gate(
        "a turn inside a tool that is suspended",
        _EXECUTE,
        "    if error.tool:  # of",
        "    if False:  # of",
        ("tests/test_ways.py",),
    ),
    Gate(
        "offer and limits on recovery",
        _RECOVER,
        "refused = refusal(call, counted=call.run.has_counted(call.counted_in))",
        "refused = None",
        _OF_RECOVERY,
    ),
    Gate(
        "a recovered call is counted once",
        _RECOVER,
        "counted=call.run.has_counted(call.counted_in)",
        "counted=False",
        _OF_RECOVERY,
    ),
    Gate(
        "a recovered call is counted in another run",
        _RECOVER,
        "counted=call.run.has_counted(call.counted_in)",
        "counted=True",
        _OF_RECOVERY,
    ),
    Gate(
        "answer of another call",
        _RECOVER,
        "if given is not None and given.call_id not in (None, call.id):",
        "if False:",
        _OF_APPROVALS,
    ),
    Gate(
        "a call that was begun is in doubt",
        _RECOVER,
        'if call.state == "executing" or (call.doubts and call.state == "suspended"):',
        "if False:",
        _OF_RECOVERY,
    ),
    Gate(
        "a request says that its call is in doubt",
        _RECOVER,
        "        call.doubts += 1  # so",
        "        call.doubts += 0  # so",
        _OF_RECOVERY,
    ),
    Gate(
        "gates of a call of which its arguments alone are known",
        _RECOVER,
        "refused = await pass_gates(call, ask=False)",
        "refused = None",
        _OF_RECOVERY,
    ),
    Gate(
        "doubt of a call of which its arguments alone are known",
        _RECOVER,
        "        refused = await _resolve_doubt(call, given, used)\n",
        "        refused = None\n",
        _OF_RECOVERY,
    ),
    Gate(
        "a tool that took the place of another",
        _RECOVER,
        "isinstance(state, LiveCall) and state.plan.entry.tool is plan.entry.tool",
        "isinstance(state, LiveCall)",
        _OF_RESUMING,
    ),
    Gate(
        "a given result in the place of the tool's",
        _APPROVE,
        "        if answer.done is not None:\n",
        "        if False:\n",
        _OF_RECOVERY,
    ),
    Gate(
        "a call with a given result is not executed",
        _CALL,
        'return self.state == "executed" and (said or self.resumed is not None)',
        "return False",
        _OF_RECOVERY,
    ),
    Gate(
        "type of a given result",
        _PIPELINE,
        "            checked_output(plan.tool, plan.name, answer.done.value)\n",
        "            pass\n",
        _OF_RECOVERY,
    ),
    Gate(
        "type of a stored result",
        _APPROVE,
        "if stored and (why := _wrong_result(call, answer)):",
        "if False:",
        _OF_RECOVERY,
    ),
    Gate(
        "type of the result that a program is given",
        "code/_runner.py",
        "            self._pipeline.check_answer(answer.tool, answer)\n",
        "            pass\n",
        ("tests/code/test_journal.py",),
    ),
    Gate(
        "type of the result that a durable agent is given",
        "adapters/dbos/_answers.py",
        "        checked_output(self._tool(asked.tool), asked.tool, result)\n",
        "",
        ("tests/adapters/dbos/test_recovery.py",),
    ),
    Gate(
        "type of a result on the command line",
        "cli/_approvals.py",
        "        _require_fit(entry.request, value)\n",
        "",
        ("tests/cli/test_approvals.py",),
    ),
    Gate(
        "type of a result in the console",
        "console/_answer_form.py",
        "misfits(request.returns or {}, result)",
        "misfits({}, result)",
        ("tests/console/test_api.py",),
    ),
    Gate(
        "a second doubt is asked about by a request of its own",
        _APPROVE,
        "{call.id}:{call.doubts}:{call.digest()}",
        "{call.id}:{call.digest()}",
        _OF_RECOVERY,
    ),
    Gate(
        "a suspended call in doubt is asked about by the request that it has",
        _APPROVE,
        'known = call.state == "suspended" or (run.approvals is not None and not in_doubt)',
        "known = run.approvals is not None and not in_doubt",
        _OF_RECOVERY,
    ),
    Gate(
        "the grant by which a call was begun serves what it was given for",
        _APPROVE,
        "used is not None and not misfit(used, request)",
        "used is not None",
        _OF_RECOVERY,
    ),
    Gate(
        "a standing grant is kept by its store alone",
        "code/_journal.py",
        "grant is None or grant.standing or",
        "grant is None or",
        ("tests/code/test_journal.py",),
    ),
    Gate(
        "times that a program's call was begun",
        "code/_journal_host.py",
        "begun=entry.begun, used",
        "begun=1, used",
        ("tests/code/test_journal.py", "tests/code/test_resume.py"),
    ),
    Gate(
        "times that a call was begun in a journal of another process",
        "code/_file_journal.py",
        "entry.begun + 1",
        "1",
        ("tests/code/test_journal.py", "tests/code/test_resume.py"),
    ),
    Gate(
        "times that a call was begun in a paused program",
        "code/_journal.py",
        'entry.begun = data.get("begun", 1)',
        "entry.begun = 1",
        ("tests/code/test_journal.py", "tests/code/test_resume.py"),
    ),
    # --- once
    Gate(
        "a call is executed once",
        _CALL,
        '        if self.state != "admitted" or (first is not None and first.begun):\n',
        "        if False:\n",
        _OF_RECOVERY,
    ),
    Gate(
        "a call that did not pass its gates",
        _CALL,
        'if self.state != "admitted" or (first is not None and first.begun):',
        "if first is not None and first.begun:",
        _OF_RECOVERY,
    ),
    Gate(
        "one execution of all copies of a call",
        _CALL,
        "        if first is not None:\n            first.begun = True\n        if self.trace",
        "        if self.trace",
        _OF_RECOVERY,
    ),
    Gate(
        "one execution in a run of a call that was written",
        _CALL,
        "if mark and not self.run.use_once(mark):",
        "if False:",
        _OF_RECOVERY,
    ),
    Gate(
        "executions that a run knows of in another process",
        _RUN,
        '        state.used.update(counted.get("used", ()))\n',
        "",
        _OF_RECOVERY,
    ),
    Gate(
        "a call is kept before its tool runs",
        _BODY,
        "                await begin()\n            return await self._timed(values, timeout)\n",
        "                pass\n            return await self._timed(values, timeout)\n",
        _OF_RECOVERY,
    ),
    Gate(
        "a streaming call is kept before its tool runs",
        _BODY,
        "            await begin()\n        source =",
        "            pass\n        source =",
        _OF_RECOVERY,
    ),
    Gate(
        "a call behind a lock is kept before its tool runs",
        _BODY,
        "                await begin()\n            return await self._timed(values, timeout, thread)\n",
        "                pass\n            return await self._timed(values, timeout, thread)\n",
        _OF_BEGINNINGS,
    ),
    Gate("a fence holds a tool back", _EXECUTE, "        await call.run.fence()\n", "        pass\n", _OF_BEGINNINGS),
    # --- the run and its views
    Gate(
        "a view of a run is frozen",
        _RUN,
        '        raise AttributeError(f"a view of a run is frozen',
        '        object.__setattr__(self, name, value)\n        str(f"a view of a run is frozen',
        _OF_RUNS,
    ),
    Gate("a view has no limits of its own", _RUN, "        if unknown:\n", "        if False:\n", _OF_RUNS),
    Gate("a view points to the run itself", _RUN, 'write(self, "_of", run.run)', 'write(self, "_of", run)', _OF_RUNS),
    Gate("a view follows its run", _RUN, "if view is not None and name not in own:", "if False:", _OF_RUNS),
    Gate(
        "slot for each step of a stream",
        _EXECUTE,
        "        async with call.run.slot():\n            with call.within():\n                value",
        "        if True:\n            with call.within():\n                value",
        _OF_STREAMS,
    ),
    Gate(
        "an inner execution shares its slot",
        _RUN,
        "if outer is not None and outer.run is self.run:",
        "if False:",
        ("tests/pipeline/test_run.py", "tests/test_ways.py"),
    ),
    Gate(
        "what a tool runs inside belongs to its run",
        _RUN,
        "    outer = current_run()\n    if outer is None:\n        return Run(",
        "    outer = None\n    if outer is None:\n        return Run(",
        ("tests/test_ways.py",),
    ),
    Gate(
        "a cancellation of the tool's own is a failure",
        _EXECUTE,
        "return task is not None and not task.cancelling()",
        "return False",
        ("tests/test_ways.py",),
    ),
    Gate(
        "a cancellation of the call is none of the tool's",
        _EXECUTE,
        "return task is not None and not task.cancelling()",
        "return True",
        ("tests/test_ways.py",),
    ),
    Gate(
        "tools that were renewed",
        _PIPELINE,
        "self._plans.clear()",
        "pass",
        ("tests/pipeline/test_execute.py",),
    ),
    Gate(
        "text of an unexpected error",
        "pipeline/_failures.py",
        'if run.errors == "message":',
        "if True:",
        ("tests/pipeline/test_errors.py",),
    ),
    Gate(
        "no question of a stream that gave a value",
        "pipeline/_execute.py",
        "if call.gave_value:  # begun anew",
        "if False:  # begun anew",
        ("tests/test_ways.py",),
    ),
    Gate(
        "text of an error that a tool met inside",
        "pipeline/_failures.py",
        "if isinstance(error, _FOR_MODELS) or (",
        "if isinstance(error, ToolcribError) or (",
        ("tests/pipeline/test_errors.py",),
    ),
    # --- what a model is shown
    Gate(
        "cap of a result",
        "pipeline/_plan.py",
        "self.max_result_chars = entry.max_result_chars",
        "self.max_result_chars = None",
        _OF_RENDERING,
    ),
    Gate(
        "cap of a text",
        "calls/_render.py",
        "text = cut(value, limit)",
        "text = value",
        _OF_RENDERING,
    ),
    Gate(
        "cap of a value",
        "calls/_render.py",
        "shown = cut(text, limit)",
        "shown = text",
        _OF_RENDERING,
    ),
    Gate(
        "cap of the text around media",
        "calls/_render.py",
        "if kept is not None or (limit is not None and len(words) > limit):",
        "if kept is not None:",
        _OF_RENDERING,
    ),
    Gate(
        "errors that a server on a network masks",
        "adapters/mcp_server/_http.py",
        'given if given.errors is not None else replace(given, errors="masked")',
        "given",
        ("tests/adapters/mcp_server/test_errors.py",),
    ),
    # --- arguments
    Gate(
        "numbers that are finite",
        "schema/_model.py",
        "protected_namespaces=(), allow_inf_nan=False)",
        "protected_namespaces=(), allow_inf_nan=True)",
        ("tests/schema",),
    ),
    # --- standing grants
    Gate(
        "standing grant that a run keeps",
        _APPROVE,
        "        call.run.stand(answer)\n",
        "        pass\n",
        ("tests/test_ways.py",),
    ),
    Gate(
        "standing grant of a run that fits",
        _RUN,
        "(grant for grant in self._state.grants if not misfit(grant, request))",
        "iter(self._state.grants)",
        _OF_APPROVALS,
    ),
    Gate(
        "a flag of the command line is no answer about a call in doubt",
        "cli/_approver.py",
        "if (tool in flags.approve or flags.yes) and not request.in_doubt:",
        "if tool in flags.approve or flags.yes:",
        ("tests/cli/test_approve.py",),
    ),
    Gate(
        "a client gives a result of a call in doubt alone",
        "adapters/mcp_server/_elicitation.py",
        'if request.in_doubt and result.action == "accept" and',
        'if result.action == "accept" and',
        ("tests/adapters/mcp_server/test_elicit.py",),
    ),
    Gate("principal of a grant", _LEDGER, "if not _serves(grant, request.principal):", "if False:", _OF_APPROVALS),
    Gate(
        "definition of the tool in a grant",
        _LEDGER,
        "if grant.definition is not None and grant.definition != request.definition:",
        "if False:",
        ("tests/pipeline/test_approve.py", "tests/approvals"),
    ),
    Gate(
        "definition of the tool in a request",
        _APPROVE,
        "        definition=plan.definition,\n",
        "",
        ("tests/pipeline/test_approve.py", "tests/approvals"),
    ),
)
