"""Gates of the adapter for LangChain and LangGraph."""

from __future__ import annotations

from tests.mutants.gate import Gate

__all__ = ["LANGCHAIN_GATES"]

_ANSWERS, _CALLS = "adapters/langchain/_tools.py", "adapters/langchain/_calls.py"
_GUARD, _MEMBERS = "adapters/langchain/_guard.py", "adapters/langchain/_members.py"
_TESTS = ("tests/frameworks/test_langchain.py", "tests/frameworks/test_all.py", "tests/frameworks/test_verbs.py")

LANGCHAIN_GATES: tuple[Gate, ...] = (
    Gate(
        "what a guarded tool of LangChain gives beside a value that passes deliveries",
        "adapters/langchain/_guard.py",
        "None if call.has_deliveries else self._result",
        "self._result",
        ("tests/frameworks/test_langchain.py",),
    ),
    Gate(
        "an answer of LangChain's for what was shown",
        _CALLS,
        "or not (isinstance(answer, Denial) or _is_bound(resumed) or is_as_seen(request))",
        "or False",
        _TESTS,
    ),
    Gate(
        "an answer to an interrupt of LangGraph",
        _ANSWERS,
        "in answered(_requests_in(interrupts), given)",
        "in [(id, answer) for answer in given for id, _ in _requests_in(interrupts)]",
        _TESTS,
    ),
    Gate(
        "a call of LangGraph that waits",
        _CALLS,
        "outcome = await self._answered(self._ask(suspended.request, known))",
        "outcome = await self._answered(suspended.request.grant())",
        _TESTS,
    ),
    Gate(
        "a call of LangGraph that waits in a thread",
        _CALLS,
        "outcome = run_sync(self._answered(self._ask(suspended.request, known)))",
        "outcome = run_sync(self._answered(suspended.request.grant()))",
        _TESTS,
    ),
    Gate(
        "a yes of LangGraph to the request before a doubt",
        _CALLS,
        "follows = request.replaces is not None or request.in_doubt",
        "follows = request.replaces is not None",
        ("tests/frameworks/test_crash.py",),
    ),
    Gate(
        "a yes of LangGraph to the request before",
        _CALLS,
        "while follows and not (",
        "while False and not (",
        _TESTS,
    ),
    Gate(
        "a thread of LangGraph as the conversation",
        _CALLS,
        "conversation_id=thread",
        'conversation_id=""',
        _TESTS,
    ),
    Gate(
        "a run for each message of a LangGraph thread",
        _CALLS,
        "        about,\n        runtime,\n",
        "        0,\n        runtime,\n",
        _TESTS,
    ),
    Gate(
        "one execution of a replayed call of LangGraph",
        _CALLS,
        "return await self._tools.call_once(",
        "return await self._tools.call(",
        _TESTS,
    ),
    Gate(
        "a guard of LangChain",
        _GUARD,
        """            return await handler(request)
        handling""",
        """            pass
        return await handler(request)
        handling""",
        _TESTS,
    ),
    Gate(
        "a guard of LangChain in a thread",
        _GUARD,
        """            return handler(request)
        handling""",
        """            pass
        return handler(request)
        handling""",
        _TESTS,
    ),
    Gate(
        "tools that LangChain's provider runs",
        _GUARD,
        "if isinstance(tool, dict):\n                self",
        "if False:\n                self",
        _TESTS,
    ),
    Gate("a failure that a tool of LangChain says", _MEMBERS, 'if result.status == "error":', "if False:", _TESTS),
    Gate(
        "middleware of LangChain around the tools of a target",
        _MEMBERS,
        "if around._wrap_tool_call or around._awrap_tool_call:",
        "if False:",
        ("tests/frameworks/test_targets.py",),
    ),
)
