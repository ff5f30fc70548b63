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
        """        if work.state == "suspended":\n            problems.append(""",
        """        if work.state == "suspended":\n            list[str]().append(""",
        ("tests/rounds/test_commit.py", "tests/rounds"),
    ),
    Gate(
        "the provider's rules for the transcript",
        "rounds/_plan.py",
        "        _require_valid(paper, target, shapes(rest), known.ids)\n",
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
        "rounds/_call.py",
        "        if not work.asked:\n            await work.ask(None)\n        if work.outcome is None:",
        "        work.asked = True\n        if work.outcome is None:",
        ("tests/rounds/test_call.py", "tests/rounds"),
    ),
    Gate(
        "approval of input that its host edited",
        "rounds/_round_call.py",
        "made = await pipeline.admit(self.ready, hooks=hooks, arguments=edited)",
        "made = self.ready",
        ("tests/rounds/test_call.py", "tests/rounds"),
    ),
    Gate(
        "one execution of a call",
        "rounds/_round_call.py",
        "        self.begun = True\n",
        "        self.begun = False\n",
        ("tests/rounds/test_call.py", "tests/rounds"),
    ),
    Gate(
        "one execution of a call that was saved",
        "rounds/_round_json.py",
        'work.asked, work.begun = True, data["begun"]',
        "work.asked, work.begun = True, False",
        ("tests/rounds/test_saved.py", "tests/rounds"),
    ),
    Gate(
        "availability and approval of a round that was saved",
        "rounds/_round_json.py",
        "        await work.readmit()\n",
        "        pass\n",
        ("tests/rounds/test_saved.py", "tests/rounds"),
    ),
    Gate(
        "another pass that changes an approved call",
        "pipeline/_admit.py",
        "    if call.arguments is before and call.asks == asks:\n",
        "    if True:\n",
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
        "and not _is_outcome(result, work.outcome):",
        "and False:",
        ("tests/rounds/test_commit.py", "tests/rounds"),
    ),
    Gate(
        "type of an output",
        "rounds/_results.py",
        "    if adapter is None:\n",
        "    if True:\n",
        ("tests/rounds/test_call.py", "tests/rounds"),
    ),
)
