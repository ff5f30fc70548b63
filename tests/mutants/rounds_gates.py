"""What keeps a round of calls to what was asked, answered and approved, also where its host executes them."""

from __future__ import annotations

from tests.mutants.gate import Gate

__all__ = ["ROUNDS_GATES"]

ROUNDS_GATES: tuple[Gate, ...] = (
    Gate(
        "missing, extra and mismatched results",
        "rounds/_plan.py",
        "    if problems:\n        raise CommitError(tuple(problems))\n",
        "",
        ("tests/rounds/test_commit.py", "tests/rounds"),
    ),
    Gate(
        "calls that wait when a round is committed",
        "rounds/_plan.py",
        """        if call.group == "suspended":\n            problems.append(""",
        """        if call.group == "suspended":\n            list[str]().append(""",
        ("tests/rounds/test_commit.py", "tests/rounds"),
    ),
    Gate(
        "the provider's rules for the transcript",
        "rounds/_plan.py",
        "        _require_valid(state, target, shapes(rest), known.ids)\n",
        "",
        ("tests/rounds/test_commit.py", "tests/rounds"),
    ),
    Gate(
        "a transcript that its host edited",
        "rounds/_transcript.py",
        "if self.format is not format or not _same(transcript[:size], self.items):",
        "if self.format is not format:",
        ("tests/rounds/test_transcript.py",),
    ),
    Gate(
        "approval of a call that its host executes",
        "rounds/_round_call.py",
        "        if edited is not None or hooks is not None or not self.asked:\n",
        "        if edited is not None or hooks is not None:\n",
        ("tests/rounds/test_call.py", "tests/rounds"),
    ),
    Gate(
        "every gate for input that its host edited",
        "pipeline/_pipeline.py",
        "            return await pass_edited(live) or live\n",
        "            return live\n",
        ("tests/rounds/test_edited.py", "tests/rounds"),
    ),
    Gate(
        "edited input of a call that is executed",
        "rounds/_round_call.py",
        "        edited = self.edited()\n",
        "        edited = None\n",
        ("tests/rounds/test_edited.py", "tests/rounds"),
    ),
    Gate(
        "edited input that its host executed itself",
        "rounds/_plan.py",
        "        await _ask_about_edits(state.calls, answers)\n",
        "",
        ("tests/rounds/test_edited.py", "tests/rounds"),
    ),
    Gate(
        "the state of a call that is admitted again",
        "pipeline/_pipeline.py",
        """            if live.state not in ("received", "admitted"):\n""",
        "            if False:\n",
        ("tests/pipeline/test_recover.py",),
    ),
    Gate(
        "edits past hooks that did not come along",
        "pipeline/_decide.py",
        "if call.lost_hooks and not call.extra_hooks:",
        "if False:",
        ("tests/rounds/test_saved.py",),
    ),
    Gate(
        "edits of a call whose hooks did not come along",
        "pipeline/_live_call.py",
        "return self.plan.guarded or bool(self.extra_hooks) or self.lost_hooks",
        "return self.plan.guarded or bool(self.extra_hooks)",
        ("tests/rounds/test_saved.py",),
    ),
    Gate(
        "one execution of a call",
        "pipeline/_live_call.py",
        """        self.state, self.begun = "executing", True\n""",
        """        self.state = "executing"\n""",
        ("tests/rounds/test_call.py", "tests/rounds"),
    ),
    Gate(
        "one execution of a call that was saved",
        "pipeline/_recover.py",
        """    call.state, call.doubts = data.get("state", "admitted"), data.get("doubts", 0)\n""",
        """    call.state, call.doubts = "admitted", data.get("doubts", 0)\n""",
        ("tests/rounds/test_saved.py", "tests/rounds"),
    ),
    Gate(
        "the doubt about a call that was executing when it was saved",
        "pipeline/_recover.py",
        """    if call.state == "executing" or (call.doubts""",
        """    if (call.doubts""",
        ("tests/rounds/test_saved.py", "tests/pipeline/test_recover.py"),
    ),
    Gate(
        "availability and approval of a round that was saved",
        "rounds/_round_json.py",
        "    made = await pipeline.recover(restored, run)\n",
        "    made = await pipeline.recover({**restored.to_dict(), 'state': 'executed', 'value': 0}, run)\n",
        ("tests/rounds/test_saved.py", "tests/rounds"),
    ),
    Gate(
        "another pass that changes an approved call",
        "pipeline/_admit.py",
        "        if refused is None and (call.arguments is not before or call.asks != asks):",
        "        if False:",
        ("tests/pipeline/test_readmit.py",),
    ),
    Gate(
        "the mark of a tool's text that reads as a refusal",
        "rounds/_results.py",
        'return f"Result: {text}" if text.startswith(REJECTION_PREFIX) else text',
        "return text",
        ("tests/rounds/test_commit.py", "tests/rounds"),
    ),
    Gate(
        "another answer than a hook's",
        "rounds/_plan.py",
        "and not _is_outcome(result, call.outcome):",
        "and False:",
        ("tests/rounds/test_commit.py", "tests/rounds"),
    ),
    Gate(
        "type of an output",
        "tools/_outputs.py",
        "    if adapter is None:\n",
        "    if True:\n",
        ("tests/rounds/test_call.py", "tests/rounds"),
    ),
)
