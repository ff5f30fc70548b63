"""Gates of the adapter for Microsoft Agent Framework."""

from __future__ import annotations

from tests.mutants.gate import Gate

__all__ = ["AGENT_FRAMEWORK_GATES"]

_ANSWERS, _CALLS = "adapters/agent_framework/_answers.py", "adapters/agent_framework/_calls.py"
_GUARD, _TOOLS = "adapters/agent_framework/_guard.py", "adapters/agent_framework/_tools.py"
_MEMBERS = "adapters/agent_framework/_members.py"
_TESTS = ("tests/frameworks/test_agent_framework.py", "tests/frameworks/test_verbs.py")

AGENT_FRAMEWORK_GATES: tuple[Gate, ...] = (
    Gate(
        "what a delivery edits in place is what a guarded tool of Agent Framework gives",
        "adapters/agent_framework/_guard.py",
        "as_it_is=not tools.pipeline.has_deliveries(context.function.name, run)",
        "as_it_is=True",
        ("tests/frameworks/test_agent_framework.py",),
    ),
    Gate(
        "an approval of Agent Framework's own",
        _ANSWERS,
        "was_shown and is_as_seen(request) else None",
        "was_shown else None",
        _TESTS,
    ),
    Gate(
        "an approval that Agent Framework gives by itself",
        _ANSWERS,
        "if was_shown and is_as_seen(request)",
        "if is_as_seen(request)",
        _TESTS,
    ),
    Gate(
        "a call of Agent Framework without an answer",
        _ANSWERS,
        "if not isinstance(response, Content) or response.approved is not True:\n        return None",
        "if not isinstance(response, Content):\n        return request.grant()",
        _TESTS,
    ),
    Gate(
        "a session of Agent Framework as the conversation",
        _CALLS,
        "conversation_id=session.session_id",
        'conversation_id=""',
        _TESTS,
    ),
    Gate(
        "a run for each run of Agent Framework's agents",
        _CALLS,
        "self.runs.find(object(), session,",
        "self.runs.find(0, session,",
        _TESTS,
    ),
    Gate(
        "a denial in Agent Framework",
        _CALLS,
        "outcome = await tools.deny(found[1], denial, run)",
        "return False",
        _TESTS,
    ),
    Gate(
        "a denial of one session of Agent Framework",
        _CALLS,
        'told = self._denied.get((session, content.call_id or ""))',
        "told = next((text for (_, id), text in self._denied.items() if id == content.call_id), None)",
        _TESTS,
    ),
    Gate(
        "a tool of ours past its gates in Agent Framework",
        _TOOLS,
        "func=self._unreached, input_model",
        "func=tools.entries[name].tool.fn, input_model",
        _TESTS,
    ),
    Gate("what Agent Framework shows a model", _TOOLS, "await self._tools.shows(tool.name, run)", "True", _TESTS),
    Gate(
        "an answer to what Agent Framework asked",
        _TOOLS,
        "in answered(((gate, gate[1]) for gate in asked_in(asked)), given)",
        "in ((gate, answer) for gate in asked_in(asked) for answer in given)",
        _TESTS,
    ),
    Gate(
        "approval of a member of Agent Framework", _MEMBERS, 'tool.approval_mode == "always_require"', "False", _TESTS
    ),
    Gate(
        "tools that Agent Framework's provider runs",
        _GUARD,
        "                self._tools.refuse(_name_of(tool))",
        "                pass",
        _TESTS,
    ),
    Gate(
        "arguments that were approved in Agent Framework",
        _GUARD,
        "            context.arguments = arguments\n",
        "            pass\n",
        _TESTS,
    ),
    Gate(
        "other arguments that were approved in Agent Framework",
        _GUARD,
        'if arguments != self._arguments and "approval_response" in context.metadata:',
        "if False:",
        _TESTS,
    ),
    Gate(
        "a guard of Agent Framework",
        _GUARD,
        "if self._tools.leaves(context.function.name):",
        "if True:",
        _TESTS,
    ),
    Gate("a signal to Agent Framework", _GUARD, "            raise self._signal\n", "            return\n", _TESTS),
    Gate(
        "middleware of Agent Framework around the tools of a target",
        "adapters/agent_framework/_guard.py",
        "if any(not isinstance(layer, AgentMiddleware | ChatMiddleware)",
        "if any(False",
        ("tests/frameworks/test_targets.py",),
    ),
    Gate(
        "a guard of Agent Framework around the tools of a target",
        "adapters/agent_framework/_guard.py",
        "tools = provider.policy.around(tools)",
        "pass",
        ("tests/frameworks/test_targets.py",),
    ),
)
