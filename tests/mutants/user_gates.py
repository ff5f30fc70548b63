"""Gates and deliveries of a user: how they are asked and made, each with the patch that takes a part away."""

from __future__ import annotations

from tests.mutants.gate import Gate

__all__ = ["USER_GATES"]

_OF_GATES = ("tests/pipeline/test_gates.py", "tests/test_ways_gates.py")
_OF_DELIVERIES = ("tests/pipeline/test_deliveries.py", "tests/test_ways_gates.py")
_OF_SERVERS = ("tests/adapters/mcp_server/test_passing_on.py",)
_FAILED = "            return call.hook_failure(step.kind, step.name, error)\n"

USER_GATES: tuple[Gate, ...] = (
    # --- which are asked, and in which order
    Gate(
        "gates of a toolset",
        "toolsets/_gates.py",
        "return (*consent, *scopes, *available, *entry.gates, *approval)",
        "return (*consent, *scopes, *available, *approval)",
        _OF_GATES,
    ),
    Gate("gates of a run", "pipeline/_gates.py", "            *run.gate_steps,\n", "", _OF_GATES),
    Gate(
        "gates are asked by stage",
        "pipeline/_gates.py",
        "sorted((*first, *of_tool, *of_run), key=stage_of)",
        "(*first, *of_tool, *of_run)",
        _OF_GATES,
    ),
    Gate(
        "a gate is known by itself and not by what equals it",
        "hooks/_gate.py",
        "check = gate if isfunction(gate) else gate.__call__",
        "check = gate",
        ("tests/hooks/test_gate.py",),
    ),
    Gate(
        "arguments of a host that a gate looks at",
        "pipeline/_gates.py",
        "read = any(step.reads_host_arguments for step in steps if step.stage not in _BEFORE_READING)",
        "read = False",
        _OF_GATES,
    ),
    # --- their answers
    Gate(
        "a gate of the user's that fails",
        "pipeline/_gates.py",
        _FAILED,
        f'            if step.kind == "gate":\n                continue\n{_FAILED}',
        _OF_GATES,
    ),
    Gate(
        "a gate that answers something else",
        "pipeline/_gates.py",
        "return call.hook_failure(step.kind, step.name, wrong)",
        "continue",
        _OF_GATES,
    ),
    Gate(
        "a gate that asks is in the record",
        "pipeline/_gates.py",
        'if step.kind == "gate" and question.reason and not is_noted:',
        "if False:",
        _OF_GATES,
    ),
    Gate(
        "a gate that asks about a call again says it once",
        "pipeline/_gates.py",
        "elif question.reason not in call.approval.reasons:",
        "else:",
        _OF_GATES,
    ),
    # --- the occasions
    Gate(
        "occasions of a gate",
        "pipeline/_gates.py",
        "chosen = [step for step in steps if occasion in step.occasions]",
        "chosen = [*steps]",
        _OF_GATES,
    ),
    Gate(
        "gates about arguments on recovery",
        "pipeline/_admit.py",
        "    refused = await ask_gates(call, gates.before)\n    if refused is None and gates.after:\n",
        "    refused = await ask_gates(call, gates.before)\n    if False:\n",
        _OF_GATES,
    ),
    Gate(
        "gates about what a host edited",
        "pipeline/_gates.py",
        'return await ask_gates(call, gates_of(call, "edited").after)',
        "return None",
        _OF_GATES,
    ),
    Gate(
        "gates about what more hooks edited",
        "pipeline/_gates.py",
        "refused = await ask_gates(call, authorize)",
        "refused = None",
        _OF_GATES,
    ),
    Gate(
        "an approved call stays approved where more hooks edit nothing",
        "pipeline/_gates.py",
        "if refused is None and call.args is not before:",
        "if refused is None:",
        _OF_GATES,
    ),
    Gate(
        "gates about what an approver overrides",
        "pipeline/_gates.py",
        "(*gates.after, *gates.approve)",
        "gates.approve",
        _OF_GATES,
    ),
    Gate(
        "gates at approve about what an approver overrides",
        "pipeline/_gates.py",
        "(*gates.after, *gates.approve)",
        "gates.after",
        _OF_GATES,
    ),
    # --- deliveries
    Gate(
        "deliveries of a toolset",
        "pipeline/_finish.py",
        "for step in (*call.plan.deliveries, *call.run.delivery_steps):",
        "for step in call.run.delivery_steps:",
        _OF_DELIVERIES,
    ),
    Gate(
        "deliveries of a run",
        "pipeline/_finish.py",
        "for step in (*call.plan.deliveries, *call.run.delivery_steps):",
        "for step in call.plan.deliveries:",
        _OF_DELIVERIES,
    ),
    Gate(
        "a delivery that fails",
        "pipeline/_finish.py",
        'raise HookError.of(call.plan.name, "delivery", step.name, error) from error',
        "continue",
        _OF_DELIVERIES,
    ),
    Gate(
        "delivery of a result",
        "pipeline/_finish.py",
        "if call.error is None and not call.execution.delivered:",
        "if False:",
        _OF_DELIVERIES,
    ),
    Gate(
        "delivery of a value once",
        "pipeline/_finish.py",
        "if call.error is None and not call.execution.delivered:",
        "if call.error is None:",
        _OF_DELIVERIES,
    ),
    Gate(
        "delivery of an error as if it were a value",
        "pipeline/_finish.py",
        "if call.error is None and not call.execution.delivered:",
        "if not call.execution.delivered:",
        _OF_DELIVERIES,
    ),
    Gate(
        "delivery of the values of a live stream",
        "pipeline/_execute.py",
        "        shown = await deliver(call, shown)\n",
        "        pass\n",
        _OF_DELIVERIES,
    ),
    Gate(
        "delivery after what stands around a stream",
        "pipeline/_execute.py",
        "await process_value(call, value, live=False) if call.watched",
        "await process_value(call, value) if call.watched",
        _OF_DELIVERIES,
    ),
    Gate(
        "delivery of a result that a hook or a gate gives",
        "pipeline/_finish.py",
        "    failed = await _deliver_result(call)\n    if failed is not None:\n        return failed\n    plan",
        "    failed = None\n    if failed is not None:\n        return failed\n    plan",
        _OF_DELIVERIES,
    ),
    Gate(
        "delivery of reports",
        "pipeline/_finish.py",
        "_read_report(call, pass_on, await deliver(call, value))",
        "pass_on(value)",
        _OF_DELIVERIES,
    ),
    Gate(
        "a call that waits for the delivery of its reports",
        "pipeline/_finish.py",
        "        if call.execution.reports is not None:\n",
        "        if False:\n",
        _OF_DELIVERIES,
    ),
    Gate(
        "what came beside a value that passes deliveries",
        "adapters/mcp_server/_tools.py",
        "sees_all = not run.features and not self.pipeline.has_deliveries(request.params.name, run)",
        "sees_all = not run.features",
        _OF_SERVERS,
    ),
    Gate(
        "what a tool tells a model beside its result passes deliveries",
        "adapters/pydantic_ai/_toolset.py",
        "if beside is not None and self._opened.has_deliveries(name, run):",
        "if False:",
        ("tests/adapters/pydantic_ai/test_toolset.py",),
    ),
)
