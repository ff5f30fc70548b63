"""Rules of approvers as a gate: their requirements of a call's request, and of the grant by which the call begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from toolcrib import approvals
from toolcrib.approvers._rule import CallRule, Groups, RuleVerdict
from toolcrib.calls import APPROVER_RULES, Ask, Rejected, now
from toolcrib.errors import explain_options
from toolcrib.hooks import WITH_ARGUMENTS, Stage
from toolcrib.tools import Tool


class _RequiredByGates(list[Any]):
    """Requirements of all gates of one name for a call; those of another tool or run, or of a stored call, ask anew."""

    def __init__(self, call: Any, gate: ApproverRules, required: Sequence[Any], before: object) -> None:
        self.asked_in, self.of_gates = (call.plan, call.run), dict[ApproverRules, Sequence[Any]]()
        if isinstance(before, _RequiredByGates) and before.asked_in == self.asked_in:
            self.of_gates |= before.of_gates
        self.of_gates[gate] = required
        super().__init__(item for of_gate in self.of_gates.values() for item in of_gate)


@explain_options()
class ApproverRules:
    """A gate that says who has to approve a call, by rules. All rules that a call fits hold for it.

    What is required is in the request, and each answer to it is checked before it is kept, over every way in: by the
    console, the command line, a chat, an inline approver, a standing grant. It is checked once more right before the
    call begins, with the groups as they are then and the arguments that it runs with.

    Args:
        rules: The rules: `ApproverRule`, or policies of `toolcrib.approvers.cedar`.
        groups: The groups of people; None where the rules name none.
        name: The name of the gate.

    Raises:
        ValueError: A rule names a group that does not exist, or one that has too few people for it.
        TypeError: `rules` is not a list of rules.
    """

    stage: Stage = "approve"
    occasions = WITH_ARGUMENTS

    def __init__(self, rules: Sequence[CallRule], groups: Groups | None = None, *, name: str = "approvers") -> None:
        if isinstance(rules, CallRule) or not all(isinstance(rule, CallRule) for rule in rules):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
            raise TypeError("ApproverRules: rules must be a list of rules, as in ApproverRules([ApproverRule(...)])")
        if groups is not None and not isinstance(groups, Groups):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
            raise TypeError(f"ApproverRules: groups is {groups!r:.80}; give Groups({{'finance': ['ann']}})")
        self.rules, self.groups, self.name = tuple(rules), groups or Groups(), name
        for rule in self.rules:
            rule.require_people(self.groups)

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The names and patterns of the tools that the rules are about."""
        return tuple(dict.fromkeys(name for rule in self.rules for name in rule.tool_names))

    def check_tools(self, tools: Mapping[str, Tool[..., Any]], *, is_complete: bool) -> None:
        """Check that some tool has each tag, server and argument that a rule is about.

        Args:
            tools: The tools of a toolset that is given the gate, by name.
            is_complete: Whether no further tools come later.

        Raises:
            ToolConstraintError: No tool has one of them.
        """
        for rule in self.rules if is_complete and tools else ():
            rule.check_tools(tools)

    def refresh(self) -> None:
        """Read the rules and groups anew where they are kept elsewhere, as `load_rules` has them in a file."""

    def check(self, call: Any) -> Rejected | Ask | None:
        """Return the approval that a call needs by the rules; a call that nobody could approve is rejected."""
        self.refresh()
        if call.run.approvals is None and (why := _expired(call, now())):  # else its store denies it
            return Rejected(call.name, call.id, why, "hook")
        verdicts = self._verdicts(call)
        key = APPROVER_RULES + self.name
        edited = (requirement for rule in self.rules for requirement in rule.required_if_edited(call, self.groups))
        required = [*(verdict.required for verdict in verdicts), *edited]
        if not required and key not in call.approval.metadata:
            return None
        if why := next((verdict.hopeless for verdict in verdicts if verdict.hopeless), ""):
            return Rejected(call.name, call.id, why, "hook")
        of_gate = [item.to_dict() for item in required]
        asked = {key: _RequiredByGates(call, self, of_gate, call.approval.metadata.get(key))}
        if reasons := [verdict.required.text() for verdict in verdicts if verdict.asks]:
            return Ask("; ".join(reasons), asked)
        call.add_facts(asked)
        return None

    def begin(self, call: Any) -> Rejected | None:
        """Return why a call may not begin by its grant; None where it may."""
        self.refresh()
        why = self._problem(call)
        return Rejected(call.name, call.id, why, "hook") if why else None

    def explain(self, name: str, tool: Any) -> str:
        """Return the rules that calls of a tool may fit, in words, with their times."""
        self.refresh()
        return "; ".join(filter(None, (rule.explain(name, tool, self.groups) for rule in self.rules)))

    def lines(self) -> list[str]:
        """Return all rules in words, for all tools."""
        return [line for rule in self.rules for line in rule.lines(self.groups)]

    def _verdicts(self, call: Any) -> list[RuleVerdict]:
        found = (rule.verdict(call, self.groups) for rule in self.rules)
        return [verdict for verdict in found if verdict is not None]

    def _problem(self, call: Any) -> str:
        """Return why a call may not begin by its grant; empty where it may."""
        grant, request = call.grant, call.request
        answer = grant if grant is not None and request is not None and grant.request_id == request.id else None
        if answer is not None and (why := _expired(call, answer.at)):
            return why
        verdicts = self._verdicts(call)
        if grant is None:
            asking = [verdict.required.rule for verdict in verdicts if verdict.asks]
            return f"`{call.name}` needs approval: {asking[0]}" if asking else ""
        if why := approvals.approvers_problem(grant, call.request, now(), [verdict.required for verdict in verdicts]):
            return why
        return next(filter(None, (rule.refusal(call, self.groups) for rule in self.rules)), "")


def _expired(call: Any, at: datetime) -> str:
    """Return why a call may not go on at a time, as its request has expired; empty where it has not."""
    expired = None if call.request is None else approvals.ApprovalEntry(call.request).expired
    return "" if expired is None or expired.at > at else expired.message
