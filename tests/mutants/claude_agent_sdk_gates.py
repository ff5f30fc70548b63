"""Gates of the adapter for the Claude Agent SDK."""

from __future__ import annotations

from tests.mutants.gate import Gate

__all__ = ["CLAUDE_AGENT_SDK_GATES"]

_CALLS, _GUARD = "adapters/claude_agent_sdk/_calls.py", "adapters/claude_agent_sdk/_guard.py"
_OPTIONS, _TOOLS = "adapters/claude_agent_sdk/_options.py", "adapters/claude_agent_sdk/_tools.py"
_TESTS = ("tests/frameworks/test_claude_agent_sdk.py", "tests/frameworks/test_verbs.py")

CLAUDE_AGENT_SDK_GATES: tuple[Gate, ...] = (
    Gate(
        "a deferred call of Claude Code", _CALLS, 'return decision("defer", asked.request.text())', "return {}", _TESTS
    ),
    Gate("a denied call of Claude Code", _CALLS, 'return decision("deny", asked)', "return {}", _TESTS),
    Gate(
        "a run for each prompt of Claude Code",
        _CALLS,
        "self.runs.find((session, prompt), data, run_id=prompt,",
        "self.runs.find(session, data, run_id=prompt,",
        _TESTS,
    ),
    Gate(
        "an answer to nothing that Claude Code deferred",
        _OPTIONS,
        "if not [gates for gates in options.gates if await gates.answer(session_id, answer)]:",
        "if [await gates.answer(session_id, answer) for gates in options.gates] == []:",
        _TESTS,
    ),
    Gate("a hook of Claude Code that fails", _OPTIONS, '"block" if event == "PreToolUse" else None', "None", _TESTS),
    Gate(
        "the run of a call of Claude Code", _TOOLS, "run = self.run_of_call(call.id)", "run = self.run_of({})", _TESTS
    ),
    Gate(
        "a session that goes on in Claude Code",
        _GUARD,
        "return replace(options, settings=asking(options, names), can_use_tool=self.can_use_tool)",
        "return options",
        _TESTS,
    ),
    Gate(
        "options that go on with a session of Claude Code",
        _GUARD,
        "return gates.resuming(result) if options.resume is not None or options.continue_conversation else result",
        "return result",
        _TESTS,
    ),
    Gate(
        "gates before the hooks of Claude Code",
        _GUARD,
        "        if id not in self._running:\n",
        "        if id not in self._running:\n            return PermissionResultAllow()\n        if False:\n",
        _TESTS,
    ),
    Gate(
        "permissions of Claude Code where the gates let a call through",
        _GUARD,
        "        return await self._their_word(name, dict(call.arguments), context)\n",
        "        return PermissionResultAllow(updated_input=dict(call.arguments))\n",
        _TESTS,
    ),
    Gate("a guard that opens Claude Code", _GUARD, "if admitted.grant is not None:", "if True:", _TESTS),
    Gate(
        "a refused call of Claude Code",
        _GUARD,
        '            return decision("deny", admitted.text())\n',
        "            return {}\n",
        _TESTS,
    ),
    Gate(
        "arguments that Claude Code is given",
        _GUARD,
        "{} if admitted.arguments == call.arguments else",
        "{} if True else",
        _TESTS,
    ),
    Gate(
        "approved arguments that Claude Code is given",
        _GUARD,
        "return PermissionResultAllow(updated_input=dict(call.arguments))",
        "return PermissionResultAllow(updated_input=dict(given))",
        _TESTS,
    ),
    Gate(
        "a call that Claude Code did not make",
        _GUARD,
        "            tools.pipeline.discard(call)\n",
        "            pass\n",
        _TESTS,
    ),
    Gate(
        "hooks of the Claude Agent SDK around the tools of a target",
        "adapters/claude_agent_sdk/_members.py",
        "if value.can_use_tool is not None or not all(isinstance(owner, ToolGates) for owner in owners):",
        "if False:",
        ("tests/frameworks/test_targets.py",),
    ),
)
