"""Gates of standing grants within bounds, with the tests that hold each."""

from __future__ import annotations

from tests.mutants.gate import Gate

__all__ = ["GRANT_GATES"]

_BOUNDS, _LEDGER, _GRANT = "calls/_bounds.py", "approvals/_ledger_rules.py", "calls/_grant.py"
_PARTS, _OF_PARTS = "calls/_bound_parts.py", ("tests/approvals/test_bound_parts.py",)
_OF_BOUNDS = ("tests/approvals/test_within.py",)
_FORM = "approvals/_grant_form.py"
_OF_FORMS = (
    "tests/approvals/test_grant_form.py",
    "tests/adapters/test_further_calls.py",
    "tests/adapters/mcp_server/test_elicit_always.py",
)

GRANT_GATES: tuple[Gate, ...] = (
    Gate(
        "the times of day of a grant",
        _GRANT,
        "if self.times is None or self.times.covers(at):",
        "if True:",
        ("tests/approvals/test_times_of_day.py",),
    ),
    Gate(
        "the day before, of times over midnight",
        "calls/_times_of_day.py",
        "self._has(local - timedelta(days=1))",
        "self._has(local)",
        ("tests/approvals/test_times_of_day.py",),
    ),
    Gate(
        "the time zone of a grant's times",
        "calls/_times_of_day.py",
        "local = at.astimezone(ZoneInfo(self.zone))",
        "local = at",
        ("tests/approvals/test_times_of_day.py",),
    ),
    Gate("a bound of a hidden value", _BOUNDS, "if _is_hidden(value):", "if False:", _OF_BOUNDS),
    Gate("the lower end of a bound", _BOUNDS, "(low is None or low <= number)", "True", _OF_BOUNDS),
    Gate(
        "an amount below 0 is not up to a number",
        _BOUNDS,
        "if low is None and high is not None and high >= 0:",
        "if False:",
        ("tests/approvals/test_amounts.py",),
    ),
    Gate("the upper end of a bound", _BOUNDS, "(high is None or number <= high)", "True", _OF_BOUNDS),
    Gate("the parts of a place", _BOUNDS, "parts[: len(place)] == place", "parts[0] == place[0]", _OF_BOUNDS),
    Gate("parts that lead up", _BOUNDS, "all(map(_is_name, parts[1:]))", "True", _OF_BOUNDS),
    Gate("parts of a path of Windows", _BOUNDS, "if all(map(_is_windows_name, parts)) else None", "", _OF_BOUNDS),
    Gate(
        "a host of two readings",
        _BOUNDS,
        "found.pop() if len(found) == 1 else",
        "found.pop() if found else",
        _OF_BOUNDS,
    ),
    Gate("what a server may take for a part", _BOUNDS, "_UNSURE.search(urlsplit(place).path)", "False", _OF_BOUNDS),
    Gate(
        "a truth value is no number",
        _BOUNDS,
        "if isinstance(one, bool) or isinstance(other, bool):",
        "if False:",
        _OF_BOUNDS,
    ),
    Gate(
        "an argument without a bound",
        _BOUNDS,
        "        if bound is None:\n",
        "        if bound is None:\n            continue\n",
        _OF_BOUNDS,
    ),
    Gate(
        "an argument that is left out",
        _BOUNDS,
        'return "" if missing is None else',
        'return "" if True else',
        _OF_PARTS,
    ),
    Gate(
        "a part that one item of the request lacks",
        _PARTS,
        "optional=len(fields[name]) < len(values)",
        "optional=True",
        _OF_PARTS,
    ),
    Gate("a value beyond its bound", _BOUNDS, "if not self.is_nested and self.covers(value):", "if True:", _OF_BOUNDS),
    Gate(
        "each item of a list is within its bound",
        _BOUNDS,
        "for at, item in items if (why",
        "for at, item in [*items][:1] if (why",
        _OF_PARTS,
    ),
    Gate(
        "a nested bound covers its own kind alone",
        _BOUNDS,
        "if not self.is_nested and self.covers(value):",
        "if self.is_nested or self.covers(value):",
        _OF_PARTS,
    ),
    Gate(
        "a part without a bound stays as it is",
        _PARTS,
        "    if not parts:\n        return _as_before(values)\n",
        "    if not parts:\n        return Bound.any()\n",
        _OF_PARTS,
    ),
    Gate("two bounds of one part", _PARTS, "if len(parts) > 1:", "if False:", _OF_PARTS),
    Gate("an argument that is named like a path", _PARTS, "path in known or not", "not", _OF_PARTS),
    Gate("how many calls a grant is for", _GRANT, "use.calls >= self.uses", "False", _OF_BOUNDS),
    Gate("up to which sum a grant is", _GRANT, '"" if spent <= most else', '"" if True else', _OF_BOUNDS),
    Gate(
        "an amount below 0",
        _BOUNDS,
        "return found if found is not None and found >= 0 else None",
        "return found",
        _OF_BOUNDS,
    ),
    Gate(
        "a grant that covers its own call",
        "calls/_approval.py",
        "if why := grant.limit_reached(self, GrantUse()) or grant.time_problem(now()):",
        "if (why := None):",
        _OF_BOUNDS,
    ),
    Gate(
        "the fit of a grant within bounds",
        "approvals/_fit.py",
        'if grant.scope == "within" and (why :=',
        "if False and (why :=",
        _OF_BOUNDS,
    ),
    Gate(
        "values of others in a grant within bounds",
        "approvals/_fit.py",
        'origin.get("mark") in grant.values for origin',
        "True for origin",
        _OF_BOUNDS,
    ),
    Gate(
        "the count of a grant before its call begins",
        _LEDGER,
        "        _count_use(ledger, grant, request, execution.begun_at)\n",
        "",
        _OF_BOUNDS,
    ),
    Gate(
        "a grant that is used up is not taken",
        _LEDGER,
        "if not _used_up(ledger, grant, request)), None)",
        "), None)",
        _OF_BOUNDS,
    ),
    Gate(
        "the count of a run's own grants",
        "pipeline/_approve.py",
        "(why := call.run.use_standing_grant(answer, request))",
        '(why := "")',
        _OF_BOUNDS,
    ),
    Gate("a form for one call alone", _FORM, "return not is_for_one and", "return", _OF_FORMS),
    Gate(
        "a form where several people approve",
        _FORM,
        " and request.approvals_needed == 1 and",
        " and",
        _OF_FORMS,
    ),
    Gate("a form for what it does not fit", _FORM, "if not self.fits(request):", "if False:", _OF_FORMS),
    Gate("the longest time of a form", _FORM, "span > longest:", "False:", _OF_FORMS),
    Gate(
        "a form that says no time holds for the longest",
        _FORM,
        "span = longest if hours is None else",
        "span = None if hours is None else",
        _OF_FORMS,
    ),
    Gate("the length of a field of a form", _FORM, "if len(text) > _LONGEST]", "if False]", _OF_FORMS),
    Gate(
        "a field that a form does not have",
        _FORM,
        "if unknown := data.keys() -",
        "if unknown := set() and data.keys() -",
        _OF_FORMS,
    ),
    Gate(
        "a number of hours of a form",
        _FORM,
        "(hours is None or not 0 < hours < 10**5)",
        "hours is None",
        _OF_FORMS,
    ),
    Gate(
        "a number of calls of a form",
        _FORM,
        "if text and not (text.isascii() and text.isdigit() and len(text) <= 9):",
        "if False:",
        _OF_FORMS,
    ),
    Gate(
        "the argument that a form sums up",
        _FORM,
        "if len(names) != 1 or names[0] not in self.places(request):",
        "if False:",
        _OF_FORMS,
    ),
)
