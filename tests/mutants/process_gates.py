"""The gates between a worker, which may say anything, and its host: what is checked of a frame, and every limit."""

from __future__ import annotations

from tests.mutants.gate import Gate

__all__ = ["PROCESS_GATES"]

_FILES = "sandbox/_program_files.py"
_OF_FILES = ("tests/sandbox/test_program_files.py",)
_DRIVE = "sandbox/_conversation.py"
_CALLS = "sandbox/_open_calls.py"
_FRAMES = "sandbox/_frames.py"
_TABLES = "sandbox/_result_tables.py"
_REPLAY = "sandbox/_replay_inputs.py"
_TIME = "sandbox/_stopwatch.py"
_OUTPUT = "sandbox/_output.py"
_MONTY = "sandbox/_monty_program.py"

_BREACH = ("tests/sandbox/test_process_breach.py",)
_READER = ("tests/sandbox/test_frames.py", *_BREACH)
_TABLE_TESTS = ("tests/sandbox/test_result_tables.py",)
_LIMITS = ("tests/sandbox/test_limits.py",)
_PAUSE = ("tests/sandbox/test_process_pause.py",)
_ENDS = ("tests/sandbox/test_worker_end.py",)
_LOST = ("tests/adapters/dbos/test_program_lost.py",)
_GUESTS = ("tests/sandbox/test_guests.py",)
_SESSIONS = ("tests/sandbox/test_process_sessions.py",)
_STREAMS = ("tests/sandbox/test_process_streams.py",)
_LAUNCH = ("tests/sandbox/test_launch.py",)

