"""Gates of budgets, and the seam by which a gate counts what begins, with the tests that hold each."""

from __future__ import annotations

from tests.mutants.gate import Gate

__all__ = ["BUDGET_GATES"]

_STORE, _GATE, _EXECUTE = "budgets/_store.py", "budgets/_gate.py", "pipeline/_execute.py"
_PRICED, _OF_MODELS = "rounds/_priced_model.py", ("tests/budgets/test_models.py",)
_OF_STORES, _OF_GATE = ("tests/budgets/test_stores.py",), ("tests/budgets/test_gate.py",)
_OF_SEAM = ("tests/pipeline/test_gates.py",)

BUDGET_GATES: tuple[Gate, ...] = (
    Gate("what is over is not counted", _STORE, "all(excess.charge.may_exceed for excess in over)", "True", _OF_STORES),
    Gate(
        "the last part of a time",
        _STORE,
        "_slot(charge, at) - _SLOTS\n",
        "_slot(charge, at) + 1 - _SLOTS\n",
        _OF_STORES,
    ),
    Gate(
        "what is decided and counted at once",
        _STORE,
        "self._tables.transaction(write=write) as execute:",
        "self._tables.transaction(write=False) as execute:",
        _OF_STORES,
    ),
    Gate("a look that counts nothing", _STORE, "if write and all(", "if all(", _OF_STORES),
    Gate(
        "one count of a share",
        _STORE,
        "in {charge.share: (charge, slots) for charge, slots in used}.values():",
        "in used:\n                    slots = _slots(execute, charge, at)",
        _OF_STORES,
    ),
    Gate(
        "what is used of a limit",
        _STORE,
        "if charge.fits(left):\n        return None",
        "if True:\n        return None",
        _OF_STORES,
    ),
    Gate(
        "the count of a call that begins",
        _GATE,
        "over = await self._store.charge(",
        "over = await self._store.overruns(",
        _OF_GATE,
    ),
    Gate(
        "a look at a limit before a call begins",
        _GATE,
        "self._store.overruns if call.is_executable else self._store.charge",
        "self._store.overruns",
        _OF_GATE,
    ),
    Gate(
        "a yes that a limit which refuses does not take",
        _GATE,
        'is_approved and limit.over == "ask"',
        "is_approved",
        _OF_GATE,
    ),
    Gate("a limit that refuses", _GATE, "        if refusing:\n", "        if False:\n", _OF_GATE),
    Gate(
        "the currency of a cost",
        _GATE,
        "cost is not None and cost.currency == limit.currency",
        "cost is not None",
        _OF_GATE,
    ),
    Gate("the principal of a count", _GATE, "return run.principal\n", "return None\n", _OF_GATE),
    Gate(
        "the server of a count",
        _GATE,
        "return None if identity is None else _digest(identity)",
        "return None",
        _OF_GATE,
    ),
    Gate(
        "the group of a count",
        _GATE,
        "return self._groups(call) if callable(self._groups) else (self._groups or {}).get(run.principal)",
        "return None",
        _OF_GATE,
    ),
    Gate("the run of a count", _GATE, "return run.id\n", "return None\n", _OF_GATE),
    Gate("the conversation of a count", _GATE, "return run.channel.conversation_id\n", "return None\n", _OF_GATE),
    Gate(
        "a cost below 0",
        "tools/_options.py",
        "if number is None or number < 0:",
        "if number is None:",
        ("tests/budgets/test_limits.py",),
    ),
    Gate("a tool's gate before its tool begins", _EXECUTE, "    if plan.begin_gates:\n", "    if False:\n", _OF_SEAM),
    Gate(
        "one question of a gate before a tool begins",
        _EXECUTE,
        " if gate not in run_steps(run)), *steps)",
        "), *steps)",
        _OF_SEAM,
    ),
    Gate(
        "a run's gate before a tool begins",
        _EXECUTE,
        "for gate in run_steps(run) if gate.begin is not None]",
        "for gate in ()]",
        _OF_SEAM,
    ),
    Gate(
        "the outcome of a gate before a tool begins",
        _EXECUTE,
        "        return call.close(error.outcome)\n",
        "        return None\n",
        _OF_SEAM,
    ),
    Gate(
        "a model is not asked when its limit is used up",
        _PRICED,
        "        await self._budgets.check_model(self.model, run)\n",
        "",
        _OF_MODELS,
    ),
    Gate(
        "the count of a reply that comes whole",
        _PRICED,
        "        await self._count(tokens_in(reply, request.format), run)\n",
        "",
        _OF_MODELS,
    ),
    Gate(
        "the count of a stream that is broken off",
        _PRICED,
        "if is_over or tokens is not None:",
        "if is_over:",
        _OF_MODELS,
    ),
    Gate(
        "a reply that says no tokens",
        _PRICED,
        "        if tokens is None:\n",
        "        if tokens is None:\n            return\n",
        _OF_MODELS,
    ),
    Gate("the run of a request to a model", _PRICED, "run = request.run or Run()", "run = Run()", _OF_MODELS),
    Gate("a reply that goes over is counted", _GATE, "may_exceed=True", "may_exceed=False", _OF_MODELS),
    Gate(
        "a model without a price",
        _GATE,
        "price = next(found, None)",
        "price = next(found, next(iter(self._prices.values())))",
        _OF_MODELS,
    ),
    Gate(
        "a price that no limit counts",
        _GATE,
        "if not any(limit.includes_models and limit.currency == price.currency for limit in self.limits):",
        "if False:",
        _OF_MODELS,
    ),
    Gate(
        "the model that answered",
        _GATE,
        "self.price_of(*filter(None, (tokens.model, model)))",
        "self.price_of(model)",
        _OF_MODELS,
    ),
    Gate(
        "the currency of a price",
        _GATE,
        "if limit.includes_models and limit.currency == currency:",
        "if limit.includes_models:",
        _OF_MODELS,
    ),
    Gate(
        "limits of tools alone",
        "budgets/_limit.py",
        "self.spend is not None and not self.tools and not {",
        "self.spend is not None or not {",
        _OF_MODELS,
    ),
    Gate(
        "a limit of which nothing is left",
        "budgets/_limit.py",
        "if self.amount else used < self.limit.most",
        "if self.amount else used <= self.limit.most",
        _OF_MODELS,
    ),
    Gate(
        "tokens that a cache has",
        "budgets/_limit.py",
        "tokens.input - tokens.cached - tokens.cache_written",
        "tokens.input",
        _OF_MODELS,
    ),
)
