"""Policy of approvals in Cedar: who may run a tool at once, and who may approve a call. The extra `cedar`.

The only module that imports cedarpy. A policy speaks of entities of the types `Person`, `Group` and `Tool`, and of two
actions: `run`, to run a call without approval, and `approve`. What no policy permits is forbidden, as in all of Cedar.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import product
from typing import Any, Final, Literal, NamedTuple, cast

from toolcrib import approvals
from toolcrib._extras import Extra
from toolcrib.approvers._cedar_statements import CedarNames, Statement, split_policies
from toolcrib.approvers._cedar_types import TYPES, schema_of, text_of, type_of
from toolcrib.approvers._groups import Groups
from toolcrib.approvers._rule import CallRule, RuleVerdict, asked_at, parameters_of, servers_of
from toolcrib.calls import ANYBODY, Grant, RequiredApprovers, now, number_of
from toolcrib.errors import PolicyError, ToolConstraintError, explain_options
from toolcrib.tools import Tool
from toolcrib.toolsets import check_names

with Extra("a policy in Cedar", "cedar", ("cedarpy",)):
    import cedarpy

__all__ = ["CedarPolicy"]

_Action = Literal["run", "approve"]

_POLICY_IDS: Final = re.compile(r"`(policy\d+)`")
_SOMEBODY: Final = "\0"
"""The id of a person of whom nothing is known but a group; no policy can name it."""
_APPROVERS: Final = "approvers"
_LONG, _DECIMAL = 2**63, 922337203685477
_MOST_TRIED: Final = 2  # arguments of a policy for which each type is tried
_OF_POLICY: Final = re.compile(r"for policy `policy\d+`, ")
_EMPTY_SET: Final = "empty set literals"  # which the validator does not know the type of, and calls are compared with
_ANY: Final = "<__cedar::internal::Any>"
_NUMBERS: Final = (
    "an `integer` is a Long, compared as in `<= 1000`, and a `number` is a decimal, compared as in "
    '`.lessThanOrEqual(decimal("1000.0"))`'
)


class _Decision(NamedTuple):
    """What the policies say of one person, or of all who are in the same groups: which permit it, and what is wrong."""

    permits: frozenset[str]
    is_forbidden: bool
    problems: tuple[str, ...]


class _Call:
    """A call, and the people of the groups, as Cedar reads them."""

    def __init__(self, policy: CedarPolicy, call: Any, groups: Groups) -> None:
        self._policy, self._groups, self.principal = policy, groups, cast("str | None", call.run.principal)
        self._entities = [_tool_entity(call.name, call.tool)]
        self._people: set[str] = set()
        known = call.arguments.items()
        arguments = {name: value for name, value in known if name in policy.names.arguments and value is not None}
        types = parameters_of(call.tool) or {}
        self.context: dict[str, Any] = {
            "arguments": {name: _cedar_value(name, value, types.get(name)) for name, value in arguments.items()}
        }
        self._tool = {"type": "Tool", "id": call.name}
        if self.principal is not None:
            requester = groups.ids_of(self.principal)
            self.context["requester"] = {"__entity": {"type": "Person", "id": self.principal}}
            self.add(self.listed(requester), requester)

    @cached_property
    def people(self) -> dict[tuple[str, ...], frozenset[str]]:
        """The people of the groups that the policies name, and those whom they name, with their groups."""
        found: dict[tuple[str, ...], set[str]] = {}
        for group in self._policy.names.groups:
            for ids in self._groups.people_in(group):
                found.setdefault(ids, set()).add(group)
        for name in self._policy.names.persons:
            found.setdefault(self._groups.ids_of(name), set())
        return {ids: frozenset(groups) for ids, groups in found.items()}

    def listed(self, ids: Sequence[str]) -> frozenset[str]:
        """Return the groups that list a person."""
        return next((groups for known, groups in self.people.items() if {*known} & {*ids}), frozenset[str]())

    def add(self, groups: Iterable[str], ids: Sequence[str] = ()) -> list[str]:
        """Add a person as entities; return their ids: those of the person by which a policy may tell them from others.

        One whom it cannot tell from others is as all who are in the same groups, and is asked about with them.
        """
        listed = sorted(groups)
        special = {*self._policy.names.persons, *(() if self.principal is None else (self.principal,))}
        names = [one for one in ids if one in special] or ["\0".join((_SOMEBODY, *listed))]
        for one in names:
            if one not in self._people:
                self._people.add(one)
                parents = [{"type": "Group", "id": group} for group in listed]
                self._entities.append({"uid": {"type": "Person", "id": one}, "attrs": {}, "parents": parents})
        return names

    def decisions(self, asked: Sequence[tuple[_Action, str]]) -> list[_Decision]:
        """Return the decisions of the policies about people, by their ids, who act on the call."""
        requests: list[dict[str, Any]] = [
            {
                "principal": {"type": "Person", "id": person},
                "action": {"type": "Action", "id": action},
                "resource": self._tool,
                "context": self.context,
            }
            for action, person in asked
        ]
        evaluate: Any = cedarpy.is_authorized_batch  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] -- of dicts
        return [self._decision(one) for one in evaluate(requests, self._policy.policies, json.dumps(self._entities))]

    def _decision(self, result: cedarpy.AuthzResult) -> _Decision:
        statements, said = self._policy.statements, result.diagnostics
        errors = [_POLICY_IDS.sub(lambda found: f"`{statements[found[1]].name}`", one) for one in said.errors]
        failed = [found[1] for one in said.errors for found in [_POLICY_IDS.search(one)] if found is not None]
        # a policy that forbids and cannot be evaluated forbids; Cedar itself passes it over
        is_forbidden = len(failed) < len(errors) or any(statements[one].effect == "forbid" for one in failed)
        is_forbidden |= not result.allowed and bool(said.reasons)
        return _Decision(frozenset(said.reasons if result.allowed else ()), is_forbidden, tuple(errors))


@explain_options()
class CedarPolicy(CallRule):
    """A policy in Cedar, as a rule of `ApproverRules`.

    Args:
        text: The policies.
        name: What errors call them, such as the name of their file.

    Raises:
        PolicyError: They cannot be read, or name an entity, an attribute or an annotation that does not exist; the
            error names the policy.
    """

    def __init__(self, text: str, name: str = "policy.cedar") -> None:
        self.name = name
        try:
            self.policies, parsed = cedarpy.PolicySet.from_str(text), json.loads(cedarpy.policies_to_json_str(text))
        except ValueError as error:
            raise PolicyError(name, (_syntax_problem(text, str(error)),)) from None
        if parsed["templates"]:
            raise PolicyError(name, ("it has a template with ?principal or ?resource; write the group or the tool",))
        self.names = CedarNames()
        self.statements = {key: self._statement(key, one) for key, one in parsed["staticPolicies"].items()}
        if not any("approve" in one.actions for one in self.statements.values() if one.effect == "permit"):
            mend = 'write permit (principal in Group::"...", action == Action::"approve", resource);'
            raise PolicyError(name, (f"it permits nobody to approve anything: {mend}",))
        self._texts = {key: _text_of(one) for key, one in parsed["staticPolicies"].items()}

    @property
    def tool_names(self) -> Sequence[str]:
        return [*self.names.tools]

    def check_tools(self, tools: Mapping[str, Tool[..., Any]]) -> None:
        taken = [parameters_of(tool) for tool in tools.values()]
        if None not in taken:
            known = {name for names in taken if names is not None for name in names}
            check_names(f"the policy {self.name}", self.names.arguments, known, kind="argument")
        for key, one in self.statements.items():
            about = {name: tool for name, tool in tools.items() if one.tool in ("", name)}
            self._require_types(key, about)

    def require_people(self, groups: Groups) -> None:
        if unknown := sorted(group for group in self.names.groups if not groups.is_known(group)):
            raise ValueError(f"{self.name}: there is no group {unknown[0]!r}; give it members or from_login")

    def verdict(self, call: Any, groups: Groups) -> RuleVerdict | None:
        try:
            asked = _Call(self, call, groups)
        except ValueError as error:
            return self._refusal(call, groups, str(error))
        people = {ids: asked.add(listed, ids) for ids, listed in asked.people.items()}
        logins = {group: asked.add([group])[0] for group in groups.from_login if group in self.names.groups}
        (logins[ANYBODY],) = asked.add([])
        caller = asked.principal if asked.principal is not None else logins[ANYBODY]
        persons = list(dict.fromkeys((*(one for ids in people.values() for one in ids), *logins.values())))
        run, *found = asked.decisions([("run", caller), *(("approve", one) for one in persons)])
        by_person = dict(zip(persons, found, strict=True))
        permits = {ids: _united(by_person[one] for one in names) for ids, names in people.items()}
        required = self._required(
            permits, {group: by_person[one].permits for group, one in logins.items()}, groups, call
        )
        if run.permits:
            return RuleVerdict(required, asks=False)
        return RuleVerdict(required, hopeless=self._hopeless(required, call, by_person.values()))

    def refusal(self, call: Any, groups: Groups) -> str:
        """Return which approver of a call is forbidden to approve it, with the groups that their login says."""
        try:
            asked = _Call(self, call, groups)
        except ValueError as error:
            return str(error)
        approved_by: dict[str, str] = {}
        grant: Grant = call.grant
        for one in (*(() if grant.identity is None else (grant.identity,)), *grant.identities):
            ids = groups.ids_of(one.id)
            logins = self.names.groups.keys() & {*one.groups} & {*groups.from_login}
            approved_by |= dict.fromkeys(asked.add(asked.listed(ids) | logins, ids), one.id)
        found = asked.decisions([("approve", name) for name in approved_by])
        forbidden = [one for one, decision in zip(approved_by.values(), found, strict=True) if decision.is_forbidden]
        return f"the policy {self.name} forbids {forbidden[0]} to approve it" if forbidden else ""

    def explain(self, name: str, tool: Tool[..., Any], groups: Groups) -> str:
        return "; ".join(one.text() for one in self.statements.values() if one.tool in ("", name))

    def lines(self, groups: Groups) -> list[str]:
        return [one.text() for one in self.statements.values()]

    # --- inside

    def _statement(self, key: str, policy: Mapping[str, Any]) -> Statement:
        name = policy.get("annotations", {}).get("id") or f"policy {int(key.removeprefix('policy')) + 1}"
        names = CedarNames()
        try:
            statement = names.statement(policy, name)
        except ValueError as error:
            raise PolicyError(self.name, (f"`{name}`: {error}",)) from None
        self.names.add(names)
        if problem := _problem_of_each_type(policy, names.arguments):
            raise PolicyError(self.name, (f"`{name}`: {problem}",))
        return statement

    def _require_types(self, key: str, tools: Mapping[str, Tool[..., Any]]) -> None:
        """Raise ToolConstraintError for a policy that can be evaluated for no call of these tools."""
        problems: dict[str, str] = {}
        for name, tool in tools.items():
            schemas = parameters_of(tool)
            if schemas is None:
                return
            types = {one: type_of(schemas[one]) for one in self.names.arguments if one in schemas}
            known = {one: kind for one, kind in types.items() if kind is not None}
            problem = _type_problem(self._texts[key], tuple((one, json.dumps(kind)) for one, kind in known.items()))
            if not problem or any(f"arguments.{one}" in problem for one in types.keys() - known):
                return
            takes = ", ".join(f"{one} as {text_of(kind)}" for one, kind in known.items())
            problems[name] = f"{problem}; Cedar has of `{name}` {takes or 'no argument'}"
        for name, problem in problems.items():
            raise ToolConstraintError(name, f"the policy {self.name}, `{self.statements[key].name}`: {problem}")

    def _required(
        self,
        permits: Mapping[tuple[str, ...], frozenset[str]],
        logins: Mapping[str, frozenset[str]],
        groups: Groups,
        call: Any,
    ) -> RequiredApprovers:
        """Return who has to approve a call, by the policies that permit it to people and to groups of logins."""
        used = frozenset[str]().union(*permits.values(), *logins.values())
        found = {key: one for key, one in self.statements.items() if key in used}
        at_once = [one.name for one in found.values() if one.after is None]
        place_of = _places(found)
        of: dict[str, int] = {}
        for key, one in found.items():
            if one.after is None:
                of[place_of[key]] = max(of.get(place_of[key], 1), one.people)
        later = {(one.after, place_of[key]) for key, one in found.items() if one.after is not None}
        open_to = {group: {place_of[key] for key in keys} for group, keys in logins.items() if keys}
        requester = groups.ids_of(call.run.principal) if call.run.principal is not None else ()
        delegations = tuple(each for each in groups.delegations if each.until > asked_at(call))
        return RequiredApprovers(
            ", ".join(at_once) or self.name,
            of or {_APPROVERS: 1},
            {
                place: tuple(ids for ids, keys in permits.items() if place in {place_of[key] for key in keys})
                for place in dict.fromkeys((*of, *(place for _, place in later)))
                if place != ANYBODY
            },
            tuple(group for group in open_to if group != ANYBODY and (group not in of or group in open_to[group])),
            requester if any(one.not_requester for one in found.values()) or not found else (),
            min((one.expires for one in found.values() if one.expires is not None), default=None),
            min((one.remind for one in found.values() if one.remind is not None), default=None),
            tuple(sorted(later)),
            delegations,
            groups.aliases(delegations),
            any(one.instead for one in found.values()),
            {group: sorted(places - {group}) for group, places in open_to.items() if places - {group}},
        )

    def _hopeless(self, required: RequiredApprovers, call: Any, found: Iterable[_Decision]) -> str:
        problems = "; ".join(dict.fromkeys(problem for one in found for problem in one.problems))
        said = f" ({problems})" if problems else ""
        if not any(one.permits for one in found):
            return f"the policy {self.name} permits nobody to approve this{said}"
        if required.excluded == () and call.run.principal is None and self._keeps_requester(found):
            return f"{self.name}: whoever asks may not approve it, and the run has no principal; give it one"
        can_be_met = approvals.can_be_met(required, now())
        return "" if can_be_met else f"nobody can approve this. {required.text()}{said}"

    def _keeps_requester(self, found: Iterable[_Decision]) -> bool:
        return any(self.statements[key].not_requester for one in found for key in one.permits)

    def _refusal(self, call: Any, groups: Groups, why: str) -> RuleVerdict:
        return RuleVerdict(self._required({}, {}, groups, call), hopeless=f"the policy {self.name}: {why}")


def _places(found: Mapping[str, Statement]) -> dict[str, str]:
    """Return for which group of approvers the people of each policy count.

    Those without a place of their own count for one group together: it is named by the groups of all of them.
    """
    shared = [one for one in found.values() if not one.place and one.after is None]
    if any(one.is_for_all for one in shared):
        together = ANYBODY
    else:
        names = list(dict.fromkeys(one.who for one in shared))
        together = " or ".join(names) if all(names) else _APPROVERS
    return {key: one.place or (together if one.after is None else one.who or _APPROVERS) for key, one in found.items()}


def _united(found: Iterable[_Decision]) -> frozenset[str]:
    """Return the policies that permit something to a person, who has several ids; none where one is forbidden."""
    decisions = [*found]
    if any(one.is_forbidden for one in decisions):
        return frozenset()
    return frozenset[str]().union(*(one.permits for one in decisions))


def _tool_entity(name: str, tool: Tool[..., Any]) -> dict[str, Any]:
    options, server = tool.options, next(iter(servers_of(tool)), None)
    attributes: dict[str, Any] = {"name": name, "tags": sorted(options.tags)}
    attributes |= {} if options.effect is None else {"effect": options.effect}
    attributes |= {} if server is None else {"server": server}
    return {"uid": {"type": "Tool", "id": name}, "attrs": attributes, "parents": []}


def _cedar_value(name: str, value: Any, schema: Any = None) -> Any:
    """Return the value of an argument as Cedar reads it; raises ValueError for one that Cedar has no value for.

    Args:
        name: The argument, for the error.
        value: The value.
        schema: Its JSON schema, where one is known: a `number` is a decimal, also where it is whole.
    """
    number = number_of(value) if isinstance(value, float) or _is_number(schema) else None
    if number is None and isinstance(value, bool | str):
        return value
    if number is None and isinstance(value, int) and -_LONG <= value < _LONG:
        return value
    if number is not None or isinstance(value, int | float):
        if number is None or abs(number) > _DECIMAL or number != round(number, 4):
            raise ValueError(
                f"`{name}` is {value!r:.40}; a number in Cedar has at most 4 decimal places, and 15 before"
            )
        return {"__extn": {"fn": "decimal", "arg": f"{number:.4f}"}}
    if isinstance(value, list):
        return [_cedar_value(name, one) for one in cast("list[Any]", value)]
    if isinstance(value, Mapping):
        given = cast("Mapping[str, Any]", value)
        if any(key.startswith("__") for key in given):
            raise ValueError(f"`{name}` has a field that begins with __, which Cedar would read as a value of its own")
        return {key: _cedar_value(name, one) for key, one in given.items() if one is not None}
    raise ValueError(f"`{name}` is {value!r:.40}, which Cedar has no value for")


def _is_number(schema: Any) -> bool:
    """Return whether a JSON schema takes a `number`, alone or among others."""
    if not isinstance(schema, Mapping):
        return False
    given = cast("Mapping[str, Any]", schema)
    return "number" in (given.get("type"), *_items(given.get("type"))) or any(
        map(_is_number, _items(given.get("anyOf")))
    )


def _items(part: Any) -> Sequence[Any]:
    return cast("list[Any]", part) if isinstance(part, list) else ()


def _problem_of_each_type(policy: Mapping[str, Any], arguments: Mapping[str, bool]) -> str:
    """Return the problem of a policy that has one whatever types its arguments have; empty for any other."""
    text, written = _text_of(policy), json.dumps(policy)
    if any(arguments.values()) or len(arguments) > _MOST_TRIED or '"Record": {' in written:
        return ""
    problems = (
        _type_problem(text, tuple(zip(arguments, map(json.dumps, types), strict=True)))
        for types in product(TYPES, repeat=len(arguments))
    )
    first = next(problems)
    return first if first and all(problems) else ""


@lru_cache(maxsize=512)
def _type_problem(policy: str, types: tuple[tuple[str, str], ...]) -> str:
    """Return the problem of a policy for calls whose arguments have these types of Cedar, as JSON; or empty."""
    schema = json.dumps(schema_of({name: json.loads(kind) for name, kind in types}))
    validate: Any = cedarpy.validate_policies  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] -- of dicts
    found = [str(one.error) for one in validate(policy, schema).errors]
    problems = [_OF_POLICY.sub("", one).replace(_ANY, "") for one in found if _EMPTY_SET not in one]
    if not problems:
        return ""
    mend = f"; {_NUMBERS}" if "Long" in problems[0] and "decimal" in problems[0] else ""
    return problems[0] + mend


def _text_of(policy: Mapping[str, Any]) -> str:
    whole: dict[str, Any] = {"templates": {}, "staticPolicies": {"policy0": policy}, "templateLinks": []}
    return cedarpy.policies_from_json_str(json.dumps(whole))


def _syntax_problem(text: str, problem: str) -> str:
    """Return the syntax error of a text, with the line where the invalid policy begins."""
    for line, policy in split_policies(text):
        try:
            cedarpy.PolicySet.from_str(policy)
        except ValueError as error:
            return f"the policy at line {line} is not Cedar: {error}"
    return f"it is not Cedar: {problem}"
