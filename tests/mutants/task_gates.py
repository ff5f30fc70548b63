"""The gates of tasks: whose they are, how many and how long, and what may go on with one."""

from __future__ import annotations

from tests.mutants.gate import Gate

__all__ = ["TASK_GATES"]

_TASKS = "adapters/mcp_server/_task.py"
_METHODS = "adapters/mcp_server/_task_methods.py"
_CALLS = "adapters/mcp_client/_task_calls.py"
_OF_CALLS = ("tests/adapters/mcp_client/test_tasks.py",)
_OF_TASKS = ("tests/adapters/mcp_server/test_tasks.py",)

TASK_GATES: tuple[Gate, ...] = (
    Gate(
        "what a task may ask its client",
        "adapters/mcp_server/_client_link.py",
        "        if not lets_through(self._policy, feature):\n",
        "        if False:\n",
        _OF_TASKS,
    ),
    Gate(
        "principal of a task",
        _TASKS,
        "if row is None or row.principal != principal.name:",
        "if row is None:",
        _OF_TASKS,
    ),
    Gate(
        "principal of a list of tasks",
        "serving/_open_calls.py",
        "call for call in self._calls.get(principal, {}).values() if",
        "call for calls in self._calls.values() for call in calls.values() if",
        _OF_TASKS,
    ),
    Gate(
        "limit of the tasks of a principal",
        _TASKS,
        "self._calls.is_full(principal.name, TASK)",
        "False",
        _OF_TASKS,
    ),
    Gate(
        "longest time of a task",
        _TASKS,
        "min(max(ttl, timedelta(milliseconds=1)), options.longest_ttl)",
        "max(ttl, timedelta(milliseconds=1))",
        _OF_TASKS,
    ),
    Gate(
        "a task without an answer does not go on",
        _TASKS,
        'entry.state == "pending"',
        "False",
        _OF_TASKS,
    ),
    Gate(
        "cancel of a task's call",
        "serving/_open_calls.py",
        "            job.cancel()\n            await",
        "            await",
        _OF_TASKS,
    ),
    Gate(
        "an answer after the cancel of a task",
        _TASKS,
        "            await self._drop_call(task, principal.pending.store)\n",
        "            pass\n",
        _OF_TASKS,
    ),
    Gate(
        "one of several equal tasks goes on with the call",
        _TASKS,
        "any(other.job for other in self._equal(task))",
        "False",
        _OF_TASKS,
    ),
    Gate(
        "client that declares no tasks",
        _METHODS,
        "            if not _declares(ctx):\n                raise",
        "            if False:\n                raise",
        _OF_TASKS,
    ),
    # --- of other servers
    Gate(
        "a cancelled call cancels its task",
        _CALLS,
        "            if not is_answered and not (sending.done() and sending.exception()):",
        "            if False:",
        _OF_CALLS,
    ),
    Gate(
        "a lost call comes back to its task",
        "adapters/mcp_client/_remote_server.py",
        "                if not task.id:\n",
        "                if True:\n",
        _OF_CALLS,
    ),
    Gate(
        "tools that may be called as tasks",
        _CALLS,
        '(everything and support == "optional")',
        'support == "optional"',
        _OF_CALLS,
    ),
    Gate(
        "a server makes tasks where the host takes them",
        "adapters/mcp_client/_connection.py",
        "_with_tasks(opened.extensions) if options.tasks else opened.extensions",
        "_with_tasks(opened.extensions)",
        _OF_CALLS,
    ),
)
