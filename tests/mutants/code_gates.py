"""The gates of programs: which of them run, how a paused one is resumed, and what is kept of their calls."""

from __future__ import annotations

from tests.mutants.gate import Gate

__all__ = ["CODE_GATES"]

_HOST = "code/_host.py"
_CALLS = "code/_program_calls.py"
_REPLAY = "code/_journal_host.py"
_RUNS = "code/_runner.py"
_PAUSED = "code/_paused.py"
_SIGNED = "code/_signed.py"
_STATE = "code/_program_session_state.py"
_LOOKUP = "code/_search_tools.py"

_OF_GUARDED = ("tests/code/test_guarded.py",)
_OF_RESUME = ("tests/code/test_resume.py",)
_OF_JOURNAL = ("tests/code/test_journal.py",)
_OF_PAUSED = ("tests/code/test_paused.py",)
_OF_LOOKUP = ("tests/code/test_lookup.py",)
_OF_TOOLKIT = ("tests/code/test_toolkit.py",)
_OF_SESSION = ("tests/code/test_session.py",)
_OF_LIBRARY = ("tests/code/test_program_library.py",)

_OF_SCAN = ("tests/code/test_early_scan.py",)
_OF_EARLY = ("tests/code/test_early_calls.py",)
_OF_STATE = ("tests/code/test_session_state.py",)

_SCAN = "code/_early_scan.py"
_EARLY = "code/_early_calls.py"
_LIBRARY = "code/_program_library.py"
_SAVED = "code/_saved_program.py"

