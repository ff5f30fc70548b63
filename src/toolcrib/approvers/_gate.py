"""Rules of approvers as a gate: what they require of a call's request, and of the grant that it begins by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from toolcrib import approvals
from toolcrib._numbers import span_text
from toolcrib.approvers._groups import Groups
from toolcrib.approvers._rule import ApproverRule
from toolcrib.calls import ANYBODY, APPROVER_RULES, Ask, Rejected, RequiredApprovers, now
from toolcrib.errors import explain_options
from toolcrib.hooks import WITH_ARGUMENTS, Stage
from toolcrib.tools import Tool

__all__ = ["ApproverRules"]


@explain_options()
class ApproverRules:
    """A gate that says who has to approve a call, by rules. All rules that a call fits hold for it.

    What is required is in the request, and each answer to it is checked before it is kept, over every way in: by the
    console, the command line, a chat, an inline approver, a standing grant. It is checked once more right before the
    call begins, with the groups as they are then and the arguments that it runs with.

    Args:
        rules: The rules.
        groups: The groups of people; None where the rules name none.
        name: The name of the gate.

    Raises:
        ValueError: A rule names a group that does not exist, or one that has too few people for it.
        TypeError: `rules` is not a list of rules.
    """

    stage: Stage = "approve"
    occasions = WITH_ARGUMENTS

    def __init__(self, rules: Sequence[ApproverRule], groups: Groups | None = None, *, name: str = "approvers") -> None:
        if isinstance(rules, ApproverRule) or not all(isinstance(one, ApproverRule) for one in rules):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
            raise TypeError("ApproverRules: rules is a list of rules, as in ApproverRules([ApproverRule(...)])")
        self.rules, self.groups, self.name = tuple(rules), groups or Groups(), name
        for rule in self.rules:
            _require_people(rule, self.groups)

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The names and patterns of the tools that the rules are about."""
        return tuple(dict.fromkeys(name for rule in self.rules for name in rule.tools))

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
        """Return what a call needs by the rules; one that nobody could approve is refused."""
        self.refresh()
        if call.run.approvals is None and (why := _expired(call, now())):  # else its store denies it
            return Rejected(call.name, call.id, why, "hook")
        rules = self._fitting(call)
        required = [self._required(rule, call) for rule in rules]
        key = APPROVER_RULES + self.name
        if not rules and key not in call.approval.metadata:
            return None
        if why := next((why for pair in zip(rules, required, strict=True) if (why := _hopeless(*pair))), ""):
            return Rejected(call.name, call.id, why, "hook")
        asked = {key: [one.to_dict() for one in required]}
        reasons = [one.text() for rule, one in zip(rules, required, strict=True) if rule.asks]
        if reasons:
            return Ask("; ".join(reasons), asked)
        call.update_approval(metadata={**call.approval.metadata, **asked})
        return None

    def begin(self, call: Any) -> Rejected | None:
        """Return why a call may not begin by its grant; None where it may."""
        self.refresh()
        grant, request = call.grant, call.request
        own = grant if grant is not None and request is not None and grant.request_id == request.id else None
        if own is not None and (why := _expired(call, own.at)):
            return Rejected(call.name, call.id, why, "hook")
        for rule in self._fitting(call):
            if call.grant is None:
                if rule.asks:
                    return Rejected(call.name, call.id, f"`{call.name}` needs approval: {rule.name}", "hook")
                continue
            if why := self._unmet(rule, call):
                return Rejected(call.name, call.id, why, "hook")
        return None

    def explain(self, name: str, tool: Any) -> str:
        """Return the rules that calls of a tool may fit, in words, with their times."""
        self.refresh()
        rules = [rule for rule in self.rules if rule.fits_tool(name, tool)]
        return "; ".join(_explained(rule, _required(rule, self.groups, None, now())) for rule in rules)

    def _required(self, rule: ApproverRule, call: Any) -> RequiredApprovers:
        asked_at = now() if call.request is None else call.request.created_at
        return _required(rule, self.groups, call.run.principal, asked_at)

    def _unmet(self, rule: ApproverRule, call: Any) -> str:
        required = self._required(rule, call)
        return approvals.approvers_problem(call.grant, call.request, now(), (required,))

    def _fitting(self, call: Any) -> list[ApproverRule]:
        return [rule for rule in self.rules if rule.fits(call)]


def _required(rule: ApproverRule, groups: Groups, principal: str | None, asked_at: datetime) -> RequiredApprovers:
    named = dict.fromkeys((*rule.groups, *rule.escalate.values()))
    delegations = tuple(each for each in groups.delegations if each.until > asked_at)
    return RequiredApprovers(
        rule.name,
        rule.groups,
        {group: groups.people_in(group) for group in named if group != ANYBODY},
        tuple(group for group in named if group in groups.from_login),
        groups.ids_of(principal) if rule.not_requester and principal is not None else (),
        None if rule.expires is None else rule.expires.total_seconds(),
        None if rule.remind is None else rule.remind.total_seconds(),
        tuple((after.total_seconds(), group) for after, group in sorted(rule.escalate.items())),
        delegations,
        groups.aliases(delegations),
    )


def _explained(rule: ApproverRule, required: RequiredApprovers) -> str:
    remind = "" if rule.remind is None else f"; a reminder after {span_text(rule.remind.total_seconds())}"
    return f"{required.text()}{remind}"


def _expired(call: Any, at: datetime) -> str:
    """Return why a call may not go on at a time, as its request has expired; empty where it has not."""
    expired = None if call.request is None else approvals.ApprovalEntry(call.request).expired
    return "" if expired is None or expired.at > at else expired.message


def _hopeless(rule: ApproverRule, required: RequiredApprovers) -> str:
    """Return why nobody can approve a call by a rule; empty where somebody can."""
    if rule.not_requester and not required.excluded:
        return f"{rule.name}: whoever asks may not approve it, and the run has no principal; give it one"
    return "" if approvals.can_be_met(required, now()) else f"nobody can approve this. {required.text()}"


def _require_people(rule: ApproverRule, groups: Groups) -> None:
    """Raise ValueError for a rule that no one can meet."""
    named = {"of": rule.groups, "escalate": rule.escalate.values()}
    unknown = [
        (name, group) for name in named for group in named[name] if group != ANYBODY and not groups.is_known(group)
    ]
    if unknown:
        name, group = unknown[0]
        raise ValueError(
            f"ApproverRule {rule.name!r}: {name}: there is no group {group!r}; give it members or from_login"
        )
    required = replace(_required(rule, groups, None, now()), delegations=())  # which end
    if not approvals.can_be_met(required, now()):
        raise ValueError(f"ApproverRule {rule.name!r}: its groups have too few people for it: {required.text()}")
