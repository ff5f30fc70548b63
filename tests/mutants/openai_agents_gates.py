"""Gates of the adapter for the OpenAI Agents SDK."""

from __future__ import annotations

from tests.mutants.gate import Gate

__all__ = ["OPENAI_AGENTS_GATES"]

_ANSWERS, _TOOLS = "adapters/openai_agents/_answers.py", "adapters/openai_agents/_tools.py"
_GUARD, _MEMBERS = "adapters/openai_agents/_guard.py", "adapters/openai_agents/_members.py"
_TESTS = ("tests/frameworks/test_openai_agents.py", "tests/frameworks/test_all.py", "tests/frameworks/test_verbs.py")

OPENAI_AGENTS_GATES: tuple[Gate, ...] = (
    Gate(
        "an approval of the Agents SDK's own for what it shows",
        _TOOLS,
        "answer(request) if is_as_seen(request) else None",
        "answer(request)",
        _TESTS,
    ),
    Gate(
        "approval that the Agents SDK gives",
        _TOOLS,
        "return plain_grant(request) if known is None and self._is_approved(ctx) else known",
        "return request.grant()",
        _TESTS,
    ),
    Gate(
        "what the Agents SDK shows a model",
        _TOOLS,
        "await self.tools.shows(self.name, self.run_of(ctx))",
        "True",
        _TESTS,
    ),
    Gate(
        "a run for each context of the Agents SDK", _TOOLS, "(trace_id, about), ctx, run_id", "0, ctx, run_id", _TESTS
    ),
    Gate(
        "an answer to what the Agents SDK asked",
        _ANSWERS,
        "earlier or [*answered(waiting, [each])]",
        "[(one, each) for one, _ in waiting]",
        _TESTS,
    ),
    Gate(
        "a grant for what the Agents SDK asked before its tool had changed",
        "serving/frameworks/_tools.py",
        "        if is_to_earlier(answer, request):\n            return False\n",
        "",
        _TESTS,
    ),
    Gate(
        "a denial in the Agents SDK",
        _ANSWERS,
        "return await self.invocation.tools.take_answer(self.asked.suspended, answer, run)",
        "return True if isinstance(answer, Grant) else answer.message",
        _TESTS,
    ),
    Gate(
        "approval of a member of the Agents SDK",
        _MEMBERS,
        "wrapped.asks if callable(theirs.needs_approval) else theirs.needs_approval",
        "False",
        _TESTS,
    ),
    Gate(
        "tools that the Agents SDK's provider runs",
        _GUARD,
        "            self._tools.refuse(tool.name, ",
        "            return tool\n            self._tools.refuse(tool.name, ",
        _TESTS,
    ),
    Gate("a guard of the Agents SDK", _GUARD, "if self._tools.leaves(tool.name) or", "if True or", _TESTS),
    Gate(
        "a guard of the Agents SDK around MCP servers",
        _GUARD,
        "        guarded = [self.gate.tool(tool) for tool in found]\n",
        "        guarded = found\n",
        _TESTS,
    ),
    Gate(
        "a guard of the Agents SDK around agents that are handed off to",
        _GUARD,
        "            return self.agent(handoff)\n",
        "            return handoff\n",
        _TESTS,
    ),
    Gate(
        "a guard of the Agents SDK around what comes later",
        _GUARD,
        'if self.gate is not None and name in ("tools", "handoffs")',
        "if False",
        ("tests/frameworks/test_late_tools.py",),
    ),
    Gate(
        "a guardrail of the Agents SDK that rejects a call",
        "adapters/openai_agents/_members.py",
        'verdict.behavior["type"] == "reject_content"',
        "False",
        _TESTS,
    ),
    Gate(
        "a guardrail of the Agents SDK that ends a run",
        "adapters/openai_agents/_members.py",
        'verdict.behavior["type"] == "raise_exception"',
        "False",
        _TESTS,
    ),
    Gate(
        "a state of the Agents SDK whose call has begun",
        "serving/frameworks/_tools.py",
        "and (entry is None or entry.execution is None)",
        "and True",
        _TESTS,
    ),
    Gate(
        "an answer of before to a call in doubt of the Agents SDK",
        "serving/frameworks/_answers.py",
        "id in (request.replaces, request.follows)",
        "id == request.replaces",
        _TESTS,
    ),
)