CODE_GATES: tuple[Gate, ...] = (
    # --- before a program runs
    Gate(
        "check before the program",
        "code/_attempts.py",
        "        if findings:\n            self.runner.refuse(",
        "        if False:\n            self.runner.refuse(",
        ("tests/code/test_check.py",),
    ),
    Gate(
        "types before the program",
        "code/_attempts.py",
        'if self._typecheck == "error":',
        "if False:",
        ("tests/code/test_typecheck.py",),
    ),
    Gate(
        "length of a program",
        "sandbox/_source.py",
        "if len(code) > most:",
        "if False:",
        ("tests/sandbox/test_source.py", "tests/sandbox/test_limits.py"),
    ),
    Gate(
        "arguments that cannot all be named",
        _HOST,
        'summary["id"], fault=fault)',
        'summary["id"])',
        _OF_TOOLKIT,
    ),
    Gate(
        "tools that a program is offered",
        _RUNS,
        "for name, tool in self.names.items() if tool in allowed}",
        "for name, tool in self.names.items()}",
        _OF_TOOLKIT,
    ),
    # --- a call
    Gate(
        "id of a program's call",
        _REPLAY,
        "            call_id = new_call_id()\n",
        '            call_id = "call"\n',
        _OF_GUARDED,
    ),
    Gate(
        "id of a call of a program that cannot pause",
        _HOST,
        "summary = self._summary(name, new_call_id())",
        'summary = self._summary(name, "call")',
        _OF_SESSION,
    ),
    Gate(
        "secrets in the log of calls",
        "code/_program_tools.py",
        "if not self.spec.has_secrets:",
        "if True:",
        _OF_TOOLKIT,
    ),
    Gate(
        "no value for a call that waits",
        _HOST,
        "return SuspendedReply(outcome.text())",
        "return Value(None)",
        _OF_GUARDED,
    ),
    Gate(
        "no value for a call that was refused",
        _HOST,
        'return Raised("PermissionError", outcome.reason)',
        "return Value(None)",
        ("tests/code/test_replies.py",),
    ),
    # --- what can be looked up
    Gate(
        "description of what is not available",
        _LOOKUP,
        "if name not in offered or not await is_available(self._entry(name), self._context(name, run)):",
        "if name not in offered:",
        _OF_LOOKUP,
    ),
    Gate(
        "look-up of what is not offered",
        _LOOKUP,
        "if tool in allowed or tool in run.revealed}",
        "}",
        _OF_LOOKUP,
    ),
    Gate(
        "look-up of what the run may not call",
        _LOOKUP,
        "self._toolset.offered() if run.available is None else run.available",
        "self._toolset.offered()",
        _OF_LOOKUP,
    ),
    Gate(
        "search for what is not available",
        "toolsets/search.py",
        "            if await is_available(entry, ctx):\n",
        "            if True:\n",
        _OF_LOOKUP,
    ),
    Gate(
        "search without the extra for what is not available",
        _LOOKUP,
        "if await is_available(entry, ctx):",
        "if True:",
        _OF_LOOKUP,
    ),
    # --- a paused program
    Gate(
        "signature of a paused program",
        _SIGNED,
        "if not hmac.compare_digest(signature, _signature(signed, key)):",
        "if False:",
        _OF_PAUSED,
    ),
    Gate("length of the key", _SIGNED, "if len(secret) < _KEY_BYTES:", "if False:", _OF_PAUSED),
    Gate("format of a paused program", _SIGNED, 'if version != b"%d" % format:', "if False:", _OF_PAUSED),
    Gate("text of a paused program", _PAUSED, 'if paused.code_hash != data["code_hash"]:', "if False:", _OF_PAUSED),
    Gate("engine of a paused program", _RUNS, "if sandbox.engine != paused.engine:", "if False:", _OF_RESUME),
    Gate("tools of a paused program", _RUNS, "if missing := [", "if missing := [] and [", _OF_RESUME),
    Gate("counts of a paused program's run", _RUNS, "if before and not run.calls:", "if False:", _OF_RESUME),
    Gate("bound of what is kept of results", _REPLAY, "return self._size > _JOURNAL_CHARS", "return False", _OF_RESUME),
    # --- the answers
    Gate("answer to nothing", "approvals/_fit.py", "    if not found:\n", "    if False:\n", _OF_RESUME),
    Gate(
        "answer that does not fit",
        _PAUSED,
        "if isinstance(answer, Grant) and (why := misfit(answer, call.request)):",
        'if (why := ""):',
        _OF_RESUME,
    ),
    Gate("two answers to one call", _PAUSED, "if call.call_id in found:", "if False:", _OF_RESUME),
    Gate(
        "answer that was used in an earlier resumption",
        _REPLAY,
        "if isinstance(recovered, Failed) and recovered.code == ApprovalError.code:",
        "if False:",
        _OF_RESUME,
    ),
    # --- a program that is run again
    Gate(
        "a new call before the known ones",
        _CALLS,
        "            raise ReplayDiverged(\n                _described(first), f",
        "            return None\n            raise ReplayDiverged(\n                _described(first), f",
        _OF_RESUME,
    ),
    Gate(
        "arguments of a call that is made again",
        _REPLAY,
        "digest = charged(call_digest, args, kwargs)",
        "digest = charged(call_digest, [], {})",
        _OF_RESUME,
    ),
    Gate(
        "calls after a divergence",
        _REPLAY,
        "            self._diverge(error)\n            raise\n",
        "            raise\n",
        _OF_RESUME,
    ),
    Gate(
        "calls that wait are held back",
        _REPLAY,
        "        watch.start()\n"
        "        try:\n"
        "            await self._caught_up.wait()\n"
        "        finally:\n"
        "            watch.stop()\n"
        "        if self._broken is not None:\n"
        "            raise self._broken\n",
        "",
        _OF_RESUME,
    ),
    Gate(
        "calls that a program left out",
        _RUNS,
        "        host.check_end(ended.error, reruns=options.journal is not None)\n",
        "",
        _OF_RESUME,
    ),
    Gate(
        "one making of a call that was made",
        _REPLAY,
        "        if known.reply is not None:\n",
        "        if False:\n",
        _OF_RESUME,
    ),
    # --- what is written down before anything follows from it
    Gate(
        "record of a call before it is made",
        _REPLAY,
        "call.started(grant))\n        await self._flush()\n",
        "call.started(grant))\n",
        _OF_JOURNAL,
    ),
    Gate(
        "record of an outcome before the program has it",
        _REPLAY,
        "        await self._flush()\n        self.program_calls.add(call, entry)\n",
        "        self.program_calls.add(call, entry)\n",
        _OF_JOURNAL,
    ),
    Gate(
        "a call that was given up while it was written down",
        _CALLS,
        "                self.reply, self.suspended = None, None\n",
        "                pass\n",
        _OF_JOURNAL,
    ),
    # --- calls in doubt
    Gate(
        "a call in doubt",
        _CALLS,
        "call.in_doubt, call.is_running = call.in_doubt or call.is_running, False",
        "call.is_running = False",
        _OF_JOURNAL,
    ),
    Gate(
        "repetition of what is not idempotent",
        "pipeline/_admit.py",
        "    if call.tool.options.idempotent:\n",
        "    if True:\n",
        ("tests/pipeline/test_recover.py", "tests/code/test_journal.py"),
    ),
    Gate(
        "question about a call in doubt",
        "pipeline/_admit.py",
        "    refused = await settle(call, [reason_of_doubt(call)], attached)\n",
        "    refused = None\n",
        ("tests/pipeline/test_recover.py", "tests/code/test_journal.py"),
    ),
    Gate(
        "approver of a call in doubt",
        "pipeline/_approve.py",
        "if run.approver is None or self.request.in_doubt:",
        "if run.approver is None:",
        ("tests/pipeline/test_recover.py", "tests/code/test_journal.py"),
    ),
    Gate("note before a call", _REPLAY, "            self._journal.append(entry)\n", "            pass\n", _OF_JOURNAL),
    # --- sessions
    Gate(
        "one program of a conversation at a time",
        "code/_session.py",
        "        if self._is_running:\n",
        "        if False:\n",
        _OF_SESSION,
    ),
    # --- programs that are kept
    Gate(
        "check of a program that is to be kept",
        _LIBRARY,
        "        if findings := self._toolkit.check(text):\n",
        "        if False:\n",
        _OF_LIBRARY,
    ),
    Gate("tools that cannot be read from a kept program", _LIBRARY, "if facts.is_open:", "if False:", _OF_LIBRARY),
    Gate("policy of kept programs", _LIBRARY, "        if refused is not None:\n", "        if False:\n", _OF_LIBRARY),
    Gate(
        "effects in a trial",
        _LIBRARY,
        'if self._toolkit.get_tool(call.name).options.effect == "none":',
        "if True:",
        _OF_LIBRARY,
    ),
    Gate("trial that fails", _LIBRARY, 'if outcome.kind != "completed" and not held_back:', "if False:", _OF_LIBRARY),
    Gate("tools of a kept program", _LIBRARY, "await _needed(toolkit, program)", "await toolkit", _OF_LIBRARY),
    Gate("changed definition", _LIBRARY, "if changes := self.changes(program):", "if False:", _OF_LIBRARY),
    Gate("name that is taken", _LIBRARY, "await self._store.add(program, replace=replace)", "True", _OF_LIBRARY),
    Gate(
        "approval of what a model keeps",
        _LIBRARY,
        "requires_approval=requires_approval,",
        "requires_approval=False,",
        _OF_LIBRARY,
    ),
    Gate("input as a literal", _SAVED, "return repr(json.loads(", "return str(json.loads(", _OF_LIBRARY),
    Gate("number that is no JSON", _SAVED, "allow_nan=False", "allow_nan=True", _OF_LIBRARY),
    Gate(
        "names of inputs",
        _SAVED,
        '        if not is_plain or name.startswith("_") or name in _BUILTINS:\n',
        "        if False:\n",
        _OF_LIBRARY,
    ),
    Gate(
        "first line of a kept program",
        _SAVED,
        '        if not self.code.startswith(_header(self.input_names) + "\\n"):\n',
        "        if False:\n",
        _OF_LIBRARY,
    ),
    # --- calls that start before their program has come
    Gate("effect of an early call", _EARLY, 'entry.tool.options.effect == "none"', "True", _OF_EARLY),
    Gate("approval of an early call", _EARLY, "and not entry.approvals", "", _OF_EARLY),
    Gate("values of an early call", _EARLY, "and not entry.tool.is_streaming", "", _OF_EARLY),
    Gate("person before the program", _EARLY, "approver=None, approvals=None, ", "", _OF_EARLY),
    Gate("provenance before the program", _EARLY, "or self._run.features ", "", _OF_EARLY),
    Gate("journal before the program", _EARLY, " or self._run.durability.recorder is not None", "", _OF_EARLY),
    Gate(
        "schemas of the inputs of a program that is kept",
        _LIBRARY,
        "        self._check_inputs(program)\n",
        "",
        _OF_LIBRARY,
    ),
    Gate(
        "suspension of an early call",
        _EARLY,
        "if isinstance(outcome, Suspended) else outcome",
        "if False else outcome",
        _OF_EARLY,
    ),
    Gate(
        "outcome that is taken once",
        _EARLY,
        "            self.started.remove(found)\n",
        "            pass\n",
        _OF_EARLY,
    ),
    Gate("run that takes an early call", _EARLY, "or active.run is not self._run.run", "", _OF_EARLY),
    Gate("principal that takes an early call", _EARLY, "or active.principal != self._run.principal", "", _OF_EARLY),
    Gate("program that takes an early call", _EARLY, "if text.startswith(program.scan.consumed)]", "]", _OF_EARLY),
    Gate("number of early calls", _EARLY, "if len(program.calls) < self._most:", "if True:", _OF_EARLY),
    Gate("end of an early call", _EARLY, "            started.task.cancel()\n", "", _OF_EARLY),
    Gate(
        "end of what is read early",
        _SCAN,
        "            self._is_over = True\n",
        "            pass\n",
        _OF_SCAN,
    ),
    Gate(
        "names of tools in a program that comes",
        _SCAN,
        'if name == "*" or is_other or any(name == tool or tool.startswith(f"{name}__") for tool in functions):',
        "if False:",
        _OF_SCAN,
    ),
    Gate(
        "another module under the name of asyncio in a program that comes",
        _SCAN,
        'is_other = name == "asyncio" and module != name',
        "is_other = False",
        _OF_SCAN,
    ),
    Gate(
        "lone surrogates in a program that comes",
        _SCAN,
        "case ast.Constant(value=str() as value) if _is_unicode(value):",
        "case ast.Constant(value=str() as value):",
        _OF_SCAN,
    ),
    Gate(
        "depth of arguments in a program that comes",
        _SCAN,
        "case ast.List(elts=parts) if deepest:",
        "case ast.List(elts=parts):",
        _OF_SCAN,
    ),
    Gate(
        "modules in a program that comes",
        _SCAN,
        "if self.modules is None or module not in self.modules:",
        "if False:",
        _OF_SCAN,
    ),
    Gate(
        "names in a program that comes",
        _SCAN,
        "case ast.Name(id=name) if name in self._bound:",
        "case ast.Name():",
        _OF_SCAN,
    ),
    Gate("numbers in a program that comes", _SCAN, "if math.isfinite(value):", "if True:", _OF_SCAN),
    Gate(
        "unpacked arguments in a program that comes",
        _SCAN,
        "        if keyword.arg is None:\n",
        "        if False:\n",
        _OF_SCAN,
    ),
    # --- sessions that go on in another process
    Gate(
        "names in the state of a session",
        _STATE,
        'if not name.isidentifier() or name.startswith("_"):',
        "if False:",
        _OF_STATE,
    ),
    Gate(
        "shape of the state of a session",
        _STATE,
        "        if wrong or not all(",
        "        if False and not all(",
        _OF_STATE,
    ),
    Gate(
        "size of the state of a session",
        "code/_session.py",
        "    if state.size > most:\n",
        "    if False:\n",
        _OF_STATE,
    ),
    Gate(
        "counts of a session's run",
        "code/_session.py",
        "    if state.run and not run.calls:\n",
        "    if False:\n",
        _OF_STATE,
    ),
    Gate(
        "origin of what a session carries",
        "code/_session.py",
        "    if run.features:\n",
        "    if False:\n",
        _OF_STATE,
    ),
    Gate(
        "values that a session does not carry",
        "sandbox/_worker/_snapshot.py",
        "_TEXTS.get(kind) or _refuse()",
        '_TEXTS.get(kind) or ("$text", str, str)',
        _OF_STATE,
    ),
    Gate(
        "values that cannot be read in a session",
        "sandbox/_worker/_snapshot.py",
        "        except Exception:\n            continue\n",
        "        except RuntimeError:\n            continue\n",
        _OF_STATE,
    ),
)