PROCESS_GATES: tuple[Gate, ...] = (
    # --- what a frame may say
    Gate("length of a frame", _FRAMES, "if size > self._most:", "if False:", _BREACH),
    Gate("bytes of a frame's blobs", _FRAMES, "if size > most:", "if False:", _READER),
    Gate("number of a frame's blobs", _FRAMES, "if len(sizes) > _BLOBS:", "if False:", _READER),
    Gate("size of a blob", _FRAMES, "type(size) is int and size >= 0", "True", _READER),
    Gate("size of a table", _TABLES, "if size > most:", "if False:", _TABLE_TESTS),
    Gate("size of all tables", _TABLES, "most -= size", "pass", _TABLE_TESTS),
    Gate("rows of a table", _TABLES, "or rows < 0", "", _TABLE_TESTS),
    Gate("blob of a table", _TABLES, "not 0 <= blob < len(blobs)", "False", _TABLE_TESTS),
    Gate("type of a table's column", _TABLES, "if bits is None:", "if False:", _TABLE_TESTS),
    Gate("bytes of a table's column", _TABLES, "if self._at + size > len(self._data):", "if False:", _TABLE_TESTS),
    Gate("values of a table's column", _TABLES, "array.validate(full=True)", "pass", _TABLE_TESTS),
    Gate(
        "bytes of tables for a program",
        _CALLS,
        "if bytes_in > self._limits.bytes_in:",
        "if False:",
        ("tests/code/test_tables.py",),
    ),
    Gate("type of a frame's field", _FRAMES, "if type(value) is not kind:", "if False:", _BREACH),
    Gate("numbers that JSON has not", _FRAMES, "from_json(body, allow_inf_nan=False)", "from_json(body)", _BREACH),
    Gate("seconds of a wait", _FRAMES, "or not 0 <= seconds < 1e9", "", _BREACH),
    Gate("line of a frame", _FRAMES, "or not 0 <= line < 1 << 31", "", _BREACH),
    Gate("number of readings of the clock", _FRAMES, "if len(readings) > _READINGS:", "if False:", _BREACH),
    Gate(
        "readings of the clock",
        _FRAMES,
        "type(reading) is int and -_INT64 <= reading < _INT64",
        "type(reading) is int",
        _BREACH,
    ),
    Gate("call of a name that was not offered", _DRIVE, "if asked.name not in self._tools:", "if False:", _BREACH),
    Gate("number of a call", _DRIVE, "if asked.id != calls.count + 1:", "if False:", _BREACH),
    Gate(
        "one wish of a stream at a time",
        _CALLS,
        "if call is None or not call.is_stream or call.is_wanted:",
        "if call is None:",
        _BREACH,
    ),
    Gate("end of a call that was never made", _CALLS, "if not 0 < number <= self.count:", "if False:", _BREACH),
    # --- limits
    Gate("calls of a program", _DRIVE, "if calls.count == self._limits.calls:", "if False:", _LIMITS),
    Gate(
        "calls in flight",
        _CALLS,
        "CallQueue(program.limits.calls_in_flight, ",
        "CallQueue(1_000_000, ",
        ("tests/sandbox/test_programs.py", *_LIMITS),
    ),
    Gate(
        "calls in flight in Monty",
        "sandbox/_monty_calls.py",
        "CallQueue(program.limits.calls_in_flight)",
        "CallQueue(1_000_000)",
        ("tests/sandbox/test_monty_calls.py",),
    ),
    Gate(
        "calls that begin in one turn of the event loop",
        "sandbox/_call_queue.py",
        "        self._waiting.append(call)\n        if self._turn is None:",
        "        self._waiting.append(call)\n        if True:",
        ("tests/sandbox/test_call_queue.py",),
    ),
    Gate(
        "time that a program computes",
        _DRIVE,
        "Stopwatch(program.limits.program_time, self._out_of_time,",
        "Stopwatch(3600.0, self._out_of_time,",
        _LIMITS,
    ),
    Gate(
        "time that the host computes for a program",
        _TIME,
        "        self._remaining -= seconds\n        self._seconds -= seconds\n",
        "        pass\n",
        ("tests/sandbox/test_stopwatch.py", *_BREACH),
    ),
    Gate(
        "time by the clock of a program that has no processor",
        _TIME,
        "if rest <= 0 or self._patience <= 0:",
        "if rest <= 0:",
        ("tests/sandbox/test_stopwatch.py",),
    ),
    Gate(
        "threads that compute while a program waits",
        _DRIVE,
        "usage.seconds - self._computed_before >",
        "0.0 >",
        _SESSIONS,
    ),
    Gate(
        "calls of a program that wait for a person",
        "code/_host.py",
        " and len(self.suspended) >= _MOST_SUSPENDED",
        " and False",
        ("tests/code/test_pauses.py",),
    ),
    Gate("threads that the kernel does not count", _DRIVE, "usage.threads > THREADS_IN_KERNEL", "False", _BREACH),
    Gate(
        "time that the host computes for a program in Monty",
        "sandbox/_monty.py",
        "if self._computed + self._charged > self._limits.program_time:",
        "if False:",
        ("tests/sandbox/test_monty.py",),
    ),
    Gate("end of a program that has no time left", _DRIVE, "if self._stopwatch.is_over:", "if False:", _BREACH),
    Gate(
        "programs at once",
        "sandbox/_program_queue.py",
        "return fits and self._programs < self._most_programs",
        "return fits",
        ("tests/sandbox/test_program_queue.py",),
    ),
    Gate(
        "memory of all programs together",
        "sandbox/_program_queue.py",
        "return fits and self._programs",
        "return self._programs",
        ("tests/sandbox/test_program_queue.py",),
    ),
    Gate(
        "number of sessions of programs",
        "sandbox/_program_queue.py",
        "if self._sessions >= self._most_sessions:",
        "if False:",
        ("tests/sandbox/test_program_queue.py",),
    ),
    Gate("threads of a session between its programs", "sandbox/_worker_sandbox.py", "worker.stop()", "pass", _SESSIONS),
    Gate(
        "sessions that are idle",
        "sandbox/_worker_sandbox.py",
        "                session.end_if_idle(",
        "                id(",
        _SESSIONS,
    ),
    Gate(
        "threads of one worker",
        "sandbox/_worker/_entry.py",
        "    limit_threads()\n",
        "",
        _SESSIONS,
    ),
    Gate("workers end before the host", "sandbox/_worker/_zygote.py", "    end_first()\n", "", _SESSIONS),
    Gate("turns of other programs", _DRIVE, "if frames % _FRAMES_A_TURN == 0:", "if False:", _BREACH),
    Gate(
        "more arguments than a tool has",
        "code/_program_tools.py",
        "if shape.names is not None and len(kwargs) > len(shape.names) + _EXCESS:\n            kwargs =",
        "if shape.names is None:\n            kwargs =",
        ("tests/code/test_arguments.py",),
    ),
    Gate(
        "time of a program that calls now and then",
        _TIME,
        "if self._remaining > 0:",
        "if True:",
        ("tests/sandbox/test_stopwatch.py",),
    ),
    Gate(
        "time between calls",
        _TIME,
        "self._remaining -= self._computed()\n            self._since = None",
        "self._since = None",
        _LIMITS,
    ),
    Gate(
        "time in which the process stood still",
        _TIME,
        "min(time.monotonic(), self._due + _GRACE)",
        "time.monotonic()",
        ("tests/sandbox/test_stopwatch.py",),
    ),
    Gate("time on the wall", _TIME, "        if seconds is not None:\n", "        if False:\n", _LIMITS),
    Gate("time of sleep", _DRIVE, "if self._sleep_left < 0:", "if False:", _BREACH),
    Gate(
        "output of a program",
        _OUTPUT,
        "if sum(self.sizes) > self._limits.output_killed_at:",
        "if False:",
        _LIMITS,
    ),
    Gate(
        "output that is kept",
        _OUTPUT,
        "self._tail_size - len(self._tail[0]) >= ",
        "0 > ",
        ("tests/sandbox/test_output.py",),
    ),
    Gate("size of a reply", _CALLS, "return frame if size <= self._limits.reply_size else", "return frame or", _LIMITS),
    Gate("size of a value of a stream", _CALLS, "if size > self._limits.reply_size:", "if False:", _STREAMS),
    Gate("calls of a program in Monty", _MONTY, "if self._calls > self._limits.calls:", "if False:", _LIMITS),
    Gate("time of sleep in Monty", _MONTY, "if not self._sleep_left >= 0:", "if False:", _LIMITS),
    Gate("output of a program in Monty", _MONTY, "self.end(ended.error)", "pass", _LIMITS),
    Gate(
        "size of a reply in Monty",
        _MONTY,
        "if isinstance(reply, Value) and json_size(reply.value) <= self._limits.reply_size:",
        "if isinstance(reply, Value):",
        _LIMITS,
    ),
    Gate(
        "call of a name that was not offered in Monty",
        _MONTY,
        "if name not in self._offered or snapshot.object_id is not None:",
        "if snapshot.object_id is not None:",
        ("tests/sandbox/test_programs.py",),
    ),
    # --- a call that waits for a person
    Gate(
        "no reply to a call that waits",
        _CALLS,
        "            call.suspended = reply\n",
        "            self.set_reply(call, Value(None))\n",
        _PAUSE,
    ),
    Gate(
        "no reply to a call that waits in Monty",
        _MONTY,
        "self._suspended[call] = (request, reply.reason)",
        "self._replies[call] = Value(None)",
        ("tests/sandbox/test_monty_resume.py",),
    ),
    # --- a program that is run again
    Gate("engine of a state", _REPLAY, 'if state.get("engine") != engine:', "if False:", _PAUSE),
    Gate(
        "version of a state of Monty",
        "sandbox/_monty_state.py",
        'if data.get("engine") != ENGINE:',
        "if False:",
        ("tests/sandbox/test_monty_resume.py",),
    ),
    Gate(
        "calls that wait are held back in the sandbox",
        _REPLAY,
        "return call in self._held_back",
        "return False",
        _PAUSE,
    ),
    Gate("a call too many when run again", _REPLAY, "if call > self._calls:", "if False:", _PAUSE),
    Gate(
        "the place of the pause",
        _REPLAY,
        "if self._waits < len(self._expected) or calls != self._calls:",
        "if False:",
        _PAUSE,
    ),
    Gate(
        "the end before the pause",
        _DRIVE,
        'if not self._inputs.is_live:\n            raise Diverged("it comes',
        'if False:\n            raise Diverged("it comes',
        _PAUSE,
    ),
    Gate(
        "a result for a call that was not made",
        _DRIVE,
        "if not self._calls.is_open(number):",
        "if False:",
        _PAUSE,
    ),
    # --- a program whose process is gone
    Gate("an end by the kernel's own limit", "sandbox/_worker/_zygote.py", "computed >= limits.cpu", "False", _ENDS),
    Gate("an end from outside", "sandbox/_worker_end.py", 'if name == "SIGKILL":', "if False:", _ENDS),
    Gate("calls of a program that is gone", _DRIVE, "self._keeps_calls and self._calls.finish()", "False", _LOST),
    Gate(
        "calls of a program that is gone in Monty",
        "sandbox/_monty.py",
        "if self._is_journalled and asked.error is not None and",
        "if False and asked.error is not None and",
        _LOST,
    ),
    # --- files and artifacts
    Gate("names of artifacts", _FILES, "any(_problem(name) for name in names)", "False", _BREACH),
    Gate("the number of artifacts", _FILES, "if len(names) > min(most, len(blobs)):", "if False:", _BREACH),
    Gate("names of files", _FILES, "if why is not None:", "if False:", _OF_FILES),
    Gate("the size of files", _FILES, "if room < 0:", "if False:", _OF_FILES),
    Gate(
        "writing to artifacts alone",
        "sandbox/_worker/_files.py",
        "self.refuse(path, errno.EACCES)\n        if self.is_folder(path):",
        "pass\n        if self.is_folder(path):",
        _OF_FILES,
    ),
    Gate(
        "the size of artifacts",
        "sandbox/_worker/_files.py",
        "if others + size > self._room:",
        "if False:",
        _OF_FILES,
    ),
    Gate(
        "modules that a program may import",
        "sandbox/_worker/imports.py",
        "if level or not known_name:",
        "if level:",
        ("tests/sandbox/worker/test_programs.py",),
    ),
    # --- sessions and workers
    Gate(
        "the end of a session after a kill",
        "sandbox/_worker_sandbox.py",
        "            elif self._data is None:\n",
        "            elif False:\n",
        _SESSIONS,
    ),
    Gate(
        "one program of a session at a time", "sandbox/_worker_sandbox.py", "if self._is_busy:", "if False:", _SESSIONS
    ),
    Gate(
        "why a program ends with its worker",
        _DRIVE,
        "return _NO_WORKER if self._wire.is_over else None",
        "return None",
        _BREACH,
    ),
    # --- guests elsewhere
    Gate(
        "the version of a guest",
        "sandbox/_zygote.py",
        'if not is_own and message.get("version")',
        'if False and ""',
        _GUESTS,
    ),
    Gate(
        "layers that are required",
        "sandbox/_layers.py",
        'if not any(ready.layers.get(layer) == "on" for layer in alternatives):',
        "if False:",
        _LAUNCH,
    ),
    Gate(
        "layers that do not hold",
        "sandbox/_layers.py",
        "for layer, why in ready.broken.items():",
        "for layer, why in dict[str, str]().items():",
        _LAUNCH,
    ),
)
