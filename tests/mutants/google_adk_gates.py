"""Gates of the adapter for Google ADK."""

from __future__ import annotations

from tests.mutants.gate import Gate

__all__ = ["GOOGLE_ADK_GATES"]

_ANSWERS, _CALLS = "adapters/google_adk/_answers.py", "adapters/google_adk/_calls.py"
_GUARD, _MEMBERS = "adapters/google_adk/_guard.py", "adapters/google_adk/_members.py"
_TESTS = ("tests/frameworks/test_google_adk.py", "tests/frameworks/test_all.py", "tests/frameworks/test_verbs.py")

GOOGLE_ADK_GATES: tuple[Gate, ...] = (
    Gate(
        "a further confirmation of ADK",
        _CALLS,
        "        if theirs.tool_confirmation is not None:\n",
        "        if False:\n",
        _TESTS,
    ),
    Gate(
        "a confirmation of ADK's for what was shown",
        _CALLS,
        "answer if isinstance(answer, Denial) or is_as_seen(request) or _is_bound(theirs) else None",
        "answer",
        _TESTS,
    ),
    Gate(
        "a call of ADK that nobody confirmed",
        _CALLS,
        "    if confirmation is None:\n        return None",
        "    if confirmation is None:\n        return request.grant()",
        _TESTS,
    ),
    Gate(
        "a confirmation of ADK's that says no",
        _CALLS,
        "return answer if confirmation.confirmed or isinstance(answer, Denial) else request.deny()",
        "return answer",
        _TESTS,
    ),
    Gate(
        "an answer to what ADK asked",
        _ANSWERS,
        "in answered(waiting, given)]",
        "in [(id, answer) for answer in given for id in asked]]",
        _TESTS,
    ),
    Gate("a user of ADK as the principal", _CALLS, "principal=theirs.user_id", 'principal=""', _TESTS),
    Gate(
        "a run for each invocation of ADK",
        _CALLS,
        "        (session.id, theirs.invocation_id),\n",
        "        0,\n",
        _TESTS,
    ),
    Gate("a guard of ADK", _GUARD, "if self._tools.leaves(tool.name):", "if True:", _TESTS),
    Gate(
        "tools that ADK's provider runs",
        _GUARD,
        'described.keys() - {"function_declarations"}',
        "()",
        _TESTS,
    ),
    Gate(
        "a tool of ADK that declares nothing",
        _MEMBERS,
        "if declaration is None:\n            raise",
        "if declaration is None:\n            return\n            raise",
        _TESTS,
    ),
    Gate(
        "a callback of ADK around the tools of a target",
        "adapters/google_adk/_members.py",
        "if value.before_tool_callback:",
        "if False:",
        ("tests/frameworks/test_targets.py",),
    ),
    Gate(
        "a plugin of ADK around the tools of a target",
        "adapters/google_adk/_members.py",
        "if guards:",
        "if False:",
        ("tests/frameworks/test_targets.py",),
    ),
    Gate(
        "a confirmation of ADK for a member",
        "adapters/google_adk/_members.py",
        "member.asks if member.may_ask else False",
        "False",
        ("tests/frameworks/test_targets.py",),
    ),
)
