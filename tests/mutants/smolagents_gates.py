"""Gates of the adapter for smolagents."""

from __future__ import annotations

from tests.mutants.gate import Gate

__all__ = ["SMOLAGENTS_GATES"]

_ANSWERS, _CALLS = "adapters/smolagents/_answers.py", "adapters/smolagents/_calls.py"
_GUARD = "adapters/smolagents/_guard.py"
_EXECUTOR = "adapters/smolagents/_executor.py"
_TESTS = ("tests/frameworks/test_smolagents.py", "tests/frameworks/test_all.py", "tests/frameworks/test_verbs.py")

SMOLAGENTS_GATES: tuple[Gate, ...] = (
    Gate(
        "an agent of smolagents that ends at a call that waits",
        _CALLS,
        "self.waiting[outcome.request.id] = outcome.request\n            self.interrupt()",
        "self.waiting[outcome.request.id] = outcome.request",
        _TESTS,
    ),
    Gate(
        "agents of smolagents that manage one whose call waits",
        _CALLS,
        "if self.above is not None:\n            self.above.interrupt()",
        "if False:\n            pass",
        _TESTS,
    ),
    Gate(
        "an error in a program of smolagents",
        _CALLS,
        "if shown.is_error:",
        "if False:",
        _TESTS,
    ),
    Gate(
        "no call after smolagents was cancelled",
        _CALLS,
        "top._cancelled is not None and top._cancelled is top._last_task()",
        "False",
        _TESTS,
    ),
    Gate(
        "a run for each task of smolagents",
        _CALLS,
        "self._task, self._tasks = task, self._tasks + 1",
        "self._task = task",
        _TESTS,
    ),
    Gate(
        "one run for a team of smolagents",
        _CALLS,
        "return self.top._own_run(tools)",
        "return self._own_run(tools)",
        _TESTS,
    ),
    Gate(
        "what came of an answer is none of the user's words in smolagents",
        _CALLS,
        "if managed or text.startswith(ANSWERED):",
        "if managed:",
        _TESTS,
    ),
    Gate(
        "a task that another agent of smolagents wrote",
        _CALLS,
        "if managed or text.startswith(ANSWERED):",
        "if text.startswith(ANSWERED):",
        _TESTS,
    ),
    Gate(
        "what is attached to a task of smolagents",
        _CALLS,
        "text, _, attached = step.task.partition(_ATTACHED)",
        'text, attached = step.task, ""',
        _TESTS,
    ),
    Gate(
        "results of others' tools in smolagents",
        _CALLS,
        "self.tools.get(name) is have.get(name) for",
        "True for",
        _TESTS,
    ),
    Gate("an answer to what smolagents asked", _ANSWERS, "is_answer_to(answer, request)", "True", _TESTS),
    Gate(
        "an answer to nothing in smolagents",
        _ANSWERS,
        "            raise _unknown(answer, tools)",
        "            pass",
        _TESTS,
    ),
    Gate(
        "one event loop for the threads of smolagents",
        "adapters/smolagents/_calls.py",
        "if self._own is None:",
        "if True:",
        _TESTS,
    ),
    Gate("a guard of smolagents", _GUARD, "n == FINAL_ANSWER or guarded.leaves(n)", "True", _TESTS),
    Gate(
        "a guard of smolagents around what comes later",
        _GUARD,
        "value if put is None else _GuardedDict(value, put)",
        "value if put is None else put(value)",
        ("tests/frameworks/test_late_tools.py",),
    ),
    Gate("a guard of smolagents around managed agents", _GUARD, "_put(their, guarded, calls)", "pass", _TESTS),
    Gate(
        "programs of smolagents out of reach of gates",
        _GUARD,
        "if isinstance(agent, CodeAgent) and not",
        "if False and not",
        _TESTS,
    ),
    Gate(
        "tools of smolagents that have gates already",
        _GUARD,
        "if isinstance(tool, AgentTool) and not guarded.leaves(name):",
        "if False:",
        _TESTS,
    ),
    Gate(
        "the end of smolagents' run in the sandbox",
        _EXECUTOR,
        "        raise ModelRetry(\"the agent's run ends here",
        "        return answer\n        raise ModelRetry(\"the agent's run ends here",
        _TESTS,
    ),
)
