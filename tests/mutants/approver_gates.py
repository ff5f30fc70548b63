"""Gates of the rules of approvers, with the tests that hold each."""

from __future__ import annotations

from tests.mutants.gate import Gate

__all__ = ["APPROVER_GATES"]

_REQUIRED, _FIT, _SEVERAL, _LEDGER = (f"approvals/_{name}.py" for name in ("required", "fit", "several", "ledger"))
_GATE, _RULE, _FILE, _REQUEST = "approvers/_gate.py", "approvers/_rule.py", "approvers/_file.py", "calls/_approval.py"
_STORE, _OF_EXPIRY = "approvals/_ledger_store.py", ("tests/approvers/test_expiry.py",)
_OF_GATE, _OF_RULES = ("tests/approvers/test_gate.py",), ("tests/approvers/test_rules.py",)

APPROVER_GATES: tuple[Gate, ...] = (
    Gate(
        "a model approves nothing that no rule is about",
        "approvers/_model.py",
        "return bool(request.required) and not",
        "return not",
        ("tests/approvers/test_model.py",),
    ),
    Gate(
        "a model is not asked about a doubt",
        "approvers/_model.py",
        "request.asked_by is None and request.consent is None and not request.in_doubt",
        "True",
        ("tests/approvers/test_model.py",),
    ),
    Gate(
        "a write denies what has expired before",
        _STORE,
        "            deny_expired(ledger, at)\n            return work(ledger)",
        "            return work(ledger)",
        _OF_EXPIRY,
    ),
    Gate(
        "a look denies what has expired",
        _STORE,
        "return not any(True for _ in ledger.due(at)), work(ledger)",
        "return True, work(ledger)",
        _OF_EXPIRY,
    ),
    Gate(
        "who waits is told that a request has expired",
        _STORE,
        "for seconds in (self._polling, left) if",
        "for seconds in (self._polling,) if",
        _OF_EXPIRY,
    ),
    Gate(
        "expiry without a store",
        _GATE,
        "if call.run.approvals is None and (why := _expired(call, now())):",
        "if False and (why := _expired(call, now())):",
        _OF_EXPIRY,
    ),
    Gate(
        "an approval after the expiry",
        _GATE,
        "if own is not None and (why := _expired(call, own.at)):",
        "if False and (why := _expired(call, own.at)):",
        _OF_EXPIRY,
    ),
    Gate(
        "a doubt does not expire",
        _REQUEST,
        "if self.in_doubt or self.asked_by is not None or self.consent is not None:",
        "if False:",
        _OF_EXPIRY,
    ),
    Gate(
        "the first of the rules by which a request expires",
        _REQUEST,
        "return min(rules, key=lambda one: one.expires_after",
        "return max(rules, key=lambda one: one.expires_after",
        _OF_EXPIRY,
    ),
    Gate(
        "an answer that keeps a request from expiring",
        "approvals/_entry.py",
        "return at if answer is None else None if until is None else max(at, until)",
        "return at",
        _OF_EXPIRY,
    ),
    Gate("a rule for each grant", _FIT, "if request.required and (why :=", "if False and (why :=", _OF_GATE),
    Gate(
        "the one who asked",
        _REQUIRED,
        "return not people_of(*ids) & people_of(*required.excluded)",
        "return True",
        _OF_GATE,
    ),
    Gate(
        "a look-alike of the one who asked",
        _REQUIRED,
        "not people_of(*ids) & people_of(*required.excluded)",
        "not {*ids} & {*required.excluded}",
        _OF_GATE,
    ),
    Gate(
        "one person under several ids",
        _REQUIRED,
        "return min(people_of(ids[0] if ids else one.id))",
        "return one.id",
        _OF_GATE,
    ),
    Gate("one place for each person", _REQUIRED, "taken[place] = person", "pass", _OF_GATE),
    Gate(
        "groups that the login may say",
        _REQUIRED,
        "for group in one.groups if group in required.from_login)",
        "for group in one.groups)",
        _OF_GATE,
    ),
    Gate("a model is nobody", _REQUIRED, "if not one.is_model:", "if True:", _OF_GATE),
    Gate(
        "groups of a login that has ended",
        _REQUIRED,
        "holds = is_own or (identity.until is not None and identity.until > at)",
        "holds = True",
        _OF_GATE,
    ),
    Gate("an approver of no use", _SEVERAL, "if why := _of_no_use(grant, request):", "if (why := None):", _OF_GATE),
    Gate(
        "all rules before a call is approved",
        _SEVERAL,
        "return any(approvers_lacking(one, identities) for one in request.required) and not _is_single(request)",
        "return False",
        _OF_GATE,
    ),
    Gate(
        "an answer of who may answer no more",
        _LEDGER,
        "return bool(request.required) and bool(misfit(known.answer, request))",
        "return False",
        _OF_GATE,
    ),
    Gate(
        "rules of what is pending",
        _LEDGER,
        '{"required": request.required, "approvals_needed": request.approvals_needed}',
        "{}",
        _OF_GATE,
    ),
    Gate("a look at the grant as the call begins", _GATE, "if why := self._unmet(rule, call):", "if False:", _OF_GATE),
    Gate("a call that nobody could approve", _GATE, "if why := next((why for", "if why := next(('' for", _OF_RULES),
    Gate("a group that is none", _GATE, "    if unknown:\n", "    if False:\n", _OF_RULES),
    Gate(
        "a rule for too few people",
        _GATE,
        "if not approvals.can_be_met(required := _required(rule, groups, None)):",
        "if not (required := _required(rule, groups, None)):",
        _OF_RULES,
    ),
    Gate(
        "an amount that cannot be read is over",
        _RULE,
        "_is_over(call, name, most) is not False",
        "_is_over(call, name, most)",
        _OF_RULES,
    ),
    Gate(
        "an amount that cannot be read is up to",
        _RULE,
        "_is_over(call, name, most) is not True",
        "_is_over(call, name, most) is False",
        _OF_RULES,
    ),
    Gate("an amount below 0 of a rule", _RULE, "found is not None and found >= 0", "found is not None", _OF_RULES),
    Gate(
        "a tool without an effect", _RULE, "options.effect is None or options.effect in", "options.effect in", _OF_RULES
    ),
    Gate(
        "a file of rules that has changed",
        _FILE,
        "if (found := _stamp(self._path)) != self._read:",
        "if False:",
        _OF_RULES,
    ),
    Gate(
        "people of all rules in a request",
        _REQUEST,
        "people = max([self.approvals_needed, *(one.people for one in required)])",
        "people = self.approvals_needed",
        _OF_GATE,
    ),
)
