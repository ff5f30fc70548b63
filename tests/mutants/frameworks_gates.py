"""The gates of tools inside agents of other frameworks, which all adapters share."""

from __future__ import annotations

from tests.mutants.gate import Gate

__all__ = ["FRAMEWORKS_GATES"]

_TOOLS, _RUNS = "serving/frameworks/_tools.py", "serving/frameworks/_runs.py"
_DECISIONS = "serving/frameworks/_answers.py"
_POLICY = "serving/_guard_policy.py"
_TESTS = ("tests/serving/test_framework_tools.py",)

FRAMEWORKS_GATES: tuple[Gate, ...] = (
    Gate(
        "suspended call when a framework makes it again",
        _TOOLS,
        "        if found is not None and answer is None:\n            return found\n",
        "        found = found if answer else None\n",
        _TESTS,
    ),
    Gate(
        "answer to a suspended call of a framework",
        _TOOLS,
        "answer(suspended.request)",
        "suspended.request.grant()",
        _TESTS,
    ),
    Gate("arguments of a framework's call", _TOOLS, ', "arguments": text}', "}", _TESTS),
    Gate("id of a framework's call", _TOOLS, '"id": call.id, ', "", _TESTS),
    Gate("principal of a framework's call", _TOOLS, '"principal": run.principal, ', "", _TESTS),
    Gate("conversation of a framework's call", _TOOLS, ', "conversation": run.channel.conversation_id', "", _TESTS),
    Gate("one admission of a framework's call", _TOOLS, "if key in self._admitted:", "if False:", _TESTS),
    Gate("one execution of a replayed call", _TOOLS, "if ended is not None:", "if False:", _TESTS),
    Gate(
        "one run for each user of an agent",
        _RUNS,
        "self._opened.get(key)",
        "next(iter(self._opened.values()), None)",
        _TESTS,
    ),
    Gate(
        "a denial of what was answered",
        _TOOLS,
        "if isinstance(outcome, Failed) and isinstance(outcome.exception, ApprovalError):",
        "if False:",
        _TESTS,
    ),
    Gate(
        "principal of a request that is taken up",
        _RUNS,
        'find_request(run.principal or "", request_id)',
        'find_request("ann", request_id)',
        _TESTS,
    ),
    Gate(
        "answer to a call that is taken up",
        _TOOLS,
        "run, grant=answer)",
        "run, grant=suspended.request.grant())",
        _TESTS,
    ),
    Gate("a run that may ask", _RUNS, "return host_run is not None", "return False", _TESTS),
    Gate(
        "arguments that a framework does not show",
        _DECISIONS,
        "not (request.changes() or request.origins or request.in_doubt)",
        "True",
        _TESTS,
    ),
    Gate("False as an answer", _DECISIONS, "request.grant() if reply else request.deny()", "request.grant()", _TESTS),
    Gate(
        "what is no answer",
        _DECISIONS,
        "            answer = None\n    if isinstance(answer, Grant):",
        "            answer = request.grant()\n    if isinstance(answer, Grant):",
        _TESTS,
    ),
    Gate("a decision names another call", _DECISIONS, "        if other is not None:\n", "        if False:\n", _TESTS),
    Gate(
        "an answer to what a framework asked",
        _DECISIONS,
        "in meant_by(named, waiting)",
        "in [one for one, _ in waiting]",
        ("tests/serving/test_framework_base.py",),
    ),
    Gate("approval by a guard", _POLICY, "tools.with_approval(self.approve)", "tools", _TESTS),
    Gate(
        "names that a guard asks about",
        _POLICY,
        "tools.with_approval(names=asked) if asked else tools",
        "tools",
        _TESTS,
    ),
    Gate("hooks of a guard", _POLICY, "if self.hooks is not None:", "if False:", _TESTS),
)
